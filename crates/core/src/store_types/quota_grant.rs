//! Grants of quotas: how many more jobs a tenant may submit. All API processes draw from what the store counts, so they
//! share one quota. The same rule for stores in this process is in [`QuotaGrants`].

use std::collections::BTreeMap;
use std::time::Duration;

use crate::access::Quota;
use crate::clock::Timestamp;

/// Grants are counted together for this long, in milliseconds.
pub const QUOTA_SLOT_MS: u64 = 250;
/// For how many slots they are kept.
pub const QUOTA_SLOTS: u64 = 40;
/// For how long after the jobs of a tenant were counted, draws can be judged by that count.
pub const MAX_COUNT_AGE: Duration = Duration::from_millis(QUOTA_SLOT_MS * (QUOTA_SLOTS - 2));
/// In a second.
const SLOTS_PER_SECOND: u64 = 1000 / QUOTA_SLOT_MS;
/// Stands for no limit. Scripts compute with it exactly.
const UNLIMITED: u64 = 1 << 50;

/// A draw: how many jobs are wanted, and the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaRequest {
    /// How many jobs.
    pub wanted: u64,
    /// How many the tenant may submit a second.
    pub per_second: u64,
    /// How many more it may have than when its jobs were counted.
    pub room: u64,
    /// How long ago they were counted.
    pub age: Duration,
}

impl QuotaRequest {
    /// A draw of a tenant with a quota. It had `jobs` jobs when they were counted, `age` ago.
    pub fn new(wanted: u64, quota: Quota, (jobs, age): (u64, Duration)) -> Self {
        Self {
            wanted,
            per_second: quota.jobs_per_second.map_or(UNLIMITED, u64::from),
            room: quota.jobs.map_or(UNLIMITED, |limit| limit.saturating_sub(jobs)),
            age,
        }
    }
}

/// The answer to a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaGrant {
    /// How many jobs may be submitted.
    pub granted: u64,
    /// Why they are not more.
    pub limit: QuotaLimit,
}

/// The limit that leaves a draw the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaLimit {
    /// The jobs of a second.
    Rate,
    Jobs,
}

/// The draws of one tenant, for a store in the same process. `installation/grant_quota.lua` does the same on Redis.
#[derive(Clone, Debug, Default)]
pub struct QuotaGrants(BTreeMap<u64, u64>);

impl QuotaGrants {
    pub fn grant_quota(
        &mut self,
        now: Timestamp,
        QuotaRequest { wanted, per_second, room, age }: QuotaRequest,
    ) -> QuotaGrant {
        let slot = now.as_millis() / QUOTA_SLOT_MS;
        // What lies in the future was counted before the clock was set back.
        self.0.retain(|&at, _| at <= slot && at + QUOTA_SLOTS > slot);
        let since = |first: u64| self.0.range(first..).map(|(_, n)| n).sum::<u64>();
        let counted = now.as_millis().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let rate = per_second.saturating_sub(since((slot + 1).saturating_sub(SLOTS_PER_SECOND)));
        // What was drawn just before the count may not have been submitted then.
        let room = room.saturating_sub(since((counted / QUOTA_SLOT_MS).saturating_sub(1)));
        let granted = wanted.min(rate).min(room);
        if granted > 0 {
            *self.0.entry(slot).or_default() += granted;
        }
        QuotaGrant { granted, limit: if rate <= room { QuotaLimit::Rate } else { QuotaLimit::Jobs } }
    }

    /// Whether all draws are too old to count at this time or later.
    pub fn are_over(&self, now: Timestamp) -> bool {
        let slot = now.as_millis() / QUOTA_SLOT_MS;
        self.0.keys().all(|at| at + QUOTA_SLOTS <= slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_795_000_000_000;

    fn quota(jobs_per_second: Option<u32>, jobs: Option<u64>) -> Quota {
        Quota { jobs_per_second, jobs, ..Quota::default() }
    }

    #[test]
    fn no_more_than_the_rate_is_drawn_in_a_second() {
        let (mut draws, quota) = (QuotaGrants::default(), quota(Some(100), None));
        let mut drawn = |ms, wanted| {
            let draw = QuotaRequest::new(wanted, quota, (0, Duration::ZERO));
            draws.grant_quota(Timestamp::from_millis(START + ms), draw)
        };
        assert_eq!(drawn(0, 60).granted, 60);
        assert_eq!(drawn(500, 60), QuotaGrant { granted: 40, limit: QuotaLimit::Rate });
        assert_eq!(drawn(900, 1).granted, 0);
        assert_eq!(drawn(1000, 100).granted, 60);
        assert_eq!(drawn(1500, 100).granted, 40);
    }

    #[test]
    fn what_was_drawn_since_the_count_is_not_drawn_again() {
        let (mut draws, quota) = (QuotaGrants::default(), quota(None, Some(100)));
        let mut drawn = |ms, count| {
            draws.grant_quota(Timestamp::from_millis(START + ms), QuotaRequest::new(30, quota, count))
        };
        let second = Duration::from_secs(1);
        assert_eq!(drawn(0, (50, Duration::ZERO)).granted, 30);
        assert_eq!(drawn(1000, (50, second)), QuotaGrant { granted: 20, limit: QuotaLimit::Jobs });
        assert_eq!(drawn(2000, (50, 2 * second)).granted, 0);
        // The next count has them.
        assert_eq!(drawn(3000, (90, Duration::ZERO)).granted, 10);
        assert_eq!(drawn(3000, (200, Duration::ZERO)).granted, 0);
    }

    #[test]
    fn draws_are_forgotten_and_a_clock_that_is_set_back_stops_nobody() {
        let (mut draws, quota) = (QuotaGrants::default(), quota(Some(10), None));
        let mut drawn = |ms| {
            let draw = QuotaRequest::new(10, quota, (0, Duration::ZERO));
            draws.grant_quota(Timestamp::from_millis(START + ms), draw).granted
        };
        assert_eq!((drawn(100_000), drawn(0), drawn(10)), (10, 10, 0));
        assert!(!draws.are_over(Timestamp::from_millis(START + 1000)));
        assert!(draws.are_over(Timestamp::from_millis(START + 10_000)));
    }
}
