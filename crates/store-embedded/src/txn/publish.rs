//! The events of an edge: collected while somebody watches the shard, and published once the group
//! is safe.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::contract::{AttemptEnded, AttemptOutcome, Event, EventKind};
use ringback_core::job::JobKey;
use ringback_core::outcome::LastAttempt;

use super::Txn;
use crate::error::Result;
use crate::tables::{Last, Record};

impl Txn<'_> {
    /// Publishes what happens to a job. Must be called before its body is removed, and while the
    /// record still has its topic.
    pub(crate) fn publish(&mut self, job: &Record, what: impl FnOnce() -> EventKind) -> Result<()> {
        if !self.edge.is_watched {
            return Ok(());
        }
        let id = self.tables.records.id(job.number)?;
        if let (Some(id), Ok(topic)) = (id.and_then(|id| id.parse().ok()), job.topic.parse()) {
            let at = Timestamp::from_millis(self.now());
            self.edge.events.push(Event { at, key: JobKey { topic, id }, kind: what() });
        }
        Ok(())
    }

    /// Publishes the end of an attempt: how it ended, when the job is due again in ms, and the
    /// response where it is known.
    pub(crate) fn publish_attempt(
        &mut self,
        job: &Record,
        outcome: AttemptOutcome,
        due: Option<u64>,
        response: Option<&LastAttempt>,
    ) -> Result<()> {
        self.publish(job, || {
            let due = due.map(Timestamp::from_millis);
            let (status, error, duration) = response.map(Last::from).map_or((None, None, None), |last| {
                (last.status, last.error, Some(Duration::from_millis(last.duration)))
            });
            EventKind::Attempt(AttemptEnded { number: job.attempts, outcome, due, status, error, duration })
        })
    }
}
