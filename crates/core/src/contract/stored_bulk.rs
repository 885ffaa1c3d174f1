//! The stored form of a bulk operation's target and rate, which is the same in both stores.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bulk::{BulkAction, BulkTarget, BulkVerb};
use super::dead::DeadFilter;
use super::error::StoreError;
use super::filter::{Filter, StoredFilter};
use crate::clock::{Timestamp, millis_up};
use crate::job::{Due, Topic};

/// Target and rate of a bulk operation as both backends store them, packed with postcard. Times are in ms. An operation
/// on a filter of jobs has no topic, and filter and action as JSON in the place of the reason. A version that knows only
/// redrives cannot read it, and so does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkWork {
    topic: String,
    reason: Option<String>,
    after: Option<u64>,
    before: Option<u64>,
    /// Jobs a second.
    pub rate: u32,
}

/// A filter of jobs and what to do to them, as JSON.
#[derive(Serialize, Deserialize)]
struct StoredTarget {
    action: BulkVerb,
    /// Of a reschedule: how long after the change the jobs are due, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay: Option<u64>,
    /// Of a reschedule: when they are due, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    filter: StoredFilter,
}

const UNREADABLE: StoreError = StoreError::Unreadable("a bulk operation");

impl StoredTarget {
    fn new(filter: &Filter, action: BulkAction) -> Self {
        let (delay, at) = match action {
            BulkAction::Reschedule(Due::In(delay)) => (Some(millis_up(delay)), None),
            BulkAction::Reschedule(Due::At(at)) => (None, Some(at.as_millis())),
            BulkAction::Cancel | BulkAction::Run | BulkAction::Revive | BulkAction::Purge => (None, None),
        };
        Self { action: action.verb(), delay, at, filter: filter.into() }
    }

    fn target(self) -> Result<BulkTarget, StoreError> {
        let action = match (self.action, self.delay, self.at) {
            (BulkVerb::Cancel, None, None) => BulkAction::Cancel,
            (BulkVerb::Run, None, None) => BulkAction::Run,
            (BulkVerb::Revive, None, None) => BulkAction::Revive,
            (BulkVerb::Purge, None, None) => BulkAction::Purge,
            (BulkVerb::Reschedule, Some(delay), None) => {
                BulkAction::Reschedule(Due::In(Duration::from_millis(delay)))
            }
            (BulkVerb::Reschedule, None, Some(at)) => {
                BulkAction::Reschedule(Due::At(Timestamp::from_millis(at)))
            }
            _ => return Err(UNREADABLE),
        };
        Ok(BulkTarget::Jobs(self.filter.filter()?.into(), action))
    }
}

impl BulkWork {
    /// The stored form of a target and a rate.
    pub fn new(target: &BulkTarget, rate: u32) -> Self {
        match target {
            BulkTarget::Dead(filter) => Self {
                topic: filter.topic.as_str().to_owned(),
                reason: filter.reason.clone(),
                after: filter.after.map(Timestamp::as_millis),
                before: filter.before.map(Timestamp::as_millis),
                rate,
            },
            BulkTarget::Jobs(filter, action) => {
                let stored = serde_json::to_string(&StoredTarget::new(filter, *action));
                let stored = stored.expect("texts and numbers always serialise");
                Self { topic: String::new(), reason: Some(stored), after: None, before: None, rate }
            }
        }
    }

    /// The target.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if it is none that this version writes.
    pub fn target(self) -> Result<BulkTarget, StoreError> {
        if self.topic.is_empty() {
            let stored = self.reason.ok_or(UNREADABLE)?;
            return serde_json::from_str::<StoredTarget>(&stored).map_err(|_| UNREADABLE)?.target();
        }
        Ok(BulkTarget::Dead(DeadFilter {
            topic: Topic::from_stored(&self.topic).ok_or(UNREADABLE)?,
            reason: self.reason,
            after: self.after.map(Timestamp::from_millis),
            before: self.before.map(Timestamp::from_millis),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::tests::full;
    use super::*;

    #[test]
    fn a_target_is_read_back_as_it_was_stored() {
        let before = Some(Timestamp::from_millis(5));
        let dead = DeadFilter { topic: "t".parse().unwrap(), reason: None, after: None, before };
        let (delay, at) = (Due::In(Duration::from_secs(5)), Due::At(Timestamp::from_millis(7)));
        let actions = [BulkAction::Cancel, BulkAction::Run, BulkAction::Revive, BulkAction::Purge]
            .into_iter()
            .chain([BulkAction::Reschedule(delay), BulkAction::Reschedule(at)]);
        let jobs = actions.map(|action| BulkTarget::Jobs(full().into(), action));
        for target in jobs.chain([BulkTarget::Dead(dead)]) {
            let work = BulkWork::new(&target, 7);
            assert_eq!((work.rate, work.target().unwrap()), (7, target));
        }
        let work = |reason: Option<&str>| {
            let reason = reason.map(ToOwned::to_owned);
            BulkWork { topic: String::new(), reason, after: None, before: None, rate: 1 }
        };
        for reason in [None, Some("gone"), Some(r#"{"action":"cancel","at":5,"filter":{}}"#)] {
            assert!(work(reason).target().is_err(), "{reason:?}");
        }
    }
}
