//! A lack on this machine: files or memory. While it lasts no more jobs are asked for,
//! since they could only be given back; other notifiers have them meanwhile. Pure.

use std::time::Duration;

use rand::rngs::StdRng;
use ringback_service::backoff::Backoff;
use tokio::time::Instant;

/// The first pause; it doubles while the lack shows again soon after a pause,
const FIRST: Duration = Duration::from_millis(100);
/// up to this.
const LONGEST: Duration = Duration::from_secs(5);

/// Whether a lack is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It was not there before: worth a word in the log.
    First,
    /// It is still there.
    Again,
}

/// The lack, and the pauses it causes.
pub(crate) struct Lack {
    backoff: Backoff,
    last: Option<Pause>,
}

struct Pause {
    until: Instant,
    length: Duration,
}

impl Lack {
    pub(crate) fn new(rng: StdRng) -> Self {
        Self { backoff: Backoff::between(FIRST, LONGEST, rng), last: None }
    }

    /// A job could not be tried. Many such of one moment make one pause.
    pub(crate) fn show(&mut self, now: Instant) -> Shown {
        let shown = match &self.last {
            Some(pause) if now < pause.until => return Shown::Again,
            // It counts as over when it has not shown for as long as its pause was.
            Some(pause) if now < pause.until + pause.length.max(FIRST) => Shown::Again,
            Some(_) | None => {
                self.backoff.reset();
                Shown::First
            }
        };
        let length = self.backoff.next();
        self.last = Some(Pause { until: now + length, length });
        shown
    }

    /// Until when no job is to be asked for.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.last.as_ref().map(|pause| pause.until)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[tokio::test]
    async fn pauses_grow_while_the_lack_lasts_and_are_bounded() {
        let mut lack = Lack::new(StdRng::seed_from_u64(1));
        let mut now = Instant::now();
        assert_eq!(lack.show(now), Shown::First);
        for step in [200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            now = lack.until().unwrap();
            assert_eq!(lack.show(now), Shown::Again);
            let (pause, step) = (lack.until().unwrap() - now, Duration::from_millis(step));
            assert!(pause >= step / 2 && pause <= step, "{pause:?} for {step:?}");
        }
    }

    #[tokio::test]
    async fn jobs_of_one_moment_make_one_pause() {
        let mut lack = Lack::new(StdRng::seed_from_u64(2));
        let now = Instant::now();
        lack.show(now);
        let until = lack.until();
        (0..100).for_each(|_| assert_eq!(lack.show(now), Shown::Again));
        assert_eq!(lack.until(), until);
    }

    #[tokio::test]
    async fn a_lack_that_has_not_shown_for_a_while_begins_anew() {
        let mut lack = Lack::new(StdRng::seed_from_u64(3));
        let mut now = Instant::now();
        for _ in 0..8 {
            lack.show(now);
            now = lack.until().unwrap();
        }
        now += LONGEST;
        assert_eq!(lack.show(now), Shown::First);
        assert!(lack.until().unwrap() <= now + FIRST);
    }
}
