//! The settle edge: outcomes in groups of one receipt, so that jobs that were reserved together
//! and are done share what is said of them. The client brings along what is to be remembered of
//! each, so that the script need not read its record again. A reserve can go along: an exchange.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use redis::{Cmd, Value};
use ringback_core::contract::{Lateness, Lease, Reserve, Reserved, Settled, Shard, StoreError};
use ringback_core::lane::LaneId;
use ringback_core::outcome::Outcome;
use tokio::time::Instant;

use super::layout;
use super::reserve::Order;
use super::script::{self, reply};
use super::{RedisStore, codec};

/// What jobs of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: Kind,
    receipt: [u8; 16],
    lane: [u8; 8],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Complete, and all of the job lies in its record; nothing more is to be told of it.
    Complete,
    /// Any outcome.
    Other,
}

impl RedisStore {
    pub async fn settle(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        lateness: &Lateness,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut rounds = Rounds::new(items, lateness);
        while let Some(words) = rounds.next() {
            self.settle_once(shard, words, &mut rounds).await?;
        }
        Ok(rounds.answers)
    }

    /// Settles, and reserves with the last call that this takes.
    pub async fn exchange(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        lateness: &Lateness,
        ask: &Reserve<'_>,
    ) -> Result<(Vec<Settled>, Reserved), StoreError> {
        let mut rounds = Rounds::new(items, lateness);
        while let Some(words) = rounds.next() {
            if rounds.left.is_empty() {
                let reserved = self.exchange_once(shard, words, &mut rounds, ask).await?;
                return Ok((rounds.answers, reserved));
            }
            self.settle_once(shard, words, &mut rounds).await?;
        }
        Ok((rounds.answers, self.reserve(shard, ask).await?))
    }

    async fn settle_once(
        &self,
        shard: Shard,
        words: Words,
        rounds: &mut Rounds<'_>,
    ) -> Result<(), StoreError> {
        let answer = self.run(&script::SETTLE, shard, |cmd| self.push_words(cmd, &words, rounds)).await?;
        rounds.answered(words, answer)
    }

    async fn exchange_once(
        &self,
        shard: Shard,
        words: Words,
        rounds: &mut Rounds<'_>,
        ask: &Reserve<'_>,
    ) -> Result<Reserved, StoreError> {
        let (asked, order) = (Instant::now(), Order::of(ask));
        let answer = self.run(&script::EXCHANGE, shard, |cmd| {
            order.push(cmd);
            self.push_words(cmd, &words, rounds);
            cmd.arg(order.len());
        });
        let mut halves = reply::list(answer.await?)?.into_iter();
        let (Some(settled), Some(reserved)) = (halves.next(), halves.next()) else {
            return Err(StoreError::Unreadable("an exchange's answer"));
        };
        rounds.answered(words, settled)?;
        self.reserved(shard, reserved, asked).await
    }

    /// Words as settle.lua takes them.
    fn push_words(&self, cmd: &mut Cmd, words: &Words, rounds: &Rounds<'_>) {
        self.keep(cmd);
        cmd.arg(&rounds.lateness).arg(words.lanes.len());
        words.lanes.iter().for_each(|lane| {
            cmd.arg(&lane.0);
        });
        cmd.arg(words.over.len());
        words.over.iter().for_each(|number| {
            cmd.arg(&number.to_be_bytes());
        });
        words.groups.iter().for_each(|(group, numbers)| push(cmd, group, numbers, rounds.items));
    }
}

/// What one script settles, each another job.
struct Words {
    /// By their numbers.
    groups: BTreeMap<Group, Vec<usize>>,
    lanes: HashSet<LaneId>,
    over: Vec<u64>,
}

/// A script settles a job once; of two leases of one job the second comes after.
struct Rounds<'a> {
    items: &'a [(Lease, Outcome)],
    /// By their numbers.
    left: Vec<usize>,
    /// Told with the first that has an effect.
    lateness: String,
    answers: Vec<Settled>,
}

impl<'a> Rounds<'a> {
    fn new(items: &'a [(Lease, Outcome)], lateness: &Lateness) -> Self {
        let answers = vec![Settled::Stale; items.len()];
        Self { items, left: (0..items.len()).collect(), lateness: lateness.encode(), answers }
    }

    /// The next that one script can settle.
    fn next(&mut self) -> Option<Words> {
        if self.left.is_empty() {
            return None;
        }
        let (mut met, items) = (HashSet::new(), self.items);
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.left).into_iter().partition(|n| met.insert(items[*n].0.locator()));
        self.left = later;
        let lanes = now.iter().map(|n| items[*n].0.grant().hint.lane).collect();
        let over = over(items, &now);
        let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
        for n in now {
            groups.entry(group_of(&items[n])).or_default().push(n);
        }
        Some(Words { groups, lanes, over })
    }

    fn answered(&mut self, words: Words, answer: Value) -> Result<(), StoreError> {
        let told = reply::list(answer)?;
        let count: usize = words.groups.values().map(Vec::len).sum();
        if !told.is_empty() && told.len() != count {
            return Err(StoreError::Unreadable("a settle's answers"));
        }
        for (index, n) in words.groups.into_values().flatten().enumerate() {
            let settled = told.get(index).map_or(Ok(Settled::Applied), codec::settled)?;
            self.answers[n] = settled;
            // What is answered again was counted before.
            if settled == Settled::Applied {
                self.items[n].0.grant().hint.unsettled.fetch_sub(1, Ordering::Relaxed);
            }
            if matches!(settled, Settled::Applied | Settled::Late) {
                self.lateness.clear();
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
        let left = lease.grant().hint.unsettled.load(Ordering::Relaxed);
        counts.entry(lease.grant().receipt.number).or_insert((left, 0)).1 += 1;
    }
    counts.into_iter().filter(|(_, (left, here))| left == here).map(|(number, _)| number).collect()
}

fn group_of((lease, outcome): &(Lease, Outcome)) -> Group {
    let plain =
        matches!(outcome, Outcome::Complete) && !lease.grant().hint.is_external && lease.response().is_none();
    let kind = if plain { Kind::Complete } else { Kind::Other };
    Group { kind, receipt: codec::receipt(lease), lane: lease.grant().hint.lane.0 }
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
        cmd.arg(&lease.grant().locator.0).arg(&layout::tombstone(lease));
        if group.kind == Kind::Other {
            cmd.arg(codec::settlement(lease, outcome));
        }
    }
}
