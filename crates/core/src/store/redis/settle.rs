//! The settle edge: outcomes in groups of one receipt, so that jobs that were reserved together
//! and are done share what is said of them. The client brings along what is to be remembered of
//! each, so that the script need not read its record again.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use redis::Cmd;

use super::layout::{self, LaneId};
use super::script::{self, reply};
use super::{RedisStore, codec};
use crate::outcome::Outcome;
use crate::store::{Lateness, Lease, Settled, Shard, StoreError};

/// What jobs of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: Kind,
    receipt: [u8; 16],
    lane: [u8; 8],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Complete, and all of the job lies in its record.
    Complete,
    /// Any outcome.
    Other,
}

impl RedisStore {
    pub(in crate::store) async fn settle(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        lateness: &Lateness,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut answers = vec![Settled::Stale; items.len()];
        let mut lateness = lateness.encode();
        // A script settles a job once; of two leases of one job the second comes after.
        let mut left: Vec<usize> = (0..items.len()).collect();
        while !left.is_empty() {
            let mut met = HashSet::new();
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|n| met.insert(items[*n].0.locator));
            self.settle_once(shard, items, &now, &lateness, &mut answers).await?;
            // Told with the first that has an effect.
            if now.iter().any(|n| matches!(answers[*n], Settled::Applied | Settled::Late)) {
                lateness.clear();
            }
            left = later;
        }
        Ok(answers)
    }

    /// Settles those of the numbers given, each another job.
    async fn settle_once(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        numbers: &[usize],
        lateness: &str,
        answers: &mut [Settled],
    ) -> Result<(), StoreError> {
        let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
        for n in numbers {
            groups.entry(group_of(&items[*n])).or_default().push(*n);
        }
        let lanes: HashSet<LaneId> = numbers.iter().map(|n| items[*n].0.imprint.lane).collect();
        let over = over(items, numbers);
        let answer = self.run(&script::SETTLE, shard, |cmd| {
            self.keep(cmd);
            cmd.arg(lateness).arg(lanes.len());
            lanes.iter().for_each(|lane| {
                cmd.arg(&lane.0);
            });
            cmd.arg(over.len());
            over.iter().for_each(|number| {
                cmd.arg(&number.to_be_bytes());
            });
            groups.iter().for_each(|(group, numbers)| push(cmd, group, numbers, items));
        });
        let told = reply::list(answer.await?)?;
        if !told.is_empty() && told.len() != numbers.len() {
            return Err(StoreError::Unreadable("a settle's answers"));
        }
        for (index, n) in groups.into_values().flatten().enumerate() {
            answers[n] = told.get(index).map_or(Ok(Settled::Applied), codec::settled)?;
            // What is answered again was counted before.
            if answers[n] == Settled::Applied {
                items[n].0.imprint.unsettled.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// The batches that have no job left but these. A count that is wrong, as when the answer to
/// a call was lost, costs the store a look at the batch when its leases run out.
fn over(items: &[(Lease, Outcome)], numbers: &[usize]) -> Vec<u64> {
    let mut counts: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for n in numbers {
        let lease = &items[*n].0;
        let left = lease.imprint.unsettled.load(Ordering::Relaxed);
        counts.entry(lease.receipt.number).or_insert((left, 0)).1 += 1;
    }
    counts.into_iter().filter(|(_, (left, here))| left == here).map(|(number, _)| number).collect()
}

fn group_of((lease, outcome): &(Lease, Outcome)) -> Group {
    let plain = matches!(outcome, Outcome::Complete) && !lease.imprint.is_external;
    let kind = if plain { Kind::Complete } else { Kind::Other };
    Group { kind, receipt: codec::receipt(lease), lane: lease.imprint.lane.0 }
}

/// A group as settle.lua takes it.
fn push(cmd: &mut Cmd, group: &Group, numbers: &[usize], items: &[(Lease, Outcome)]) {
    let kind = match group.kind {
        Kind::Complete => "complete",
        Kind::Other => "other",
    };
    cmd.arg(kind).arg(&group.lane).arg(&group.receipt).arg(numbers.len());
    for n in numbers {
        let (lease, outcome) = &items[*n];
        cmd.arg(&lease.locator.0).arg(&layout::tombstone(lease));
        if group.kind == Kind::Other {
            cmd.arg(codec::settlement(lease, outcome));
        }
    }
}
