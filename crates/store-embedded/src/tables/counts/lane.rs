//! The row of a lane: how many of its jobs are in each state.

use std::fmt;

use ringback_core::state::State;
use serde::{Deserialize, Serialize};

use super::super::rows::pack;
use super::cache::CountRow;

/// How many jobs are delayed, ready, reserved and dead; or a difference of such counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneCounts([i64; 4]);

impl LaneCounts {
    pub(crate) fn of(self, state: State) -> i64 {
        slot(state).map_or(0, |slot| self.0[slot])
    }

    /// Counts `n` more jobs in a state. Jobs that have ended are not counted.
    pub(crate) fn count(&mut self, state: State, n: i64) {
        if let Some(slot) = slot(state) {
            self.0[slot] += n;
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum += n);
    }

    /// Whether there are no jobs.
    pub(crate) fn is_empty(self) -> bool {
        self.0.iter().sum::<i64>() <= 0
    }
}

impl CountRow for LaneCounts {
    fn pack(&self) -> Vec<u8> {
        pack(self)
    }

    fn unpack(row: &[u8]) -> Option<Self> {
        postcard::from_bytes(row).ok()
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl fmt::Display for LaneCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [delayed, ready, reserved, dead] = self.0;
        write!(f, "{delayed} delayed, {ready} ready, {reserved} reserved, {dead} dead")
    }
}

/// The position of a state's count. It is stored and never changes.
const fn slot(state: State) -> Option<usize> {
    match state {
        State::Delayed => Some(0),
        State::Ready => Some(1),
        State::Reserved => Some(2),
        State::Dead => Some(3),
        State::Done | State::Cancelled => None,
    }
}
