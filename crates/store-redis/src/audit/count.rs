//! What a pass over the records of a shard has counted, and what the ledger says otherwise.

use std::collections::HashMap;

use ringback_core::state::State;

use super::{Jobs, LANES, Lane};

const STATES: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// What was counted in a pass over the records.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) jobs: u64,
    pub(crate) states: Jobs,
    /// Jobs by lane; none of a shard that has too many.
    pub(crate) lanes: Option<HashMap<Lane, Jobs>>,
    /// Jobs that wait and were lost: whether they were delayed or ready nobody knows.
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

    /// What the ledger says otherwise, in words.
    pub(crate) fn wrong_states(&self, told: Jobs) -> Vec<String> {
        let say = |what: &str, told: i64, are: i64| {
            (told != are).then(|| format!("the ledger counts {told} {what} jobs, and there are {are}"))
        };
        let [delayed, ready, ..] = self.states;
        let mut wrong = Vec::new();
        if self.lost > 0 {
            wrong.extend(say("delayed and ready", told[0] + told[1], delayed + ready));
        }
        let from = if self.lost > 0 { 2 } else { 0 };
        for index in from..STATES.len() {
            wrong.extend(say(STATES[index].name(), told[index], self.states[index]));
        }
        wrong
    }
}
