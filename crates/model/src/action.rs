//! What can happen next, and what it leads to.
//!
//! A process that sleeps is one that takes no step for a while: time passes, others act, and it goes on with what it
//! knew. So there is no action for a pause.

use crate::bounds::Bounds;
use crate::coverage::{Coverage, Situation};
use crate::execute::Reply;
use crate::planted::Planted;
use crate::property::Property;
use crate::sets::{Job, JobSet, TimeSet};
use crate::state::{Call, Carrier, Held, Notifier, Progress, Replica, Request, State};
use crate::store::{Grant, JobState, Outcome, Settled};

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The script runs, and its reply arrives.
    Answered,
    /// The script runs, and its reply is lost.
    ReplyLost,
    /// The caller gives up; the script may run at any later time.
    Late,
}

/// What a receiver says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// It has the job.
    Accepted,
    /// The attempt has failed.
    Refused,
}

/// One step. Numbers are those of the job, the carrier, the notifier, and the lease of the notifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A caller submits a job, or repeats it.
    Submit(Job, Fate),
    /// A caller cancels a job, or repeats it.
    Cancel(Job, Fate),
    /// A carrier claims the shard.
    Claim(usize, Fate),
    /// A carrier promotes.
    Promote(usize, Fate),
    /// The second step of a promote in two steps.
    Queue(usize),
    /// A carrier recovers.
    Recover(usize, Fate),
    /// A relay reads the outbox.
    ReadOutbox(usize),
    /// A relay submits the notices of what it has read.
    Publish(usize),
    /// A relay acknowledges what it has published.
    Acknowledge(usize, Fate),
    /// A notifier reserves these jobs.
    Reserve(usize, JobSet, Fate),
    /// A notifier makes an attempt.
    Post(usize, usize, Response),
    /// A notifier settles a lease.
    Settle(usize, usize, Fate),
    /// A notifier renews a lease.
    Renew(usize, usize, Fate),
    /// A notifier gives a lease back without an attempt.
    Release(usize, usize),
    /// Time passes.
    Tick,
    /// The store's clock steps back.
    StepBack,
    /// A carrier is killed and started again.
    CrashCarrier(usize),
    /// A notifier is killed and started again.
    CrashNotifier(usize),
    /// The replica stops to follow.
    Detach,
    /// The replica becomes the master.
    FailOver,
    /// A late call reaches the store.
    Arrive,
}

impl State {
    /// The next state; none if nothing changes.
    pub(crate) fn after(&self, action: Action, bounds: &Bounds, coverage: &Coverage) -> Option<Self> {
        let mut next = self.clone();
        next.step(action, bounds, coverage);
        (next != *self).then_some(next)
    }

    pub(crate) fn step(&mut self, action: Action, bounds: &Bounds, coverage: &Coverage) {
        match action {
            Action::Submit(job, fate) => self.submit(job, fate, bounds),
            Action::Cancel(job, fate) => self.cancel(job, fate, bounds, coverage),
            Action::Claim(carrier, fate) => self.claim(carrier, fate, bounds),
            Action::Promote(carrier, fate) => self.promote(carrier, fate, bounds),
            Action::Queue(carrier) => self.queue(carrier),
            Action::Recover(carrier, fate) => self.recover(carrier, fate, bounds, coverage),
            Action::ReadOutbox(carrier) => self.carriers[carrier].read = self.server.store.outbox,
            Action::Publish(carrier) => self.publish(carrier, bounds),
            Action::Acknowledge(carrier, fate) => self.acknowledge(carrier, fate, bounds),
            Action::Reserve(notifier, jobs, fate) => self.reserve(notifier, jobs, fate, bounds),
            Action::Post(notifier, lease, response) => self.post(notifier, lease, response, bounds),
            Action::Settle(notifier, lease, fate) => self.settle(notifier, lease, fate, bounds, coverage),
            Action::Renew(notifier, lease, fate) => {
                self.left.renews -= 1;
                let held = self.notifiers[notifier].held[lease];
                self.call(Call::Renew(held.job, held.receipt), fate, bounds);
            }
            Action::Release(notifier, lease) => {
                self.left.releases -= 1;
                self.notifiers[notifier].held[lease].progress = Progress::Ended(Outcome::Release);
            }
            Action::Tick => self.server.store.now += 1,
            Action::StepBack => {
                self.left.steps_back -= 1;
                self.left.faults -= 1;
                self.server.store.now -= 1;
            }
            Action::CrashCarrier(carrier) => {
                self.left.crashes -= 1;
                self.left.faults -= 1;
                self.carriers[carrier] = Carrier::default();
            }
            Action::CrashNotifier(notifier) => self.crash_notifier(notifier),
            Action::Detach => {
                self.left.fail_overs -= 1;
                self.left.faults -= 1;
                self.replica = Some(Box::new(Replica { server: self.server.clone(), behind: 0 }));
            }
            Action::FailOver => self.fail_over(bounds, coverage),
            Action::Arrive => {
                let Some(call) = self.late.take() else { return };
                coverage.note(Situation::LateCall);
                self.execute(call, bounds);
            }
        }
    }

    /// Makes a call. Returns the reply if it arrives.
    fn call(&mut self, call: Call, fate: Fate, bounds: &Bounds) -> Option<Reply> {
        match fate {
            Fate::Answered => Some(self.execute(call, bounds)),
            Fate::ReplyLost => {
                self.left.lost_replies -= 1;
                self.left.faults -= 1;
                self.execute(call, bounds);
                None
            }
            Fate::Late => {
                self.left.late_calls -= 1;
                self.left.faults -= 1;
                self.late = Some(call);
                None
            }
        }
    }

    fn submit(&mut self, job: Job, fate: Fate, bounds: &Bounds) {
        let is_answered = self.call(Call::Submit(job), fate, bounds).is_some();
        self.clients[job].submit = if is_answered { Request::Answered } else { Request::Unanswered };
    }

    fn cancel(&mut self, job: Job, fate: Fate, bounds: &Bounds, coverage: &Coverage) {
        if self.clients[job].cancel == Request::Not {
            self.left.cancels -= 1;
        }
        self.clients[job].cancel = match self.call(Call::Cancel(job), fate, bounds) {
            Some(Reply::Cancelled(JobState::Cancelled, false)) => Request::Cancelled,
            Some(Reply::Cancelled(JobState::Reserved, _)) => {
                coverage.note(Situation::CancelRequested);
                Request::Answered
            }
            Some(_) => Request::Answered,
            None => Request::Unanswered,
        };
    }

    fn claim(&mut self, carrier: usize, fate: Fate, bounds: &Bounds) {
        self.left.claims -= 1;
        if let Some(Reply::Claimed(epoch)) = self.call(Call::Claim, fate, bounds) {
            self.carriers[carrier].epoch = Some(epoch);
        }
    }

    fn promote(&mut self, carrier: usize, fate: Fate, bounds: &Bounds) {
        let Some(epoch) = self.carriers[carrier].epoch else { return };
        if let Some(Reply::Promoted(popped)) = self.call(Call::Promote(epoch), fate, bounds) {
            self.carriers[carrier].popped = popped;
        }
    }

    fn queue(&mut self, carrier: usize) {
        let popped = std::mem::take(&mut self.carriers[carrier].popped);
        for (queued, popped) in self.server.store.queued.iter_mut().zip(popped) {
            *queued = queued.union(popped);
        }
    }

    fn recover(&mut self, carrier: usize, fate: Fate, bounds: &Bounds, coverage: &Coverage) {
        let Some(epoch) = self.carriers[carrier].epoch else { return };
        if epoch != self.server.store.epoch {
            coverage.note(Situation::Fenced);
        }
        let dead = self.server.store.dead;
        self.call(Call::Recover(epoch), fate, bounds);
        if self.server.store.dead != dead {
            coverage.note(Situation::DiedByLoss);
        }
    }

    /// The id of a notice follows from its death, so one that is submitted twice exists once.
    fn publish(&mut self, carrier: usize, bounds: &Bounds) {
        let carrier = &mut self.carriers[carrier];
        let known = JobSet::first(bounds.jobs);
        let made = if bounds.has(Planted::NoticesForAll) { known } else { carrier.read };
        self.notices = self.notices.union(made);
        carrier.published = carrier.read;
        self.violations.require(Property::NoticesTrue, made.is_subset_of(self.world.died));
    }

    fn acknowledge(&mut self, carrier: usize, fate: Fate, bounds: &Bounds) {
        let Carrier { epoch, read, published, .. } = self.carriers[carrier];
        let Some(epoch) = epoch else { return };
        let deaths = if bounds.has(Planted::AcknowledgeFirst) { read } else { published };
        self.call(Call::Acknowledge(epoch, deaths), fate, bounds);
        // The round is over, and the next one reads anew.
        self.carriers[carrier].read = read.without(deaths);
        self.carriers[carrier].published = JobSet::default();
    }

    fn reserve(&mut self, notifier: usize, jobs: JobSet, fate: Fate, bounds: &Bounds) {
        let caller = Some((notifier, self.notifiers[notifier].sequence));
        let Some(Reply::Reserved(grants)) = self.call(Call::Reserve(caller, jobs), fate, bounds) else {
            self.notifiers[notifier].is_unanswered = true;
            return;
        };
        if bounds.has(Planted::LedgerOutside) {
            grants.iter().for_each(|_| self.server.store.count_move(JobState::Ready, JobState::Reserved));
        }
        let Notifier { held, sequence, is_unanswered } = &mut self.notifiers[notifier];
        (*sequence, *is_unanswered) = ((*sequence + 1) % 8, false);
        held.extend(grants.into_iter().map(|Grant { job, receipt, failures }| Held {
            job,
            receipt,
            failures,
            progress: Progress::Granted,
        }));
    }

    fn post(&mut self, notifier: usize, lease: usize, response: Response, bounds: &Bounds) {
        let held = &mut self.notifiers[notifier].held[lease];
        held.progress = Progress::Ended(match response {
            Response::Accepted => Outcome::Complete,
            Response::Refused if held.failures + 1 >= bounds.max_failures => Outcome::Bury,
            Response::Refused => Outcome::Retry,
        });
        let Held { job, receipt, .. } = *held;
        let Self { server, world, violations, .. } = self;
        match response {
            Response::Accepted => world.delivered.insert(job),
            Response::Refused => self.left.refusals -= 1,
        }
        let is_set_back = world.set_back.contains(job);
        let is_cancelled = self.clients[job].cancel == Request::Cancelled;
        violations.require(Property::Cancel, !is_cancelled || is_set_back);
        let is_new = server.facts.done[job].is_some_and(|grants| receipt.bits > grants);
        violations.require(Property::NoPostAfterDone, !is_new);
    }

    fn settle(&mut self, notifier: usize, lease: usize, fate: Fate, bounds: &Bounds, coverage: &Coverage) {
        let held = self.notifiers[notifier].held[lease];
        let Progress::Ended(outcome) = held.progress else { return };
        let of_batch = |other: &&Held| other.receipt.number == held.receipt.number;
        let is_last = self.notifiers[notifier].held.iter().filter(of_batch).count() == 1;
        let call = Call::Settle(held.job, held.receipt, outcome, is_last);
        let Some(Reply::Settled(settled)) = self.call(call, fate, bounds) else { return };
        self.notifiers[notifier].held.remove(lease);
        coverage.note(match (settled, outcome) {
            (Settled::Applied, _) => Situation::Settled,
            (Settled::Replayed, _) => Situation::SettleReplayed,
            (Settled::Late, _) => Situation::LateSuccess,
            (Settled::Stale, Outcome::Complete) => Situation::StaleSuccess,
            (Settled::Stale, _) => Situation::StaleFailure,
        });
        if bounds.has(Planted::OutboxOutside) && self.server.store.state(held.job) == JobState::Dead {
            self.server.store.outbox.insert(held.job);
        }
    }

    /// The process comes back under another name, so what the store remembers of its reserves is of no use.
    fn crash_notifier(&mut self, notifier: usize) {
        self.left.crashes -= 1;
        self.left.faults -= 1;
        self.notifiers[notifier] = Notifier::default();
        if let Some(Call::Reserve(caller, _)) = &mut self.late {
            *caller = caller.filter(|(name, _)| *name != notifier);
        }
        self.forget_caller(notifier);
    }

    /// Removes what is remembered of a caller that will not repeat its last call.
    pub(crate) fn forget_caller(&mut self, notifier: usize) {
        let replica = self.replica.as_mut().map(|replica| &mut replica.server);
        for server in [&mut self.server].into_iter().chain(replica) {
            server.store.callers[notifier] = None;
            server.facts.granted[notifier] = None;
        }
        self.notifiers[notifier].sequence = 0;
    }

    /// The replica becomes the master. Scripts that it did not receive are lost, and their jobs are noted.
    fn fail_over(&mut self, bounds: &Bounds, coverage: &Coverage) {
        let Some(replica) = self.replica.take() else { return };
        let (lost, mut server) = (&self.server, replica.server);
        for job in 0..bounds.jobs {
            let (old, new) = (&lost.store, &server.store);
            if old.records[job] != new.records[job] || old.tombstones[job] != new.tombstones[job] {
                self.world.set_back.insert(job);
            }
        }
        if lost.facts.accepted != server.facts.accepted {
            coverage.note(Situation::AcceptedLost);
        }
        if lost.store.last_lease != server.store.last_lease {
            coverage.note(Situation::LeaseNumberLost);
        }
        if lost.store.epoch != server.store.epoch {
            coverage.note(Situation::EpochLost);
        }
        server.store.now = lost.store.now + bounds.fail_over;
        self.server = server;
    }
}

/// Whether a carrier has something to queue.
pub(crate) fn has_popped(popped: &[TimeSet]) -> bool {
    popped.iter().any(|times| !times.is_empty())
}
