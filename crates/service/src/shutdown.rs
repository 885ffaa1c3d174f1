//! The phases of a shutdown: announce it and work on, accept no new work, then, after the grace period, drop the rest.
//!
//! Signals and tests begin it; each role decides how it reacts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Signals every part of a process to stop, and by when. Clones share one state.
#[derive(Clone, Debug)]
pub struct Shutdown {
    announced: Arc<AtomicBool>,
    soft: CancellationToken,
    hard: CancellationToken,
    grace: Duration,
    deadline: Arc<OnceLock<Instant>>,
}

impl Shutdown {
    /// Creates the handle of a running process. After [`begin`](Self::begin) its work has `grace` to
    /// finish.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self {
            announced: Arc::default(),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            grace,
            deadline: Arc::default(),
        }
    }

    /// Announces the shutdown: the process is not ready from now on, and works on as before.
    pub fn announce(&self) {
        self.announced.store(true, Ordering::Relaxed);
    }

    /// Returns true if the shutdown is announced or has begun.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.announced.load(Ordering::Relaxed) || self.is_stopping()
    }

    /// Begins the shutdown. The grace period starts at the first call.
    pub fn begin(&self) {
        self.deadline.get_or_init(|| Instant::now() + self.grace);
        self.soft.cancel();
    }

    /// Ends the grace period at once. Begins the shutdown if it has not begun.
    pub fn expire(&self) {
        self.begin();
        self.hard.cancel();
    }

    /// Returns true if the shutdown has begun.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Waits until the shutdown has begun: accept no new work.
    pub async fn stopping(&self) {
        self.soft.cancelled().await;
    }

    /// Waits until the grace period is over, or was ended: drop all work that is left.
    pub async fn expired(&self) {
        let run_out = async {
            self.stopping().await;
            match self.deadline() {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.hard.cancelled() => {}
            () = run_out => {}
        }
    }

    /// Returns the grace period: how long work may take to finish after [`begin`](Self::begin).
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// Returns when the grace period ends; `None` before the shutdown has begun.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_waiting(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_ends_before_the_shutdown_begins() {
        let shutdown = Shutdown::new(Duration::from_secs(30));
        assert!(is_waiting(std::pin::pin!(shutdown.stopping())));
        assert!(is_waiting(std::pin::pin!(shutdown.expired())));
        assert!(!shutdown.is_stopping());
        assert_eq!(shutdown.deadline(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_grace_period_starts_at_the_first_call() {
        let start = Instant::now();
        let shutdown = Shutdown::new(Duration::from_secs(30));
        shutdown.begin();
        tokio::time::advance(Duration::from_secs(10)).await;
        shutdown.begin();
        shutdown.clone().stopping().await;
        shutdown.expired().await;
        assert_eq!(Instant::now() - start, Duration::from_secs(30));
        assert_eq!(shutdown.deadline(), Some(start + Duration::from_secs(30)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_came_before_the_shutdown_sees_the_grace_end() {
        let start = Instant::now();
        let shutdown = Shutdown::new(Duration::from_secs(3));
        tokio::join!(shutdown.expired(), async { shutdown.begin() });
        assert_eq!(Instant::now() - start, Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn expiring_cuts_the_grace_short() {
        let start = Instant::now();
        let shutdown = Shutdown::new(Duration::from_secs(30));
        shutdown.expire();
        shutdown.expired().await;
        assert!(shutdown.is_stopping());
        assert_eq!(Instant::now(), start);
    }
}
