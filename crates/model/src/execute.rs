//! Runs a script on the store, and watches from outside what it has changed.
//!
//! The scripts know nothing of the properties. What each may change is said here, from the states before and after.

use crate::bounds::{Bounds, MAX_JOBS};
use crate::property::Property;
use crate::sets::{Job, Number, TimeSet};
use crate::state::{Call, LiveLease, State};
use crate::store::{Code, Grant, JobState, Outcome, Settled, Store};

/// What a script answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The state after a cancel, and whether an attempt may be in flight.
    Cancelled(JobState, bool),
    Claimed(Number),
    /// What is left to queue by a promote in two steps.
    Promoted([TimeSet; MAX_JOBS]),
    Reserved(Vec<Grant>),
    Settled(Settled),
    Done,
}

impl State {
    /// Runs a script.
    pub(crate) fn execute(&mut self, call: Call, bounds: &Bounds) -> Reply {
        let before = self.server.store.clone();
        let reply = self.run(call, bounds);
        for job in 0..bounds.jobs {
            self.watch_job(call, job, &before);
        }
        self.watch_fence(call, &before);
        if before != self.server.store {
            self.fall_behind(bounds);
        }
        reply
    }

    fn run(&mut self, call: Call, bounds: &Bounds) -> Reply {
        let store = &mut self.server.store;
        match call {
            Call::Submit(job) => store.submit(job, bounds),
            Call::Cancel(job) => {
                let (state, maybe_in_flight) = store.cancel(job, bounds);
                return Reply::Cancelled(state, maybe_in_flight);
            }
            Call::Claim => {
                let epoch = store.claim(bounds);
                self.violations.require(Property::NumbersGrow, epoch > self.world.epoch);
                self.world.epoch = self.world.epoch.max(epoch);
                self.server.facts.epoch = epoch;
                return Reply::Claimed(epoch);
            }
            Call::Promote(epoch) => return Reply::Promoted(store.promote(epoch, bounds)),
            Call::Recover(epoch) => store.recover(epoch, bounds),
            Call::Acknowledge(epoch, deaths) => store.acknowledge(epoch, deaths, bounds),
            Call::Reserve(caller, jobs) => {
                let (grants, is_new) = store.reserve(caller, jobs, self.world.grants + 1, bounds);
                if is_new {
                    self.granted(caller, &grants);
                }
                return Reply::Reserved(grants);
            }
            Call::Settle(job, receipt, outcome, is_last) => {
                return Reply::Settled(store.settle(job, receipt, outcome, is_last, bounds));
            }
            Call::Renew(job, receipt) => store.renew(job, receipt, bounds),
        }
        Reply::Done
    }

    /// Watches new leases.
    fn granted(&mut self, caller: Option<(usize, u8)>, grants: &[Grant]) {
        let Self { server, world, violations, .. } = self;
        let (now, facts) = (server.store.now, &mut server.facts);
        let Some(first) = grants.first() else { return };
        violations.require(Property::NumbersGrow, first.receipt.number > world.lease);
        if let Some((caller, sequence)) = caller {
            violations.require(Property::OneGrantPerCall, facts.granted[caller] != Some(sequence));
            facts.granted[caller] = Some(sequence);
        }
        for grant in grants {
            world.lease = world.lease.max(grant.receipt.number);
            world.grants += 1;
            violations
                .require(Property::OneLiveLease, facts.live[grant.job].is_none_or(|live| !live.is_held));
            let deadline = server.store.records[grant.job].map_or(now, |record| record.deadline);
            facts.live[grant.job] = Some(LiveLease { bits: grant.receipt.bits, deadline, is_held: true });
            facts.attempts[grant.job] += 1;
        }
    }

    /// Watches what a script has done to a job.
    fn watch_job(&mut self, call: Call, job: Job, before: &Store) {
        let Self { server, world, violations, .. } = self;
        let (store, facts) = (&server.store, &mut server.facts);
        let (from, to) = (before.state(job), store.state(job));
        let is_same =
            before.records[job] == store.records[job] && before.tombstones[job] == store.tombstones[job];
        if is_same && from == to {
            return;
        }
        let is_requested = before.records[job].is_some_and(|record| record.is_cancel_requested);
        violations.require(Property::AllowedEdges, from == to || is_allowed(call, from, to));
        let is_obeyed = !is_requested || to == JobState::Cancelled || to == JobState::Done || to == from;
        violations.require(Property::Cancel, is_obeyed);
        let held = facts.live[job].filter(|live| live.is_held).map(|live| live.bits);
        match call {
            Call::Settle(_, receipt, outcome, _) if held == Some(receipt.bits) => {
                let is_failure = outcome == Outcome::Retry || outcome == Outcome::Bury;
                facts.failures[job] += u8::from(is_failure);
                facts.lost[job] = if is_failure { 0 } else { facts.lost[job] };
                facts.live[job] = None;
            }
            Call::Settle(_, _, outcome, _) => {
                let was_lost =
                    before.records[job].is_some_and(|record| record.code == Code::Dead { by_loss: true });
                let is_open =
                    [JobState::Delayed, JobState::Ready, JobState::Reserved].contains(&from) || was_lost;
                let counts = outcome == Outcome::Complete && to == JobState::Done && is_open;
                violations.require(Property::StaleSettles, counts);
                facts.live[job] = None;
            }
            Call::Recover(_) if from == JobState::Reserved && to != from => {
                let has_run_out = facts.live[job].is_none_or(|live| live.deadline <= store.now);
                violations.require(Property::OneLiveLease, has_run_out);
                facts.lost[job] += 1;
                facts.live[job] = facts.live[job].map(|live| LiveLease { is_held: false, ..live });
            }
            Call::Renew(_, receipt) => {
                violations.require(Property::StaleSettles, held == Some(receipt.bits));
                let deadline = store.records[job].map_or(0, |record| record.deadline);
                facts.live[job] = facts.live[job].map(|live| LiveLease { deadline, ..live });
            }
            Call::Submit(_) => facts.accepted.insert(job),
            Call::Cancel(_)
            | Call::Claim
            | Call::Promote(_)
            | Call::Recover(_)
            | Call::Acknowledge(..)
            | Call::Reserve(..) => {}
        }
        if to == JobState::Done && from != to {
            facts.done[job] = Some(world.grants);
        }
        if to == JobState::Dead && from != to {
            facts.died.insert(job);
            world.died.insert(job);
        }
    }

    /// Watches that a carrier with a stale epoch changes nothing.
    fn watch_fence(&mut self, call: Call, before: &Store) {
        let epoch = match call {
            Call::Promote(epoch) | Call::Recover(epoch) | Call::Acknowledge(epoch, _) => epoch,
            Call::Submit(_)
            | Call::Cancel(_)
            | Call::Claim
            | Call::Reserve(..)
            | Call::Settle(..)
            | Call::Renew(..) => return,
        };
        let has_effect = *before != self.server.store;
        self.violations.require(Property::Fence, !has_effect || epoch == self.server.facts.epoch);
    }

    /// A replica that no longer follows is one more script behind. One that is too far behind is given up.
    fn fall_behind(&mut self, bounds: &Bounds) {
        let Some(mut replica) = self.replica.take() else { return };
        replica.behind += 1;
        self.replica = Some(replica).filter(|replica| replica.behind <= bounds.max_behind);
    }
}

/// Whether a script may move a job from one state to another.
fn is_allowed(call: Call, from: JobState, to: JobState) -> bool {
    use JobState::{Absent, Cancelled, Dead, Delayed, Done, Ready, Reserved};
    match call {
        Call::Submit(_) => matches!((from, to), (Absent, Delayed | Ready)),
        Call::Cancel(_) => matches!((from, to), (Delayed | Ready | Dead, Cancelled)),
        Call::Promote(_) => matches!((from, to), (Delayed, Ready)),
        Call::Recover(_) => matches!((from, to), (Reserved, Ready | Dead | Cancelled)),
        Call::Reserve(..) => matches!((from, to), (Ready, Reserved)),
        Call::Settle(.., Outcome::Complete, _) => {
            matches!((from, to), (Delayed | Ready | Reserved | Dead, Done))
        }
        Call::Settle(.., Outcome::Retry, _) => matches!((from, to), (Reserved, Delayed | Cancelled)),
        Call::Settle(.., Outcome::Bury, _) => matches!((from, to), (Reserved, Dead | Cancelled)),
        Call::Settle(.., Outcome::Release, _) => matches!((from, to), (Reserved, Ready | Cancelled)),
        Call::Claim | Call::Acknowledge(..) | Call::Renew(..) => false,
    }
}
