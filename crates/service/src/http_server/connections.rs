//! Accepts connections: how many at a time, in all and of one address, when each is served, and how long it may stall.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::fair_limiter::{FairLimiter, Peer, Permit};
use super::pace::Pace;

/// How often a refusal is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// How long a client may read nothing of an answer.
const STALLED_FOR: Duration = Duration::from_secs(300);

/// The connections that a server may have at a time. Clones share them.
#[derive(Clone, Debug)]
pub struct Connections {
    limit: Limit,
    stalled_for: Duration,
}

#[derive(Clone, Debug)]
enum Limit {
    /// More wait until one ends.
    Waiting(Arc<Semaphore>),
    /// More are refused.
    Fair(Arc<Fair>),
}

#[derive(Debug)]
struct Fair {
    connections: FairLimiter,
    refused: Refusals,
    /// When connections begin; `None` if each does at once.
    pace: Option<Mutex<Pace>>,
}

/// The refusals of connections. A caller who is refused thousands of times a second must not fill the log.
#[derive(Debug, Default)]
struct Refusals {
    count: AtomicU64,
    /// When one was last logged, and how many there were by then.
    logged: Mutex<Option<(Instant, u64)>>,
}

impl Refusals {
    /// Counts a refusal. Returns how many to log, those since the last log line; `None` if that was less than 10 s ago.
    fn one(&self) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let (mut logged, now) = (self.logged.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        let (at, before) = logged.unzip();
        if at.is_some_and(|at| now - at < LOG_EVERY) {
            return None;
        }
        *logged = Some((now, count));
        Some(count - before.unwrap_or(0))
    }
}

/// A connection that was accepted.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: Peer,
    /// How long it waits until it is served.
    pub(super) wait: Duration,
    pub(super) held: ConnectionPermits,
}

/// The permits that a connection holds until it ends.
#[derive(Debug)]
pub(super) struct ConnectionPermits {
    _waited_for: Option<OwnedSemaphorePermit>,
    _permit: Option<Permit>,
}

impl Connections {
    /// At most `limit` connections. Further ones wait until one ends.
    #[must_use]
    pub fn at_most(limit: usize) -> Self {
        Self::new(Limit::Waiting(Arc::new(Semaphore::new(limit))))
    }

    /// At most `limit` connections, shared by addresses as [`FairLimiter`] does. Further ones are closed at once.
    #[must_use]
    pub fn fair(limit: usize) -> Self {
        Self::shared(limit, None)
    }

    /// As [`Self::fair`], and a burst of connections of one address begins to be served at 1,000 a second.
    #[must_use]
    pub fn fair_and_paced(limit: usize) -> Self {
        Self::shared(limit, Some(Mutex::default()))
    }

    fn shared(limit: usize, pace: Option<Mutex<Pace>>) -> Self {
        let (connections, refused) = (FairLimiter::new(limit), Refusals::default());
        Self::new(Limit::Fair(Arc::new(Fair { connections, refused, pace })))
    }

    fn new(limit: Limit) -> Self {
        Self { limit, stalled_for: STALLED_FOR }
    }

    /// Sets how long a client may read nothing of an answer, in place of five minutes.
    #[must_use]
    pub fn with_stalled_for(self, stalled_for: Duration) -> Self {
        Self { stalled_for, ..self }
    }

    /// How long a client may read nothing of an answer.
    pub(super) fn stalled_for(&self) -> Duration {
        self.stalled_for
    }

    /// How many more connections there may be in all.
    #[must_use]
    pub fn free(&self) -> usize {
        match &self.limit {
            Limit::Waiting(permits) => permits.available_permits(),
            Limit::Fair(fair) => fair.connections.limit() - fair.connections.taken(),
        }
    }

    /// How many connections are open; 0 if further ones wait, as they are not counted then.
    #[must_use]
    pub fn open(&self) -> usize {
        if let Limit::Fair(fair) = &self.limit { fair.connections.taken() } else { 0 }
    }

    /// How many connections were refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        if let Limit::Fair(fair) = &self.limit { fair.refused.count.load(Ordering::Relaxed) } else { 0 }
    }

    /// Accepts a connection, after waiting for a free place if further ones wait. `None` if it was refused and closed.
    pub(super) async fn accept(&self, listener: &TcpListener) -> io::Result<Option<Accepted>> {
        match &self.limit {
            Limit::Waiting(permits) => {
                let permit = Arc::clone(permits).acquire_owned().await.expect("it is never closed");
                let (stream, address) = listener.accept().await?;
                let held = ConnectionPermits { _waited_for: Some(permit), _permit: None };
                Ok(Some(Accepted { stream, peer: Peer::of(address.ip()), wait: Duration::ZERO, held }))
            }
            Limit::Fair(fair) => {
                let (stream, address) = listener.accept().await?;
                let peer = Peer::of(address.ip());
                if let Ok(permit) = fair.connections.take(peer) {
                    let held = ConnectionPermits { _waited_for: None, _permit: Some(permit) };
                    let wait = fair.pace.as_ref().map_or(Duration::ZERO, |pace| {
                        pace.lock().unwrap_or_else(PoisonError::into_inner).wait(peer, Instant::now())
                    });
                    return Ok(Some(Accepted { stream, peer, wait, held }));
                }
                if let Some(refused) = fair.refused.one() {
                    let open = fair.connections.taken();
                    tracing::warn!(%peer, open, refused, "a connection is refused: its address has as many as it may have");
                }
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refusals_are_counted_and_logged_now_and_then() {
        let refusals = Refusals::default();
        assert_eq!([(); 3].map(|()| refusals.one()), [Some(1), None, None]);
        tokio::time::advance(LOG_EVERY).await;
        assert_eq!([(); 2].map(|()| refusals.one()), [Some(3), None]);
        assert_eq!(refusals.count.load(Ordering::Relaxed), 5);
    }
}
