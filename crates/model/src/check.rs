//! Whether a property holds in a state.

use crate::bounds::Bounds;
use crate::property::Property;
use crate::state::{Request, State};
use crate::store::{Code, JobState};

impl State {
    /// Whether a property holds, in the state itself and in the steps to it.
    pub(crate) fn holds(&self, property: Property, bounds: &Bounds) -> bool {
        if self.violations.has(property) {
            return false;
        }
        let mut jobs = 0..bounds.jobs;
        match property {
            Property::NothingLost => jobs.all(|job| self.is_kept(job)),
            Property::OneState => jobs.all(|job| self.server.store.is_indexed(job)),
            Property::Ledger => self.server.store.ledger == self.server.store.counted(bounds),
            Property::Counters => jobs.all(|job| self.is_counted(job, bounds)),
            Property::Cancel => jobs.all(|job| self.is_cancelled_as_answered(job)),
            Property::DoneMeansDelivered => jobs.all(|job| {
                self.server.store.state(job) != JobState::Done || self.world.delivered.contains(job)
            }),
            Property::OutboxComplete => {
                self.server.facts.died.is_subset_of(self.server.store.outbox.union(self.notices))
            }
            // Only looked at where nothing else is wrong, so that each fault shows in what it breaks first.
            Property::Drains => !self.violations.is_empty() || self.drains(bounds),
            Property::AllowedEdges
            | Property::Fence
            | Property::NumbersGrow
            | Property::OneLiveLease
            | Property::OneGrantPerCall
            | Property::StaleSettles
            | Property::NoPostAfterDone
            | Property::NoticesTrue => true,
        }
    }

    fn is_kept(&self, job: usize) -> bool {
        let is_present = self.server.store.state(job) != JobState::Absent;
        let is_known = self.clients[job].submit == Request::Answered && !self.world.set_back.contains(job);
        is_present || !(self.server.facts.accepted.contains(job) || is_known)
    }

    fn is_counted(&self, job: usize, bounds: &Bounds) -> bool {
        let facts = &self.server.facts;
        let Some(record) = &self.server.store.records[job] else { return true };
        let is_dead = matches!(record.code, Code::Dead { .. });
        record.attempts == facts.attempts[job]
            && record.failures == facts.failures[job]
            && record.lost == facts.lost[job]
            && (is_dead || record.failures < bounds.max_failures && record.lost < bounds.max_lost)
    }

    fn is_cancelled_as_answered(&self, job: usize) -> bool {
        let is_answered =
            self.clients[job].cancel == Request::Cancelled && !self.world.set_back.contains(job);
        !is_answered || self.server.store.state(job) == JobState::Cancelled
    }
}
