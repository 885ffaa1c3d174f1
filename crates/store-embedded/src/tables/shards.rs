//! What a shard keeps beside its jobs: the ledger, the numbers that only grow, who holds it,
//! and the last time that was seen. One row, read once per transaction and written once.

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::StoreError;
use ringback_core::state::State;
use serde::{Deserialize, Serialize};

use super::rows::{Journal, Name, Rows};

const SHARDS: TableDefinition<'static, u16, &[u8]> = TableDefinition::new("shards");

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardRow {
    /// The store's time when the row was written, in µs.
    pub(crate) time_us: u64,
    /// The last lease number.
    pub(crate) lease: u64,
    /// The last turn of a lane.
    pub(crate) turn: u64,
    /// Of the last claim.
    pub(crate) epoch: u64,
    /// Tombstones.
    pub(crate) ended: u64,
    pub(crate) ledger: Ledger,
}

/// How many jobs are in each state, and how many ever were accepted, purged or forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) accepted: u64,
    states: [u64; State::ALL.len()],
    pub(crate) purged: u64,
    pub(crate) forgotten_early: u64,
}

impl Ledger {
    pub(crate) fn of(&self, state: State) -> u64 {
        self.states[slot(state)]
    }

    pub(crate) fn enter(&mut self, state: State) {
        self.states[slot(state)] += 1;
    }

    /// A count below nothing would be a bug; it shows as nothing, and in the audit.
    pub(crate) fn leave(&mut self, state: State) {
        let count = &mut self.states[slot(state)];
        *count = count.saturating_sub(1);
    }

    /// Puts a count right that was found to be off by so many.
    pub(crate) fn shift(&mut self, state: State, by: i64) {
        let count = &mut self.states[slot(state)];
        *count = count.saturating_add_signed(by);
    }

    /// Whether each job that was accepted is in one place.
    pub(crate) fn adds_up(&self) -> bool {
        self.accepted == self.states.iter().sum::<u64>() + self.purged
    }
}

/// The place of a state's count in the row, which is written down: never changes.
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

pub(crate) struct Shards<'t>(pub(crate) Rows<'t, u16, &'static [u8]>);

impl<'t> Shards<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, Name::Shards, SHARDS)?))
    }

    pub(crate) fn get(&self, shard: u16) -> Result<ShardRow, StoreError> {
        self.0.get(shard)?.map_or_else(|| Ok(ShardRow::default()), |raw| unpack(raw.value()))
    }

    pub(crate) fn put(&mut self, shard: u16, row: &ShardRow) -> Result<(), StoreError> {
        let raw = postcard::to_stdvec(row).expect("plain data always serialises");
        self.0.insert(shard, raw.as_slice())?;
        Ok(())
    }
}

pub(crate) fn all(txn: &ReadTransaction) -> Result<Vec<(u16, ShardRow)>, StoreError> {
    let rows = txn.open_table(SHARDS)?;
    let rows = rows.iter()?.map(|row| {
        let (shard, raw) = row?;
        Ok((shard.value(), unpack(raw.value())?))
    });
    rows.collect()
}

fn unpack(raw: &[u8]) -> Result<ShardRow, StoreError> {
    postcard::from_bytes(raw).map_err(|_| StoreError::Unreadable("a shard's row"))
}
