//! [`ShardFields`]: the packed value `fields` of a shard, whose layout is in `prelude/shard.lua`, for questions that come
//! often and need no script: a plain command costs Redis a tenth of one.

use std::time::Duration;

use ringback_core::store_types::{Shard, StoreError};

use crate::redis_store::RedisStore;
use crate::topology::Confirmation;

/// The places of the fields that are read here. Each is a double.
const ACCEPTED: usize = 0;
const READY: usize = 2;
const NEXT: usize = 6;
const LEASE_AT: usize = 8;
const WAITS_UNTIL: usize = 12;
const COUNT: usize = 14;

/// For how long a carrier leaves due jobs to the notifier that waits for them, as `prelude/waiter.lua` says.
const GRACE: f64 = 20.0;
/// How long a carrier leaves that notifier alone at least after it has looked, so how often it looks at most.
const LOOK_EVERY: f64 = 50.0;
/// The longest registration of a notifier, and the furthest time that it plans: what is later was stored before the clock
/// was set back.
const LONGEST_WAIT: f64 = 15_000.0;
const LONGEST_PLAN: f64 = 5_000.0;

/// The fields of a shard; times are in ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardFields([f64; COUNT]);

impl ShardFields {
    /// Reads the value; `None`, of a shard without jobs so far, has only zeros. Fails if it has another length.
    fn parse(value: Option<Vec<u8>>) -> Result<Self, StoreError> {
        let mut fields = [0.0; COUNT];
        if let Some(value) = value {
            let (doubles, rest) = value.as_chunks();
            if doubles.len() != COUNT || !rest.is_empty() {
                return Err(StoreError::Unreadable("the fields of a shard"));
            }
            fields.iter_mut().zip(doubles).for_each(|(field, bytes)| *field = f64::from_le_bytes(*bytes));
        }
        Ok(Self(fields))
    }

    /// How many jobs the shard has accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.0[ACCEPTED] as u64
    }

    pub(crate) fn ready(&self) -> u64 {
        self.0[READY] as u64
    }

    /// Whether a notifier waits for due jobs. `now` is the time of the server in µs, as in `leaves_to_waiter`.
    pub(crate) fn has_waiter(&self, now: u64) -> bool {
        let waits = self.0[WAITS_UNTIL] - now as f64 / 1000.0;
        waits > 0.0 && waits <= LONGEST_WAIT
    }

    /// Returns for how long a carrier leaves due jobs to the notifier that waits for them, at most until the time to check a
    /// lease; `None` if no notifier waits or it is late, if the carrier was called, or if it is time to check a lease.
    pub(crate) fn leaves_to_waiter(&self, now: u64) -> Option<Duration> {
        let until = |at: f64| at - now as f64 / 1000.0;
        let left = until(self.0[NEXT] + GRACE);
        // The scripts mark a call of the carrier by a time in the past that ends with half a millisecond.
        let is_called = left <= GRACE && self.0[NEXT].fract() > 0.0;
        if is_called || !self.has_waiter(now) || left <= 0.0 || left > LONGEST_PLAN + GRACE {
            return None;
        }
        let left = left.max(LOOK_EVERY);
        let of_lease = if self.0[LEASE_AT] == 0.0 { left } else { until(self.0[LEASE_AT]) };
        (of_lease > 0.0).then(|| Duration::from_secs_f64(left.min(of_lease) / 1000.0))
    }
}

impl RedisStore {
    /// Reads the fields of a shard.
    pub(crate) async fn read_fields(
        &self,
        shard: Shard,
        confirmation: Confirmation,
    ) -> Result<ShardFields, StoreError> {
        let mut read = self.command("HMGET", shard, "the fields of a shard");
        if confirmation == Confirmation::ByReplicas {
            read = read.confirmed();
        }
        let (value,) = read.arg((self.keys.shard(shard), "fields")).run().await?;
        ShardFields::parse(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: f64 = 1_000_000.0;

    fn left(next: f64, lease_at: f64, waits_until: f64) -> Option<Duration> {
        let mut fields = [0.0; COUNT];
        (fields[NEXT], fields[LEASE_AT], fields[WAITS_UNTIL]) = (next, lease_at, waits_until);
        let value = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        ShardFields::parse(Some(value)).expect("a value").leaves_to_waiter(1_000_000_000)
    }

    #[test]
    fn a_carrier_leaves_due_jobs_to_a_notifier_that_waits_and_is_in_time() {
        let (waits, ms) = (NOW_MS + 9_000.0, |ms| Some(Duration::from_millis(ms)));
        assert_eq!(left(NOW_MS + 100.0, 0.0, waits), ms(120));
        assert_eq!(left(NOW_MS - 19.0, 0.0, waits), ms(50), "it is looked at rarely");
        assert_eq!(left(NOW_MS - 20.0, 0.0, waits), None, "it is late");
        assert_eq!(left(NOW_MS - 0.5, 0.0, waits), None, "the carrier was called");
        assert_eq!(left(NOW_MS + 99.5, 0.0, waits), Some(Duration::from_micros(119_500)), "nothing is due");
        assert_eq!(left(NOW_MS + 100.0, NOW_MS + 7.0, waits), ms(7), "a lease is to be checked before");
        assert_eq!(left(NOW_MS + 100.0, NOW_MS, waits), None, "a lease is to be checked");
        assert_eq!(left(NOW_MS + 100.0, 0.0, NOW_MS), None, "nobody waits any more");
        assert_eq!(left(NOW_MS + 100.0, 0.0, NOW_MS + 15_001.0), None, "the clock was set back");
        assert_eq!(left(NOW_MS + 5_001.0, 0.0, waits), None, "the clock was set back");
    }

    #[test]
    fn a_value_of_another_length_is_refused() {
        assert_eq!(ShardFields::parse(None).expect("no jobs").accepted(), 0);
        for length in [0, 104, 111, 120] {
            assert!(ShardFields::parse(Some(vec![0; length])).is_err(), "{length}");
        }
    }
}
