//! The counts of a pass over the records of a shard, and their differences from the ledger.

use std::collections::HashMap;

use ringback_core::state::State;

/// In a shard with more lanes their counts are not compared.
pub(crate) const LANES: usize = 100_000;

/// A lane's id.
pub(crate) type Lane = [u8; 8];
/// Numbers of delayed, ready, reserved and dead jobs.
pub(crate) type Jobs = [i64; 4];

const STATES: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// The counts of a pass over the records.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) jobs: u64,
    pub(crate) states: Jobs,
    /// Jobs by lane; `None` in a shard with too many lanes.
    pub(crate) lanes: Option<HashMap<Lane, Jobs>>,
    /// Lost jobs that wait. Nobody knows whether they were delayed or ready.
    pub(crate) lost: u64,
    pub(crate) unindexed: u64,
}

impl Count {
    pub(crate) fn add(&mut self, states: Jobs, lanes: &[(Lane, Jobs)]) {
        let add = |sum: &mut Jobs, more: Jobs| sum.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        add(&mut self.states, states);
        if let Some(known) = &mut self.lanes {
            lanes.iter().for_each(|(lane, jobs)| add(known.entry(*lane).or_default(), *jobs));
        }
        if self.lanes.as_ref().is_some_and(|known| known.len() > LANES) {
            self.lanes = None;
        }
    }

    pub(crate) fn lost(&mut self, state: u8) {
        self.unindexed += 1;
        self.lost += u64::from(state == 1 || state == 2);
    }

    /// The differences from the ledger, in words.
    pub(crate) fn wrong_states(&self, ledger: Jobs) -> Vec<String> {
        let say = |what: &str, counted: i64, are: i64| {
            (counted != are).then(|| format!("the ledger counts {counted} {what} jobs, and there are {are}"))
        };
        let [delayed, ready, ..] = self.states;
        let mut wrong = Vec::new();
        if self.lost > 0 {
            wrong.extend(say("delayed and ready", ledger[0] + ledger[1], delayed + ready));
        }
        let from = if self.lost > 0 { 2 } else { 0 };
        for index in from..STATES.len() {
            wrong.extend(say(STATES[index].name(), ledger[index], self.states[index]));
        }
        wrong
    }
}
