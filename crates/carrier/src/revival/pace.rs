//! How many jobs are to be revived by now: so many a second, a few every few milliseconds. What
//! a slow call has kept from being done is caught up on, but never faster than twice the rate. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// What is due is done together so often.
const TICK: Duration = Duration::from_millis(25);
/// No more than what this brings is caught up on.
const MOST_BEHIND: Duration = Duration::from_secs(1);

/// Jobs that may be revived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Jobs a second.
    rate: f64,
    /// Due by `at` and not done yet.
    owed: f64,
    at: Instant,
    /// Of these, so many may be done in this tick.
    open: usize,
    /// When the next tick begins.
    next: Instant,
}

impl Pace {
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        let mut pace = Self { rate: rate.into(), owed: 0.0, at: now, open: 0, next: now };
        pace.next = now + pace.wait();
        pace
    }

    /// How many may be revived now.
    pub(crate) fn allowed(&mut self, now: Instant) -> usize {
        if now >= self.next {
            let gained = now.duration_since(self.at).as_secs_f64() * self.rate;
            let most = (MOST_BEHIND.as_secs_f64() * self.rate).max(1.0);
            (self.owed, self.at) = ((self.owed + gained).min(most), now);
            let burst = (2.0 * TICK.as_secs_f64() * self.rate).max(1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most what a second brings, and never below nothing"
            )]
            let open = self.owed.min(burst) as usize;
            self.open = open;
            self.next = now + self.wait();
        }
        self.open
    }

    /// So many were revived.
    pub(crate) fn spend(&mut self, count: usize) {
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let spent = count as f64;
        self.owed = (self.owed - spent).max(0.0);
        self.open = self.open.saturating_sub(count);
    }

    /// When to ask again.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// A tick, or until there is a whole job.
    fn wait(&self) -> Duration {
        let lacks = (1.0 - (self.owed - self.owed.trunc()).max(0.0)) / self.rate;
        if self.owed >= 1.0 { TICK } else { TICK.max(Duration::from_secs_f64(lacks)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Revives all that is allowed for so long, each call taking its time; the most in one tick.
    fn run(rate: u32, lasting: Duration, call: Duration) -> (usize, usize) {
        let start = Instant::now();
        let (mut pace, mut now, mut done, mut most) = (Pace::new(rate, start), start, 0, 0);
        while now < start + lasting {
            let allowed = pace.allowed(now);
            if allowed == 0 {
                now = pace.next().max(now + Duration::from_micros(1));
                continue;
            }
            most = most.max(allowed);
            let batch = allowed.min(100);
            pace.spend(batch);
            done += batch;
            now += call;
        }
        (done, most)
    }

    #[test]
    fn the_rate_is_kept_whether_fast_or_slow() {
        for rate in [1_u32, 3, 39, 40, 41, 100, 2000, 33_333] {
            let (done, most) = run(rate, Duration::from_secs(20), Duration::from_micros(300));
            let wanted = 20 * rate as usize;
            let off = done.abs_diff(wanted);
            assert!(off <= 1 + wanted / 100, "{done} in 20 s at {rate}/s");
            assert!(most <= 1 + rate as usize / 20, "{most} in a tick at {rate}/s");
        }
    }

    #[test]
    fn what_was_kept_up_is_caught_up_on_at_twice_the_rate_at_most() {
        let start = Instant::now();
        let mut pace = Pace::new(2000, start);
        let late = start + Duration::from_millis(400);
        assert_eq!(pace.allowed(late), 100);
        pace.spend(100);
        assert_eq!((pace.allowed(late), pace.next()), (0, late + TICK));
        assert_eq!(pace.allowed(late + TICK), 100);
        // After a long time no more than a second's worth is owed.
        let mut pace = Pace::new(10, start);
        let mut now = start + Duration::from_secs(3600);
        let mut burst = 0;
        for _ in 0..20 {
            let allowed = pace.allowed(now);
            pace.spend(allowed);
            burst += allowed;
            now = pace.next();
        }
        assert!(burst <= 16, "{burst}");
    }

    #[test]
    fn calls_slower_than_the_rate_do_not_pile_up() {
        let (done, most) = run(100_000, Duration::from_secs(2), Duration::from_millis(2));
        assert!((98_000..=101_000).contains(&done) && most <= 5000, "{done}, {most}");
    }
}
