//! `DueWaits`: the shards whose due jobs this notifier takes without a carrier, and when to reserve from each. Pure.

use std::collections::BTreeMap;

use ringback_core::store_types::Shard;
use tokio::time::Instant;

/// When the next job of which shard is due; `None` once its reserve was planned.
#[derive(Debug, Default)]
pub(crate) struct DueWaits(BTreeMap<Shard, Option<Instant>>);

impl DueWaits {
    /// Plans a reserve at a time; with `None` this notifier no longer waits for due jobs of the shard.
    pub(crate) fn set(&mut self, shard: Shard, at: Option<Instant>) {
        match at {
            Some(_) => self.0.insert(shard, at),
            None => self.0.remove(&shard),
        };
    }

    pub(crate) fn has(&self, shard: Shard) -> bool {
        self.0.contains_key(&shard)
    }

    /// Whether a reserve of the shard is planned by a time.
    pub(crate) fn is_planned_by(&self, shard: Shard, time: Instant) -> bool {
        self.0.get(&shard).copied().flatten().is_some_and(|at| at <= time)
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.0.keys().copied()
    }

    /// Plans earlier reserves for jobs that were announced: `due` returns when the first one of a shard is due.
    pub(crate) fn announced(&mut self, due: impl Fn(Shard) -> Option<Instant>) {
        for (shard, at) in &mut self.0 {
            if let Some(due) = due(*shard) {
                *at = Some(at.map_or(due, |at| at.min(due)));
            }
        }
    }

    /// When the first reserve is planned; `None` if none is. Leaves shards out that are `busy` with a reserve, because its
    /// answer plans the next one.
    pub(crate) fn next(&self, busy: impl Fn(Shard) -> bool) -> Option<Instant> {
        self.0.iter().filter(|(shard, _)| !busy(**shard)).filter_map(|(_, at)| *at).min()
    }

    /// Returns the shards to reserve from now, each once.
    pub(crate) fn take_due(&mut self, now: Instant, busy: impl Fn(Shard) -> bool) -> Vec<Shard> {
        let due = self.0.iter_mut().filter(|(shard, at)| !busy(**shard) && at.is_some_and(|at| at <= now));
        due.map(|(shard, at)| {
            *at = None;
            *shard
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_announced_job_is_taken_when_it_is_due_and_only_while_the_notifier_waits() {
        let (mut waits, now, shards) = (DueWaits::default(), Instant::now(), [Shard(0), Shard(1)]);
        let [soon, later] = [10, 20].map(|ms| now + Duration::from_millis(ms));
        waits.set(shards[0], Some(later));
        waits.announced(|_| Some(soon));
        assert_eq!(waits.next(|_| false), Some(soon), "only the shard with a wait has a plan");
        assert!(waits.is_planned_by(shards[0], soon) && !waits.is_planned_by(shards[0], now));
        assert_eq!(waits.shards().collect::<Vec<_>>(), [shards[0]]);
        assert_eq!(waits.take_due(now, |_| false), []);
        assert_eq!((waits.take_due(later, |_| true), waits.next(|_| true)), (Vec::new(), None), "it is busy");
        assert_eq!(waits.take_due(soon, |_| false), [shards[0]]);
        assert_eq!(waits.take_due(later, |_| false), [], "each plan once");
        assert!(waits.has(shards[0]));
        waits.set(shards[0], None);
        waits.announced(|_| Some(soon));
        assert!(!waits.has(shards[0]) && waits.next(|_| false).is_none());
    }
}
