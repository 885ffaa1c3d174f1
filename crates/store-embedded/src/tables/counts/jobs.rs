//! How many jobs of a lane are in each state.

use std::fmt;

use ringback_core::state::State;
use serde::{Deserialize, Serialize};

/// How many jobs are delayed, ready, reserved and dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Jobs(pub(crate) [i64; 4]);

impl Jobs {
    pub(crate) fn of(self, state: State) -> i64 {
        slot(state).map_or(0, |slot| self.0[slot])
    }

    /// One more job is in a state.
    pub(crate) fn count(&mut self, state: State) {
        if let Some(slot) = slot(state) {
            self.0[slot] += 1;
        }
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("plain data always serialises")
    }

    /// None where it is something else.
    pub(crate) fn unpack(row: &[u8]) -> Option<Self> {
        postcard::from_bytes(row).ok()
    }

    /// By how many each is more than another.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self(less(self.0, other.0))
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum += n);
    }

    pub(crate) fn is_none(self) -> bool {
        self.0.iter().sum::<i64>() <= 0
    }
}

impl fmt::Display for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [delayed, ready, reserved, dead] = self.0;
        write!(f, "{delayed} delayed, {ready} ready, {reserved} reserved, {dead} dead")
    }
}

/// The place of a state's count, which is written down: never changes. None where jobs have ended.
pub(crate) const fn slot(state: State) -> Option<usize> {
    match state {
        State::Delayed => Some(0),
        State::Ready => Some(1),
        State::Reserved => Some(2),
        State::Dead => Some(3),
        State::Done | State::Cancelled => None,
    }
}

/// By how many each is more than another.
pub(crate) fn less<const N: usize>(these: [i64; N], others: [i64; N]) -> [i64; N] {
    std::array::from_fn(|i| these[i] - others[i])
}
