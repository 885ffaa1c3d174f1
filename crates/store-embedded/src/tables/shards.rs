//! One row per shard: the ledger of its jobs, the last lease, turn and epoch, the number of tombstones, the latest time
//! of the store, and the totals of its archive outbox. Read once per transaction and written once per group.

use std::collections::BTreeMap;

use ringback_core::state::State;
use ringback_core::store_types::{Epoch, StateCounts, StoreError, Uncounted};
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::archive::ArchiveRow;
use super::definitions::SHARDS;
use super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardRow {
    /// The latest time of the store when the row was written, in µs.
    pub(crate) time_us: u64,
    /// The last lease number.
    pub(crate) lease: u64,
    /// The last turn of a lane.
    pub(crate) turn: u64,
    /// The epoch of the last claim.
    pub(crate) epoch: u64,
    pub(crate) tombstones: u64,
    pub(crate) ledger: Ledger,
    /// The settings and totals of the archive outbox, if the shard ever had an archive.
    pub(crate) archive: Option<ArchiveRow>,
    /// The last number of a job that arrived in an ordered topic.
    pub(crate) arrival: u64,
    /// How many keys have jobs that wait behind another one.
    pub(crate) waiting_keys: u64,
    /// Dead jobs before this time of death, in ms, and number hold their keys, so that they are not evicted.
    pub(crate) held_dead: (u64, u64),
}

impl ShardRow {
    /// Whether the shard was claimed after this epoch. A released epoch is still the last one until the next claim.
    pub(crate) fn is_fenced(&self, epoch: &Epoch) -> bool {
        self.epoch.to_string() != epoch.0
    }
}

/// How many jobs are in each state, how many were ever accepted, purged, or evicted early as
/// tombstones, and how many are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) accepted: u64,
    states: [u64; State::VARIANTS.len()],
    pub(crate) purged: u64,
    pub(crate) evicted_early: u64,
    /// Accepted jobs whose records a repair did not find although they had not ended.
    missing: u64,
}

impl Ledger {
    pub(crate) fn of(&self, state: State) -> u64 {
        self.states[slot(state)]
    }

    pub(crate) fn counts(&self) -> StateCounts {
        let Self { purged, missing, .. } = *self;
        let mut counts = StateCounts { purged, missing, ..StateCounts::default() };
        for &state in State::VARIANTS {
            *counts.of(state) = self.of(state);
        }
        counts
    }

    pub(crate) fn enter(&mut self, state: State) {
        self.states[slot(state)] += 1;
    }

    /// Counts one job less in a state. A count below zero would be a bug: it stays zero, and the check finds it.
    pub(crate) fn leave(&mut self, state: State) {
        let count = &mut self.states[slot(state)];
        *count = count.saturating_sub(1);
    }

    /// Corrects a count by a difference that the check found.
    pub(crate) fn shift(&mut self, state: State, by: i64) {
        let count = &mut self.states[slot(state)];
        *count = count.saturating_add_signed(by);
    }

    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Returns how many jobs were accepted and are neither in a state, nor purged, nor missing.
    pub(crate) fn uncounted(&self) -> Uncounted {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let missing = number(self.missing);
        let jobs = number(self.accepted).saturating_sub(number(self.known())).saturating_sub(missing);
        Uncounted { jobs, missing, tombstones: 0 }
    }

    /// Counts accepted jobs that are in no state and not purged as missing. If there are more jobs than were accepted,
    /// none is missing, and all count as accepted.
    pub(crate) fn balance(&mut self) {
        self.missing = self.accepted.saturating_sub(self.known());
        self.accepted = self.accepted.max(self.known());
    }

    /// Returns how many jobs are in some state, ended ones included, or were purged.
    fn known(&self) -> u64 {
        self.states.iter().sum::<u64>() + self.purged
    }
}

/// Returns the position of a state's count in the row, which is stored and never changes.
const fn slot(state: State) -> usize {
    match state {
        State::Delayed => 0,
        State::Ready => 1,
        State::Reserved => 2,
        State::Done => 3,
        State::Dead => 4,
        State::Cancelled => 5,
    }
}

pub(crate) struct Shards<A: Access>(Rows<A, u16, &'static [u8]>);

impl<A: Access> Shards<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self(access.open(SHARDS)?))
    }

    pub(crate) fn get(&self, shard: u16) -> Result<ShardRow> {
        self.0.read(shard, unpack)?.unwrap_or_else(|| Ok(ShardRow::default()))
    }

    pub(crate) fn all(&self) -> Result<BTreeMap<u16, ShardRow>> {
        let mut rows = BTreeMap::new();
        self.0.each(|shard, raw| {
            rows.insert(shard, unpack(raw)?);
            Ok(())
        })?;
        Ok(rows)
    }
}

impl Shards<Writing<'_>> {
    pub(crate) fn put(&mut self, shard: u16, row: &ShardRow) -> Result<()> {
        self.0.insert(shard, pack(row).as_slice())
    }
}

fn unpack(raw: &[u8]) -> Result<ShardRow> {
    Ok(postcard::from_bytes(raw).map_err(|_| StoreError::Unreadable("a shard's row"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(accepted: u64, ready: u64, missing: u64) -> Ledger {
        let mut ledger = Ledger { accepted, missing, ..Ledger::default() };
        (0..ready).for_each(|_| ledger.enter(State::Ready));
        ledger
    }

    #[test]
    fn jobs_that_were_accepted_and_are_nowhere_are_missing_until_they_are_there() {
        let balanced = |mut ledger: Ledger| {
            ledger.balance();
            assert_eq!(ledger.uncounted().jobs, 0);
            (ledger.accepted, ledger.missing())
        };
        assert_eq!(balanced(ledger(5, 5, 0)), (5, 0));
        assert_eq!(balanced(ledger(5, 3, 0)), (5, 2));
        assert_eq!(balanced(ledger(5, 3, 1)), (5, 2));
        assert_eq!(balanced(ledger(5, 4, 2)), (5, 1));
        assert_eq!(balanced(ledger(5, 7, 1)), (7, 0));
    }
}
