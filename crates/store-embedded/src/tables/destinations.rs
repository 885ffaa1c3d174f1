//! Paused destinations, by shard and name. Each has a number in its shard, which determines the turn at which the lanes
//! that it holds are kept. All shards have the same pauses.

use ringback_core::destination::DestinationPause;
use ringback_core::lane::Lane;
use ringback_core::store_types::{
    MAX_PAUSED_DESTINATIONS, MAX_PAUSED_DESTINATIONS_OF_TENANT, PauseLimit, StoreError,
};
use serde::{Deserialize, Serialize};

use super::counts::Pause;
use super::ready::turn_of_pause;
use super::rows::{Access, Rows, Writing, pack};
use super::times::LAST;
use crate::error::Result;

/// A paused destination. Packed with postcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PauseRow {
    /// Never none: the row is removed instead.
    pub(crate) pause: Pause,
    /// The number of the pause, from 1, unique in the shard.
    pub(crate) number: u64,
}

impl PauseRow {
    /// Returns the turn at which the lanes that this pause holds are kept.
    pub(crate) fn turn(self) -> u64 {
        turn_of_pause(self.number)
    }
}

pub(crate) struct Destinations<A: Access>(pub(crate) Rows<A, (u16, &'static str), &'static [u8]>);

impl<A: Access> Destinations<A> {
    pub(crate) fn get(&self, shard: u16, name: &str) -> Result<Option<PauseRow>> {
        self.0.read((shard, name), unpack)?.transpose()
    }

    pub(crate) fn all(&self, shard: u16) -> Result<Vec<(String, PauseRow)>> {
        let most = usize::try_from(MAX_PAUSED_DESTINATIONS).unwrap_or(usize::MAX);
        let rows = self
            .0
            .list((shard, "")..=(shard, LAST), most, |(_, name), raw| (name.to_owned(), unpack(raw)))?;
        rows.into_iter().map(|(name, row)| Ok((name, row?))).collect()
    }

    /// Returns the turn at which a lane is kept because its destination is paused; `None` if that is not paused.
    pub(crate) fn holder(&self, shard: u16, lane: &str) -> Result<Option<u64>> {
        let mut pauses = self.pauses(shard, lane)?.into_iter();
        Ok(pauses.find(|row| row.pause == Pause::Paused).map(PauseRow::turn))
    }

    /// Whether a lane may be kept at a turn: because its destination is paused, or is resuming.
    pub(crate) fn may_park(&self, shard: u16, lane: &str, turn: u64) -> Result<bool> {
        Ok(self.pauses(shard, lane)?.iter().any(|row| row.turn() == turn))
    }

    fn pauses(&self, shard: u16, lane: &str) -> Result<Vec<PauseRow>> {
        // Nearly always nothing is paused.
        if self.0.len()? == 0 {
            return Ok(Vec::new());
        }
        let names = Lane::parse(lane).and_then(DestinationPause::names_of);
        let rows = names.iter().flatten().filter_map(|name| self.get(shard, name).transpose());
        rows.collect()
    }
}

impl Destinations<Writing<'_>> {
    /// Pauses a destination in a shard. If that would exceed a limit, changes nothing and returns the limit.
    pub(crate) fn pause(&mut self, shard: u16, pause: &DestinationPause) -> Result<Option<PauseLimit>> {
        let (name, all) = (pause.name(), self.all(shard)?);
        let known = all.iter().find(|(known, _)| *known == name).map(|(_, row)| row.number);
        if known.is_none() {
            let (prefix, names) = (pause.tenant_prefix(), all.iter().map(|(name, _)| name.as_str()));
            let exceeded = PauseLimit::exceeded(
                names,
                prefix.as_deref(),
                MAX_PAUSED_DESTINATIONS,
                MAX_PAUSED_DESTINATIONS_OF_TENANT,
            );
            if exceeded.is_some() {
                return Ok(exceeded);
            }
        }
        let last = all.iter().map(|(_, row)| row.number).max().unwrap_or(0);
        let row = PauseRow { pause: Pause::Paused, number: known.unwrap_or(last + 1) };
        self.put(shard, &name, row)?;
        Ok(None)
    }

    pub(crate) fn put(&mut self, shard: u16, name: &str, row: PauseRow) -> Result<()> {
        self.0.insert((shard, name), pack(&row).as_slice())
    }

    pub(crate) fn remove(&mut self, shard: u16, name: &str) -> Result<()> {
        self.0.remove((shard, name)).map(drop)
    }
}

fn unpack(raw: &[u8]) -> Result<PauseRow> {
    Ok(postcard::from_bytes(raw).map_err(|_| StoreError::Unreadable("a paused destination"))?)
}
