//! Ready queues: the ready jobs of each lane in order, and the lanes that are not empty, by turn. Lanes of pull jobs
//! take no turns: all have the turn [`PULL`], behind the others, and consumers name them. Lanes that a pause or a limit
//! holds are kept at a turn too: [`PAUSED`] for a topic, [`turn_of_pause`] for a destination, [`turn_of_limited`] for a
//! limit.

use std::ops::Bound;

use redb::ReadableTable as _;
use xxhash_rust::xxh3::xxh3_64;

use super::definitions::{LANE_TURNS, LANES, READY};
use super::rows::{Access, Rows, Writing};
use super::times::LAST;
use crate::error::Result;

/// The turn of every lane of pull jobs that is not empty.
pub(crate) const PULL: u64 = u64::MAX;

/// The turn of a lane of a paused topic, once a reserve has met it.
pub(crate) const PAUSED: u64 = u64::MAX - 1;

/// The greatest number of a paused destination that has a turn of its own, and how many turns limited lanes have.
const MOST_NUMBERS: u64 = 1 << 40;
/// The first turns of lanes of paused destinations and of limited lanes.
const OF_DESTINATIONS: u64 = PAUSED - MOST_NUMBERS;
const OF_LIMITS: u64 = OF_DESTINATIONS - MOST_NUMBERS;
/// Lanes with this turn or a later one are not delivered in turn.
const NO_TURN: u64 = OF_LIMITS;

/// Returns the turn of a lane of the paused destination with this number, from 1, once a reserve has met the lane.
pub(crate) fn turn_of_pause(number: u64) -> u64 {
    PAUSED - number.min(MOST_NUMBERS)
}

/// Whether a turn is one at which lanes of paused destinations are kept.
pub(crate) fn is_of_destination(turn: u64) -> bool {
    (OF_DESTINATIONS..PAUSED).contains(&turn)
}

/// Returns the turn of a lane that has a limit, once a reserve has met the lane. It is a hash of the lane's name, so
/// that a random turn leads to a random lane.
pub(crate) fn turn_of_limited(lane: &str) -> u64 {
    OF_LIMITS + xxh3_64(lane.as_bytes()) % MOST_NUMBERS
}

/// Whether a turn is one at which limited lanes are kept.
pub(crate) fn is_of_limit(turn: u64) -> bool {
    (OF_LIMITS..OF_DESTINATIONS).contains(&turn)
}

/// An end of a lane's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueEnd {
    Back,
    /// For jobs that were reserved before.
    Front,
}

pub(crate) struct Ready<A: Access> {
    queues: Rows<A, (u16, &'static str, i64), u64>,
    lanes: Rows<A, (u16, u64, &'static str), ()>,
    turns: Rows<A, (u16, &'static str), u64>,
}

impl<A: Access> Ready<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self { queues: access.open(READY)?, lanes: access.open(LANES)?, turns: access.open(LANE_TURNS)? })
    }

    /// Returns how many ready jobs there are in all shards.
    pub(crate) fn len(&self) -> Result<u64> {
        self.queues.len()
    }

    /// Returns the number of the job at a position of a lane's queue; `None` if the position is free.
    pub(crate) fn at(&self, shard: u16, lane: &str, position: i64) -> Result<Option<u64>> {
        self.queues.read((shard, lane, position), |number| number)
    }

    /// Returns position and number of the first `limit` jobs of a lane.
    pub(crate) fn first(&self, shard: u16, lane: &str, limit: usize) -> Result<Vec<(i64, u64)>> {
        let queue = (shard, lane, i64::MIN)..=(shard, lane, i64::MAX);
        self.queues.list(queue, limit, |(.., position), number| (position, number))
    }

    /// Returns lane, position and number of at most `limit` jobs of a topic, in order, from a lane and a position on.
    pub(crate) fn of_topic(
        &self,
        shard: u16,
        topic: &str,
        (lane, position): (&str, i64),
        limit: usize,
    ) -> Result<Vec<(String, i64, u64)>> {
        let (first, last) = (format!("{topic} "), format!("{topic} {LAST}"));
        let queues = (shard, lane.max(&first), position)..(shard, &*last, i64::MAX);
        self.queues.list(queues, limit, |(_, lane, position), number| (lane.to_owned(), position, number))
    }

    /// Returns how many jobs of a lane come before a position, counted up to `limit`.
    pub(crate) fn before(&self, shard: u16, lane: &str, position: i64, limit: u32) -> Result<u32> {
        let rows = self.queues.range((shard, lane, i64::MIN)..(shard, lane, position))?;
        rows.take(limit as usize).try_fold(0, |count, row| Ok(row.map(|_| count + 1)?))
    }

    pub(crate) fn is_empty(&self, shard: u16, lane: &str) -> Result<bool> {
        Ok(self.first(shard, lane, 1)?.is_empty())
    }

    /// Returns at most `limit` lanes that are not empty, in turn, with their turns: those after a turn and a lane, up to
    /// the turn `last`. Leaves out lanes of pull jobs and those that a pause or a limit holds.
    pub(crate) fn lanes(
        &self,
        shard: u16,
        (turn, lane): (u64, &str),
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, String)>> {
        let after = Bound::Excluded((shard, turn, lane));
        let rows =
            self.lanes.range((after, Bound::Excluded((shard, last.saturating_add(1).min(NO_TURN), ""))))?;
        let lanes = rows.take(limit).map(|row| {
            let (row, _) = row?;
            Ok((row.value().1, row.value().2.to_owned()))
        });
        lanes.collect()
    }

    /// Returns the first and the last turn of the lanes in turn, from this turn on; `None` if there are none.
    pub(crate) fn turns(&self, shard: u16, from: u64) -> Result<Option<(u64, u64)>> {
        let mut lanes = self.lanes.range((shard, from.min(NO_TURN), "")..(shard, NO_TURN, ""))?;
        let Some(first) = lanes.next().transpose()?.map(|(row, _)| row.value().1) else { return Ok(None) };
        let last = lanes.next_back().transpose()?.map_or(first, |(row, _)| row.value().1);
        Ok(Some((first, last)))
    }

    /// Returns the first `limit` lanes that are not empty: those in turn, then those that a limit or a pause
    /// holds, then those of pull jobs.
    pub(crate) fn all_lanes(&self, shard: u16, limit: usize) -> Result<Vec<String>> {
        self.lanes.list((shard, 0, "")..=(shard, PULL, LAST), limit, |(.., lane), ()| lane.to_owned())
    }

    /// Returns at most `limit` lanes of pull jobs that are not empty, without the first `skip`.
    pub(crate) fn pull_lanes(&self, shard: u16, skip: usize, limit: usize) -> Result<Vec<String>> {
        let rows = self.lanes.range((shard, PULL, "")..=(shard, PULL, LAST))?.skip(skip).take(limit);
        rows.map(|row| Ok(row?.0.value().2.to_owned())).collect()
    }

    /// Returns at most `limit` lanes that are kept at [`PAUSED`] because this topic is paused.
    pub(crate) fn paused(&self, shard: u16, topic: &str, limit: usize) -> Result<Vec<String>> {
        let (first, last) = (format!("{topic} "), format!("{topic} {LAST}"));
        let paused = (shard, PAUSED, &*first)..=(shard, PAUSED, &*last);
        self.lanes.list(paused, limit, |(.., lane), ()| lane.to_owned())
    }

    pub(crate) fn paused_at(&self, shard: u16, turn: u64, limit: usize) -> Result<Vec<String>> {
        let paused = (shard, turn, "")..=(shard, turn, LAST);
        self.lanes.list(paused, limit, |(.., lane), ()| lane.to_owned())
    }

    /// Returns at most `limit` lanes that a limit holds, with their turns, from this turn on.
    pub(crate) fn limited(&self, shard: u16, from: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        let limited = (shard, from.max(OF_LIMITS), "")..(shard, OF_DESTINATIONS, "");
        self.lanes.list(limited, limit, |(_, turn, lane), ()| (turn, lane.to_owned()))
    }

    /// Returns at most `limit` lanes that a limit holds, other ones for another random number.
    pub(crate) fn some_limited(&self, shard: u16, random: u64, limit: usize) -> Result<Vec<String>> {
        let begin = OF_LIMITS + random % MOST_NUMBERS;
        let mut lanes = self.limited(shard, begin, limit)?;
        if lanes.len() < limit {
            let others = self.limited(shard, OF_LIMITS, limit - lanes.len())?;
            lanes.extend(others.into_iter().take_while(|(turn, _)| *turn < begin));
        }
        Ok(lanes.into_iter().map(|(_, lane)| lane).collect())
    }

    pub(crate) fn turn_of(&self, shard: u16, lane: &str) -> Result<Option<u64>> {
        self.turns.read((shard, lane), |turn| turn)
    }

    pub(crate) fn has_turn(&self, shard: u16, lane: &str, turn: u64) -> Result<bool> {
        self.lanes.has((shard, turn, lane))
    }

    /// Calls `visit` with shard and lane for each lane with ready jobs.
    pub(crate) fn each_lane(&self, mut visit: impl FnMut(u16, &str) -> Result<()>) -> Result<()> {
        let mut previous = None;
        self.queues.each(|(shard, lane, _), _| {
            if previous.as_ref().is_none_or(|(of, name)| *of != shard || name != lane) {
                visit(shard, lane)?;
                previous = Some((shard, lane.to_owned()));
            }
            Ok(())
        })
    }

    /// Calls `visit` with shard, lane and turn for each entry of the index of lanes by turn.
    pub(crate) fn each_turn(&self, mut visit: impl FnMut(u16, &str, u64) -> Result<()>) -> Result<()> {
        self.lanes.each(|(shard, turn, lane), ()| visit(shard, lane, turn))
    }
}

impl Ready<Writing<'_>> {
    /// Adds a job to an end of its lane's queue, and gives the lane the turn `turn` if it has none. Returns the job's
    /// position, and whether the lane got the turn.
    pub(crate) fn push(
        &mut self,
        shard: u16,
        lane: &str,
        number: u64,
        end: QueueEnd,
        turn: u64,
    ) -> Result<(i64, bool)> {
        let position = {
            let mut rows = self.queues.range((shard, lane, i64::MIN)..=(shard, lane, i64::MAX))?;
            let (row, step) = match end {
                QueueEnd::Back => (rows.next_back(), 1),
                QueueEnd::Front => (rows.next(), -1),
            };
            row.transpose()?.map_or(0, |(key, _)| key.value().2 + step)
        };
        self.fill(shard, lane, position, number)?;
        let was_empty = self.turn_of(shard, lane)?.is_none();
        if was_empty {
            self.set_turn(shard, lane, Some(turn))?;
        }
        Ok((position, was_empty))
    }

    /// Puts a job at a free position of its lane's queue; the lane's turn stays.
    pub(crate) fn fill(&mut self, shard: u16, lane: &str, position: i64, number: u64) -> Result<()> {
        self.queues.insert((shard, lane, position), number)
    }

    /// Removes a job from its lane's queue; the lane's turn stays.
    pub(crate) fn remove(&mut self, shard: u16, lane: &str, position: i64) -> Result<()> {
        self.queues.remove((shard, lane, position)).map(drop)
    }

    /// Removes the turn of a lane if the lane is empty.
    pub(crate) fn tidy(&mut self, shard: u16, lane: &str) -> Result<()> {
        if self.is_empty(shard, lane)? { self.set_turn(shard, lane, None) } else { Ok(()) }
    }

    /// Sets the turn of a lane; `None` removes it.
    pub(crate) fn set_turn(&mut self, shard: u16, lane: &str, turn: Option<u64>) -> Result<()> {
        let before = self.turns.remove((shard, lane))?.map(|turn| turn.value());
        if let Some(before) = before {
            self.lanes.remove((shard, before, lane))?;
        }
        if let Some(turn) = turn {
            self.turns.insert((shard, lane), turn)?;
            self.lanes.insert((shard, turn, lane), ())?;
        }
        Ok(())
    }
}
