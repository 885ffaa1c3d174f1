//! The rate limit of a bulk operation: jobs per second, allowed in small bursts. A backlog caused by slow calls is
//! limited to the jobs of one second, and caught up at twice the rate at most. The caller passes the time.

use std::time::Duration;

use tokio::time::Instant;

/// The interval between two bursts.
const TICK: Duration = Duration::from_millis(25);
/// The largest backlog, as the time in which it builds up.
const MAX_BACKLOG: Duration = Duration::from_secs(1);

/// The rate limit of one bulk operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// Jobs per second.
    rate: f64,
    /// Jobs allowed by the time `at` and not changed yet.
    backlog: f64,
    at: Instant,
    /// The part of the backlog that may be changed in this burst.
    burst: usize,
    /// When the next burst begins.
    next: Instant,
}

impl RateLimit {
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        let mut limit = Self { rate: rate.into(), backlog: 0.0, at: now, burst: 0, next: now };
        limit.next = now + limit.wait();
        limit
    }

    /// Returns how many jobs may still be changed in the current burst. Begins the next burst if its time has come.
    pub(crate) fn allowed(&mut self, now: Instant) -> usize {
        if now >= self.next {
            let gained = now.duration_since(self.at).as_secs_f64() * self.rate;
            let max = (MAX_BACKLOG.as_secs_f64() * self.rate).max(1.0);
            (self.backlog, self.at) = ((self.backlog + gained).min(max), now);
            let max_burst = (2.0 * TICK.as_secs_f64() * self.rate).max(1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most the jobs of one second, and never negative"
            )]
            let burst = self.backlog.min(max_burst) as usize;
            self.burst = burst;
            self.next = now + self.wait();
        }
        self.burst
    }

    /// Subtracts changed jobs from the burst and the backlog, neither of which falls below 0.
    pub(crate) fn spend(&mut self, count: usize) {
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let spent = count as f64;
        self.backlog = (self.backlog - spent).max(0.0);
        self.burst = self.burst.saturating_sub(count);
    }

    /// Returns when the next burst begins.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Returns the time to the next burst: a tick, or longer if less than one job is allowed until then.
    fn wait(&self) -> Duration {
        let one_job = (1.0 - (self.backlog - self.backlog.trunc()).max(0.0)) / self.rate;
        if self.backlog >= 1.0 { TICK } else { TICK.max(Duration::from_secs_f64(one_job)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes all jobs that are allowed within `lasting`, in calls that each take `call`. Returns the number of
    /// jobs and the largest allowed number.
    fn run(rate: u32, lasting: Duration, call: Duration) -> (usize, usize) {
        let start = Instant::now();
        let (mut limit, mut now, mut done, mut most) = (RateLimit::new(rate, start), start, 0, 0);
        while now < start + lasting {
            let allowed = limit.allowed(now);
            if allowed == 0 {
                now = limit.next().max(now + Duration::from_micros(1));
                continue;
            }
            most = most.max(allowed);
            let batch = allowed.min(100);
            limit.spend(batch);
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
    fn a_backlog_is_caught_up_at_twice_the_rate_at_most() {
        let start = Instant::now();
        let mut limit = RateLimit::new(2000, start);
        let late = start + Duration::from_millis(400);
        assert_eq!(limit.allowed(late), 100);
        limit.spend(100);
        assert_eq!((limit.allowed(late), limit.next()), (0, late + TICK));
        assert_eq!(limit.allowed(late + TICK), 100);
        // After a long pause the backlog is the jobs of one second.
        let mut limit = RateLimit::new(10, start);
        let mut now = start + Duration::from_secs(3600);
        let mut burst = 0;
        for _ in 0..20 {
            let allowed = limit.allowed(now);
            limit.spend(allowed);
            burst += allowed;
            now = limit.next();
        }
        assert!(burst <= 16, "{burst}");
    }

    #[test]
    fn calls_slower_than_the_rate_cause_larger_bursts() {
        let (done, most) = run(100_000, Duration::from_secs(2), Duration::from_millis(2));
        assert!((98_000..=101_000).contains(&done) && most <= 5000, "{done}, {most}");
    }
}
