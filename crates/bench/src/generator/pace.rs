//! The pace of requests: as fast as they are answered, or at an even rate.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// As soon as the one before it is answered, for this long.
    For(Duration),
    /// As soon as the one before it is answered, this many of them.
    Count(usize),
    /// At an even rate per second, whatever the responses do.
    Even { rate: f64, requests: usize },
}

impl Pace {
    /// When the request of this number is to be sent; `None` if the load ends before it.
    pub(crate) fn send_at(self, number: usize, started: Instant, now: Instant) -> Option<Instant> {
        match self {
            Self::For(time) => (now < started + time).then_some(now),
            Self::Count(requests) => (number < requests).then_some(now),
            Self::Even { rate, requests } => {
                (number < requests).then(|| started + Duration::from_secs_f64(number as f64 / rate))
            }
        }
    }
}

/// Tells the connections when a request is to be sent.
pub(crate) struct Ticker {
    go: Arc<Semaphore>,
    _thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts to allow requests. An even pace has its own thread, because the runtime's timer has whole milliseconds.
    pub(crate) fn start(pace: Pace, started: Instant, connections: usize) -> Self {
        let go = Arc::new(Semaphore::new(0));
        let thread = match pace {
            Pace::For(_) | Pace::Count(_) => {
                go.add_permits(Semaphore::MAX_PERMITS);
                None
            }
            Pace::Even { .. } => {
                let go = Arc::clone(&go);
                let named = thread::Builder::new().name("bench-pace".to_owned());
                let run = move || {
                    let times = (0..).map_while(|number| pace.send_at(number, started, started));
                    times.for_each(|time| {
                        wait_until(time);
                        go.add_permits(1);
                    });
                    // Each connection then finds that the load has ended.
                    go.add_permits(connections);
                };
                Some(named.spawn(run).expect("a thread can be started"))
            }
        };
        Self { go, _thread: thread }
    }

    /// Waits until one more request may be sent, or the load has ended.
    pub(crate) async fn next(&self) {
        self.go.acquire().await.expect("it is never closed").forget();
    }
}

fn wait_until(time: Instant) {
    loop {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_pace_names_the_times_whatever_the_time_is_now() {
        let started = Instant::now();
        let pace = Pace::Even { rate: 1000.0, requests: 5 };
        for late in [0, 700] {
            let now = started + Duration::from_millis(late);
            let times: Vec<_> = (0..6).map(|n| pace.send_at(n, started, now)).collect();
            let wanted: Vec<_> =
                (0..5).map(|ms| Some(started + Duration::from_millis(ms))).chain([None]).collect();
            assert_eq!(times, wanted);
        }
    }

    #[test]
    fn without_an_even_pace_requests_are_sent_at_once_until_the_end() {
        let started = Instant::now();
        let later = started + Duration::from_secs(2);
        assert_eq!(Pace::Count(3).send_at(2, started, later), Some(later));
        assert_eq!(Pace::Count(3).send_at(3, started, later), None);
        assert_eq!(Pace::For(Duration::from_secs(3)).send_at(99, started, later), Some(later));
        assert_eq!(Pace::For(Duration::from_secs(2)).send_at(99, started, later), None);
    }
}
