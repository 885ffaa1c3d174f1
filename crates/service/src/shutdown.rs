//! The two words of a shutdown: "take on nothing new", and later "drop what is left".
//!
//! Who begins it (a signal, a test) and what each role does about it is decided elsewhere.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Tells every part of a process that it is to end, and by when. Clones share one state.
#[derive(Clone, Debug)]
pub struct Shutdown {
    soft: CancellationToken,
    hard: CancellationToken,
    grace: Duration,
    deadline: Arc<OnceLock<Instant>>,
}

impl Shutdown {
    /// A process that runs, and that will have `grace` to finish its work once told to stop.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self {
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            grace,
            deadline: Arc::default(),
        }
    }

    /// Begins the shutdown; the grace runs from the first call on.
    pub fn begin(&self) {
        self.deadline.get_or_init(|| Instant::now() + self.grace);
        self.soft.cancel();
    }

    /// Ends the grace at once, beginning the shutdown where nobody has.
    pub fn expire(&self) {
        self.begin();
        self.hard.cancel();
    }

    /// Whether the shutdown has begun.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Waits until the shutdown has begun: take on nothing new.
    pub async fn stopping(&self) {
        self.soft.cancelled().await;
    }

    /// Waits until the grace is over or was cut short: drop what is left.
    pub async fn expired(&self) {
        let run_out = async {
            self.stopping().await;
            match self.deadline() {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.hard.cancelled() => {}
            () = run_out => {}
        }
    }

    /// How long work may go on after [`begin`](Self::begin).
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// When the grace ends; nothing before the shutdown has begun.
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
    async fn the_grace_runs_from_the_first_word_on() {
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
