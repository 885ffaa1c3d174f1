//! When requests are sent.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) enum Pace {
    /// As soon as the one before it is answered, for so long.
    For(Duration),
    /// As soon as the one before it is answered, so many of them.
    Count(usize),
    /// So many a second, whatever the answers do, and so many of them.
    Even { rate: f64, requests: usize },
}

impl Pace {
    /// When the request of this number is meant to be sent; none when there is none of it.
    pub(super) fn turn(self, number: usize, started: Instant, now: Instant) -> Option<Instant> {
        match self {
            Self::For(time) => (now < started + time).then_some(now),
            Self::Count(requests) => (number < requests).then_some(now),
            Self::Even { rate, requests } => {
                (number < requests).then(|| started + Duration::from_secs_f64(number as f64 / rate))
            }
        }
    }
}

/// Lets the connections know when a request is to be sent.
pub(super) struct Turns {
    go: Arc<Semaphore>,
    _thread: Option<JoinHandle<()>>,
}

impl Turns {
    /// Begins. An even pace has a thread of its own: the timer of the runtime counts in whole milliseconds.
    pub(super) fn start(pace: Pace, started: Instant, connections: usize) -> Self {
        let go = Arc::new(Semaphore::new(0));
        let thread = match pace {
            Pace::For(_) | Pace::Count(_) => {
                go.add_permits(Semaphore::MAX_PERMITS);
                None
            }
            Pace::Even { .. } => {
                let go = Arc::clone(&go);
                let named = thread::Builder::new().name("bench-pace".to_owned());
                let let_go = move || {
                    let turns = (0..).map_while(|number| pace.turn(number, started, started));
                    turns.for_each(|turn| {
                        wait_until(turn);
                        go.add_permits(1);
                    });
                    // Each connection finds out by itself that there is nothing left.
                    go.add_permits(connections);
                };
                Some(named.spawn(let_go).expect("a thread can be started"))
            }
        };
        Self { go, _thread: thread }
    }

    /// Waits until one more request may be sent.
    pub(super) async fn next(&self) {
        self.go.acquire().await.expect("it is never closed").forget();
    }
}

fn wait_until(turn: Instant) {
    loop {
        let left = turn.saturating_duration_since(Instant::now());
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
    fn an_even_pace_names_the_moments_whatever_the_time_is() {
        let started = Instant::now();
        let pace = Pace::Even { rate: 1000.0, requests: 5 };
        for late in [0, 700] {
            let now = started + Duration::from_millis(late);
            let turns: Vec<_> = (0..6).map(|n| pace.turn(n, started, now)).collect();
            let wanted: Vec<_> =
                (0..5).map(|ms| Some(started + Duration::from_millis(ms))).chain([None]).collect();
            assert_eq!(turns, wanted);
        }
    }

    #[test]
    fn without_a_pace_it_is_sent_at_once_until_the_end() {
        let started = Instant::now();
        let later = started + Duration::from_secs(2);
        assert_eq!(Pace::Count(3).turn(2, started, later), Some(later));
        assert_eq!(Pace::Count(3).turn(3, started, later), None);
        assert_eq!(Pace::For(Duration::from_secs(3)).turn(99, started, later), Some(later));
        assert_eq!(Pace::For(Duration::from_secs(2)).turn(99, started, later), None);
    }
}
