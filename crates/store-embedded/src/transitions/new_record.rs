//! [`NewRecord`]: a job of a submit, an import or a firing, packed for the tables before the writer's transaction
//! begins, and how its due time and its first state follow from the time.

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::{Due, History, IfExists, NewJob, TenantLimits};
use ringback_core::limits::MAX_IMPORTED_COUNT;
use ringback_core::store_types::{TransitionName, payload};

use crate::tables::{Arrival, Body, Last, QueueEnd, Record};
use crate::txn::Txn;
use crate::txn::state_changes::To;

/// A submitted job, packed for the tables.
pub(crate) struct NewRecord {
    pub(crate) transition: TransitionName,
    due: Due,
    /// When another store accepted the job.
    pub(crate) created: Option<Timestamp>,
    /// Why the job is dead, if it is imported as dead.
    dead: Option<Box<str>>,
    pub(crate) if_exists: IfExists,
    pub(crate) limits: Option<TenantLimits>,
    /// The record without its times and its state.
    pub(crate) record: Record,
    pub(crate) body: Vec<u8>,
}

impl NewRecord {
    pub(crate) fn pack(shard: u16, job: &NewJob) -> Self {
        let record = Record {
            shard,
            locator: job.key.locator().0,
            content: job.content.0,
            topic: job.key.topic.as_str().into(),
            origin: job.delivery.callback.origin().into(),
            timeout: job.delivery.timeout.map_or(0, millis_up),
            tags: job.delivery.tags.clone(),
            submitted: job.if_exists.token().map(|token| token.0),
            ..Record::default()
        };
        let body = Body::pack(job.key.id.as_str(), &payload::pack(&job.delivery));
        let (transition, due, if_exists) = (TransitionName::Submit, job.due, job.if_exists);
        Self { transition, due, created: None, dead: None, if_exists, limits: job.limits, record, body }
    }

    /// Returns the same job for another transition than submit.
    pub(crate) fn by(self, transition: TransitionName) -> Self {
        Self { transition, ..self }
    }

    /// Returns the same job, made by a schedule.
    pub(crate) fn fired(mut self) -> Self {
        self.record.arrival = Arrival::Fired;
        self
    }

    pub(crate) fn is_fired(&self) -> bool {
        self.record.arrival == Arrival::Fired
    }

    /// Whether the job is to be ready at once, in the place of `known` if that is given.
    pub(crate) fn is_due_at_once(&self, txn: &Txn<'_>, known: Option<&Record>) -> bool {
        matches!(self.enters(txn, known.map_or(txn.now(), |known| known.created)).1, To::Ready(_))
    }

    /// Returns the same job with its history in another store. Counts are limited to [`MAX_IMPORTED_COUNT`].
    pub(crate) fn with(mut self, history: &History) -> Self {
        self.created = history.created;
        self.dead = history.dead.as_deref().map(Into::into);
        self.record.attempts = history.attempts.min(MAX_IMPORTED_COUNT);
        self.record.failures = history.failures.min(MAX_IMPORTED_COUNT);
        self.record.last = history.last.as_ref().map(Last::from);
        self
    }

    /// Returns the job's due time, in ms, and first state. `created`, in ms, bounds the delay of a postponed job.
    pub(crate) fn enters(&self, txn: &Txn<'_>, created: u64) -> (u64, To) {
        let (now, due) = (txn.now(), due_time(txn, self.due));
        if let Some(reason) = &self.dead {
            // A dead job keeps its due time.
            return (due, To::Dead(reason.clone()));
        }
        let latest = self.if_exists.latest(Timestamp::from_millis(created));
        let due = latest.map_or(due, |latest| due.min(latest.as_millis())).max(now);
        (due, if due <= now { To::Ready(QueueEnd::Back) } else { To::Delayed(due) })
    }
}

/// Returns a due time in ms, which may be in the past. A delay counts from now.
pub(crate) fn due_time(txn: &Txn<'_>, due: Due) -> u64 {
    match due {
        Due::In(delay) if delay.is_zero() => txn.now(),
        Due::In(delay) => txn.now_up().saturating_add(millis_up(delay)),
        Due::At(at) => at.as_millis(),
    }
}
