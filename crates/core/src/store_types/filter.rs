//! The filter of jobs: which jobs to list, to export or to change, whether a job matches, and which index serves the
//! search. Lists and bulk operations share it. Done and cancelled jobs never match.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::destination::{Destination, Origin};
use crate::job::{Job, Tenant, TenantScope, Topic};
use crate::state::State;

/// The most characters of a text that the error of an attempt is searched for.
pub const MAX_ERROR_TEXT: usize = 128;

/// A range of times. Without bounds it also matches where there is no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// This time or later.
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl TimeRange {
    /// The range from `after` to the last millisecond before `before`.
    pub const fn new(after: Option<Timestamp>, before: Option<Timestamp>) -> Self {
        Self { after, before }
    }

    pub const fn after(&self) -> Option<Timestamp> {
        self.after
    }

    /// The first time after the range.
    pub const fn before(&self) -> Option<Timestamp> {
        self.before
    }

    /// Whether the range has no bound.
    pub const fn is_all(&self) -> bool {
        self.after.is_none() && self.before.is_none()
    }

    /// The range without `end` and all later times.
    #[must_use]
    pub fn until(self, end: Timestamp) -> Self {
        Self { before: Some(self.before.map_or(end, |before| before.min(end))), ..self }
    }

    fn has(&self, time: Option<Timestamp>) -> bool {
        match time {
            Some(at) => {
                self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|before| at < before)
            }
            None => self.is_all(),
        }
    }
}

/// The jobs to find: each field that is set must match. Done and cancelled jobs are no longer stored, and never match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    pub scope: TenantScope,
    /// Only jobs of these topics; empty for all. For a caller that may see only these.
    pub among: Vec<Topic>,
    /// Only jobs of this topic.
    pub topic: Option<Topic>,
    /// Only jobs in this state.
    pub state: Option<State>,
    /// Only jobs with this tag.
    pub tag: Option<String>,
    /// Only jobs that are delivered to this host.
    pub host: Option<Destination>,
    /// Only dead jobs with this reason.
    pub reason: Option<String>,
    /// Only jobs whose last failed attempt was answered with this status.
    pub status: Option<u16>,
    /// Only jobs with this text in the error of the last failed attempt.
    pub error: Option<String>,
    /// Only jobs that are due in this range.
    pub due: TimeRange,
    /// Only jobs that were created in this range.
    pub created: TimeRange,
    /// Only jobs whose last failed attempt was in this range.
    pub failed: TimeRange,
    /// Only jobs whose id begins with this.
    pub id_prefix: Option<String>,
}

impl Filter {
    /// Whether the filter fits every job that the caller may see: it has a scope and `among` at most.
    pub fn is_all(&self) -> bool {
        *self == Self { scope: self.scope.clone(), among: self.among.clone(), ..Self::default() }
    }

    /// The only state that matching jobs can be in: that of the filter, or dead with a reason; `None` for several.
    pub fn only_state(&self) -> Option<State> {
        self.state.or(self.reason.is_some().then_some(State::Dead))
    }

    /// The index to search: of tags for a tag in one tenant, else of dead jobs if only those match; `None` for none.
    pub fn index(&self) -> Option<FilterIndex<'_>> {
        match (&self.scope, &self.tag) {
            (TenantScope::One(tenant), Some(tag)) => Some(FilterIndex::Tag(tenant.as_ref(), tag)),
            (TenantScope::All, _) | (_, None) => {
                (self.only_state() == Some(State::Dead)).then_some(FilterIndex::Dead)
            }
        }
    }

    /// Whether jobs of a topic can match.
    pub fn has_topic(&self, topic: &Topic) -> bool {
        self.scope.has(topic)
            && self.topic.as_ref().is_none_or(|wanted| wanted == topic)
            && (self.among.is_empty() || self.among.contains(topic))
    }

    /// Whether a job matches. `origin` is that of its URL, and empty for a pull job, which matches no host.
    pub fn matches(&self, job: &Job, origin: &str) -> bool {
        let last = job.last.as_ref();
        let error = last.and_then(|last| last.error.as_deref());
        self.state.is_none_or(|state| state == job.state)
            && self.has_topic(&job.key.topic)
            && self.tag.as_ref().is_none_or(|tag| job.tags.iter().any(|of_job| of_job == tag))
            && self
                .host
                .as_ref()
                .is_none_or(|host| Origin::parse(origin).is_some_and(|origin| host.has(&origin)))
            && self.reason.as_ref().is_none_or(|reason| job.reason.as_ref() == Some(reason))
            && self.status.is_none_or(|status| last.and_then(|last| last.status) == Some(status))
            && self.error.as_ref().is_none_or(|text| error.is_some_and(|error| error.contains(text)))
            && self.due.has(Some(job.due))
            && self.created.has(Some(job.created))
            && self.failed.has(last.map(|last| last.at))
            && self.id_prefix.as_ref().is_none_or(|prefix| job.key.id.as_str().starts_with(prefix))
    }
}

/// An index that serves a filter. Pages read only the jobs in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterIndex<'a> {
    /// The jobs with a tag, of a tenant or of those without one.
    Tag(Option<&'a Tenant>, &'a str),
    Dead,
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::{JobKey, Tags};
    use crate::outcome::LastAttempt;

    const fn ms(ms: u64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(ms))
    }

    fn job() -> Job {
        let last = LastAttempt {
            at: Timestamp::from_millis(300),
            status: Some(503),
            error: Some("connection refused (os error 111)".to_owned()),
            duration: Duration::ZERO,
        };
        Job {
            key: JobKey { topic: "pay".parse().unwrap(), id: "order-17".parse().unwrap() },
            state: State::Dead,
            due: Timestamp::from_millis(200),
            created: Timestamp::from_millis(100),
            attempts: 3,
            failures: 3,
            last: Some(last),
            reason: Some("exhausted".to_owned()),
            tags: Tags::from_stored("customer:42 eu").unwrap(),
        }
    }

    /// A filter with all fields, which fits [`job`].
    pub(crate) fn full() -> Filter {
        Filter {
            scope: TenantScope::One(None),
            among: vec!["pay".parse().unwrap(), "other".parse().unwrap()],
            topic: Some("pay".parse().unwrap()),
            state: Some(State::Dead),
            tag: Some("eu".to_owned()),
            host: Destination::parse("h").ok(),
            reason: Some("exhausted".to_owned()),
            status: Some(503),
            error: Some("refused".to_owned()),
            due: TimeRange::new(ms(200), ms(201)),
            created: TimeRange::new(ms(100), ms(101)),
            failed: TimeRange::new(ms(300), ms(301)),
            id_prefix: Some("order-".to_owned()),
        }
    }

    #[test]
    fn each_field_must_fit() {
        let (job, origin) = (job(), "http://h:81");
        assert!(full().matches(&job, origin) && Filter::default().matches(&job, origin));
        assert!(Filter::default().is_all() && !full().is_all());
        let others: [fn(&mut Filter); 17] = [
            |f| f.scope = TenantScope::One(Some("acme".parse().unwrap())),
            |f| f.among = vec!["other".parse().unwrap()],
            |f| f.topic = Some("other".parse().unwrap()),
            |f| f.state = Some(State::Delayed),
            |f| f.tag = Some("e".to_owned()),
            |f| f.host = Destination::parse("h:80").ok(),
            |f| f.reason = Some("gone".to_owned()),
            |f| f.status = Some(500),
            |f| f.error = Some("timeout".to_owned()),
            |f| f.due = TimeRange::new(ms(201), None),
            |f| f.due = TimeRange::new(None, ms(200)),
            |f| f.created = TimeRange::new(ms(101), None),
            |f| f.created = TimeRange::new(None, ms(100)),
            |f| f.failed = TimeRange::new(ms(301), None),
            |f| f.failed = TimeRange::new(None, ms(300)),
            |f| f.id_prefix = Some("order-17x".to_owned()),
            |f| f.host = Destination::parse("g").ok(),
        ];
        for (n, change) in others.into_iter().enumerate() {
            let mut filter = full();
            change(&mut filter);
            assert!(!filter.matches(&job, origin), "{n}");
        }
        let reason = Some("gone".to_owned());
        let states =
            [(None, None), (Some(State::Ready), None), (None, reason.clone()), (Some(State::Ready), reason)];
        let only = states.map(|(state, reason)| Filter { state, reason, ..Filter::default() }.only_state());
        assert_eq!(only, [None, Some(State::Ready), Some(State::Dead), Some(State::Ready)]);
        let untried = Job { last: None, reason: None, ..job };
        for filter in [
            Filter { status: Some(503), ..Filter::default() },
            Filter { error: Some(String::new()), ..Filter::default() },
            Filter { failed: TimeRange::new(None, ms(999)), ..Filter::default() },
            Filter { reason: Some("exhausted".to_owned()), ..Filter::default() },
        ] {
            assert!(!filter.matches(&untried, origin), "{filter:?}");
        }
    }
}
