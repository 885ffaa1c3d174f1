//! What follows once faults stop: one carrier, the notifiers and the callers go on, and time passes.
//!
//! This stands for liveness. It is checked of each state that is reached, so no path leads to where the rest of a run
//! cannot come to its end.

use crate::action::{Action, Fate, Response, has_popped};
use crate::bounds::{Bounds, Budget};
use crate::coverage::Coverage;
use crate::sets::JobSet;
use crate::state::{Progress, Request, State};
use crate::store::JobState;

/// How many ticks it may take until everything has ended.
pub const DRAIN_TICKS: u8 = 8;

/// More than one tick can need, so that a loop ends where a planted fault keeps a process busy.
const MAX_STEPS: usize = 8;

impl State {
    /// Whether all jobs end and the outbox becomes empty within [`DRAIN_TICKS`], if receivers accept everything, and
    /// if they refuse everything.
    pub(crate) fn drains(&self, bounds: &Bounds) -> bool {
        [Response::Accepted, Response::Refused].into_iter().all(|response| {
            let mut state = self.clone();
            state.left = Budget { claims: u8::MAX, refusals: u8::MAX, ..Budget::default() };
            state.replica = None;
            (0..DRAIN_TICKS).any(|_| {
                state.pass_tick(response, bounds);
                state.is_drained(bounds)
            })
        })
    }

    fn is_drained(&self, bounds: &Bounds) -> bool {
        let store = &self.server.store;
        let has_ended = |job| {
            !matches!(store.state(job), JobState::Delayed | JobState::Ready | JobState::Reserved)
                && store.queued[job].is_empty()
        };
        (0..bounds.jobs).all(has_ended) && store.outbox.is_empty() && store.batches.is_empty()
    }

    fn pass_tick(&mut self, response: Response, bounds: &Bounds) {
        let coverage = Coverage::default();
        let go = |state: &mut Self, action| state.step(action, bounds, &coverage);
        if self.late.is_some() {
            go(self, Action::Arrive);
        }
        for job in 0..bounds.jobs {
            if self.clients[job].submit == Request::Unanswered {
                go(self, Action::Submit(job, Fate::Answered));
            }
            if self.clients[job].cancel == Request::Unanswered {
                go(self, Action::Cancel(job, Fate::Answered));
            }
        }
        if self.carriers[0].epoch != Some(self.server.store.epoch) {
            go(self, Action::Claim(0, Fate::Answered));
        }
        for carrier in 0..bounds.carriers {
            if has_popped(&self.carriers[carrier].popped) {
                go(self, Action::Queue(carrier));
            }
        }
        go(self, Action::Promote(0, Fate::Answered));
        go(self, Action::Recover(0, Fate::Answered));
        go(self, Action::ReadOutbox(0));
        go(self, Action::Publish(0));
        go(self, Action::Acknowledge(0, Fate::Answered));
        for notifier in 0..bounds.notifiers {
            for _ in 0..MAX_STEPS {
                let Some(action) = self.next_of(notifier, response, bounds) else { break };
                go(self, action);
            }
        }
        go(self, Action::Tick);
    }

    /// What a notifier does next in this tick.
    fn next_of(&self, notifier: usize, response: Response, bounds: &Bounds) -> Option<Action> {
        let known = &self.notifiers[notifier];
        if let Some(held) = known.held.first() {
            return Some(match held.progress {
                Progress::Granted => Action::Post(notifier, 0, response),
                Progress::Ended(_) => Action::Settle(notifier, 0, Fate::Answered),
            });
        }
        let queued = (0..bounds.jobs).filter(|job| !self.server.store.queued[*job].is_empty());
        let jobs: JobSet = queued.take(bounds.permits).collect();
        (known.is_unanswered || !jobs.is_empty()).then_some(Action::Reserve(notifier, jobs, Fate::Answered))
    }
}
