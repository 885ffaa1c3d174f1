//! Scripts that the API calls: submit and cancel.

use super::{Code, JobState, Record, Store, Tombstone};
use crate::bounds::Bounds;
use crate::planted::Planted;
use crate::sets::Job;

impl Store {
    /// nothing -> delayed, or ready if already due. The same submit again changes nothing, also when its job has
    /// ended.
    pub(crate) fn submit(&mut self, job: Job, bounds: &Bounds) {
        let is_known = self.tombstones[job].is_some() && !bounds.has(Planted::TombstonesIgnored);
        if self.records[job].is_some() || is_known {
            return;
        }
        let due = self.now + bounds.delay;
        self.tombstones[job] = None;
        self.records[job] = Some(Record::new(due, self.now));
        if bounds.delay == 0 {
            self.queued[job].insert(due);
            self.count_move(JobState::Absent, JobState::Ready);
        } else {
            self.scheduled[job].insert(due);
            self.count_move(JobState::Absent, JobState::Delayed);
        }
    }

    /// delayed, ready or dead -> cancelled; a reserved job gets a request. Returns the state after it, and whether
    /// an attempt may still be in flight.
    pub(crate) fn cancel(&mut self, job: Job, bounds: &Bounds) -> (JobState, bool) {
        let Some(record) = self.records[job] else {
            let maybe_in_flight = self.tombstones[job].is_some_and(|tombstone| tombstone.maybe_in_flight);
            return (self.state(job), maybe_in_flight);
        };
        if record.code == Code::Reserved && !bounds.has(Planted::CancelIgnoresLease) {
            self.records[job] = Some(Record { is_cancel_requested: true, ..record });
            return (JobState::Reserved, record.deadline <= self.now);
        }
        let maybe_in_flight = record.lease_lost;
        self.end(job, &record, Tombstone { is_done: false, lease: record.settled, maybe_in_flight });
        (JobState::Cancelled, maybe_in_flight)
    }
}
