//! Which actions are possible in a state, always in the same order.

use crate::action::{Action, Fate, Response, has_popped};
use crate::bounds::Bounds;
use crate::planted::Planted;
use crate::sets::JobSet;
use crate::state::{Notifier, Progress, Request, State};

impl State {
    /// Collects the actions.
    pub(crate) fn actions(&self, bounds: &Bounds, found: &mut Vec<Action>) {
        let fates = self.fates();
        let late = || fates.iter().copied().filter(|fate| *fate != Fate::ReplyLost);
        self.requests(bounds, &fates, found);
        for carrier in 0..bounds.carriers {
            let Some(knowledge) = self.carriers.get(carrier) else { continue };
            if self.left.claims > 0 {
                found.extend(fates.iter().map(|fate| Action::Claim(carrier, *fate)));
            }
            if has_popped(&knowledge.popped) {
                found.push(Action::Queue(carrier));
            }
            if knowledge.epoch.is_none() {
                continue;
            }
            // Nothing is known from the replies of these, so a lost one makes no difference.
            found.extend(late().map(|fate| Action::Promote(carrier, fate)));
            found.extend(late().map(|fate| Action::Recover(carrier, fate)));
            if knowledge.read.is_empty() && !self.server.store.outbox.is_empty() {
                found.push(Action::ReadOutbox(carrier));
            }
            if knowledge.read != knowledge.published {
                found.push(Action::Publish(carrier));
            }
            let can_acknowledge = !knowledge.published.is_empty() || bounds.has(Planted::AcknowledgeFirst);
            if !knowledge.read.is_empty() && can_acknowledge {
                found.extend(late().map(|fate| Action::Acknowledge(carrier, fate)));
            }
        }
        for notifier in 0..bounds.notifiers {
            self.notifier_actions(notifier, bounds, &fates, found);
        }
        self.faults(bounds, found);
        if self.server.store.now < bounds.end {
            found.push(Action::Tick);
        }
    }

    /// What can become of a call.
    fn fates(&self) -> Vec<Fate> {
        let mut fates = vec![Fate::Answered];
        if self.left.faults > 0 && self.left.lost_replies > 0 {
            fates.push(Fate::ReplyLost);
        }
        if self.left.faults > 0 && self.left.late_calls > 0 && self.late.is_none() {
            fates.push(Fate::Late);
        }
        fates
    }

    fn requests(&self, bounds: &Bounds, fates: &[Fate], found: &mut Vec<Action>) {
        for (job, client) in self.clients.iter().enumerate().take(bounds.jobs) {
            if matches!(client.submit, Request::Not | Request::Unanswered) {
                found.extend(fates.iter().map(|fate| Action::Submit(job, *fate)));
            }
            let is_new =
                client.cancel == Request::Not && self.left.cancels > 0 && client.submit != Request::Not;
            if is_new || client.cancel == Request::Unanswered {
                found.extend(fates.iter().map(|fate| Action::Cancel(job, *fate)));
            }
        }
    }

    fn notifier_actions(&self, notifier: usize, bounds: &Bounds, fates: &[Fate], found: &mut Vec<Action>) {
        let Notifier { held, is_unanswered, .. } = &self.notifiers[notifier];
        let queued: JobSet =
            (0..bounds.jobs).filter(|job| !self.server.store.queued[*job].is_empty()).collect();
        let permits = bounds.permits.saturating_sub(held.len());
        for jobs in queued.subsets(permits) {
            found.extend(fates.iter().map(|fate| Action::Reserve(notifier, jobs, *fate)));
        }
        // A reserve is repeated until it is answered, whatever is ready by then.
        if *is_unanswered && queued.is_empty() {
            found.push(Action::Reserve(notifier, JobSet::default(), Fate::Answered));
        }
        for (lease, one) in held.iter().enumerate() {
            match one.progress {
                Progress::Granted => {
                    found.push(Action::Post(notifier, lease, Response::Accepted));
                    if self.left.refusals > 0 {
                        found.push(Action::Post(notifier, lease, Response::Refused));
                    }
                    if self.left.releases > 0 {
                        found.push(Action::Release(notifier, lease));
                    }
                }
                Progress::Ended(_) => {
                    found.extend(fates.iter().map(|fate| Action::Settle(notifier, lease, *fate)));
                }
            }
            if self.left.renews > 0 {
                found.push(Action::Renew(notifier, lease, Fate::Answered));
                if fates.contains(&Fate::Late) {
                    found.push(Action::Renew(notifier, lease, Fate::Late));
                }
            }
        }
    }

    fn faults(&self, bounds: &Bounds, found: &mut Vec<Action>) {
        if self.late.is_some() {
            found.push(Action::Arrive);
        }
        if let Some(replica) = &self.replica
            && replica.behind > 0
        {
            found.push(Action::FailOver);
        }
        if self.left.faults == 0 {
            return;
        }
        if self.left.steps_back > 0 && self.server.store.now > 1 {
            found.push(Action::StepBack);
        }
        if self.left.crashes > 0 {
            found.extend((0..bounds.carriers).map(Action::CrashCarrier));
            found.extend((0..bounds.notifiers).map(Action::CrashNotifier));
        }
        if self.left.fail_overs > 0 && self.replica.is_none() {
            found.push(Action::Detach);
        }
    }
}
