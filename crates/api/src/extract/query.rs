//! Query strings: one type for each set of parameters that a call has. All mistakes of a query are
//! reported at once, parameter by parameter; `parameters` reads them one by one.

mod audit_log;
mod forecast;
mod history;
mod parameters;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_admission::invalid_field;
use ringback_core::clock::Timestamp;
use ringback_core::job::{JobId, Topic};
use ringback_core::schedule::ScheduleKey;
use ringback_core::store_types::{Cursor, DeadCursor, DeadFilter, DestinationQuery, EventName, Filter};
use ringback_wire::{
    FILTER_FIELDS, INCLUDE_REQUEST, MAX_UPCOMING, REASON, WrongValue, is_reason, set_filter_field,
};
use serde_json::{Value, json};
use strum::VariantNames as _;

pub(crate) use self::audit_log::{AuditLogFilter, AuditLogQuery};
pub(crate) use self::forecast::ForecastQuery;
pub(crate) use self::history::{EndedJobsQuery, ErasureQuery, HistoryQuery, IncludeOfEnds};
use self::parameters::{Parameters, shortened};
pub(crate) use self::parameters::{cursor_of, is_no};
use crate::access::Authenticated;
use crate::error::ApiError;
use crate::events;
use crate::paging::{ListCursor, PurgeCursor};

const CURSOR: &str = "`next` of a page with the same filter; omit it for the first page";
const TOPICS_CURSOR: &str = "`next` of a page of topics; omit it for the first page";
const DESTINATIONS_CURSOR: &str = "`next` of a page of destinations; omit it for the first page";
const SCHEDULES_CURSOR: &str = "`next` of a page of schedules; omit it for the first page";
const FORCE_CURSOR: &str = "`next` of the previous answer; omit it to start at the beginning";
const DEAD_CURSOR: &str =
    "`next` of a previous answer for the same topic and filter; omit it to start at the beginning";

/// How many times of a schedule are shown by default.
const DEFAULT_UPCOMING: usize = 5;

pub(crate) struct Query<T>(pub(crate) T);

pub(crate) trait FromQuery: Sized {
    /// Reads every parameter of the query. Any parameter that is not read is a mistake.
    fn read(query: &mut Parameters) -> Self;
}

impl<S: Sync, T: FromQuery> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut query = Parameters::new(&parts.uri, Authenticated::of(parts))?;
        let read = T::read(&mut query);
        query.finish()?;
        Ok(Self(read))
    }
}

/// The parameter `include`: what an answer has besides jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    /// The request of each job, and the settings that apply to it.
    Request,
}

impl FromQuery for Include {
    fn read(query: &mut Parameters) -> Self {
        let allowed = format_args!("{INCLUDE_REQUEST}; omit it for jobs without their requests");
        let include = query.read("include", allowed, |text| {
            let include = Some(Self::Request).filter(|_| text == INCLUDE_REQUEST);
            include.ok_or_else(|| format!("{:?} cannot be included", shortened(text)))
        });
        include.unwrap_or(Self::Nothing)
    }
}

/// The parameter `from`: where what is put comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutFrom {
    Caller,
    /// A backup, which is put as it is: it may have URLs that no client can send to.
    Backup,
}

impl FromQuery for PutFrom {
    fn read(query: &mut Parameters) -> Self {
        let from = query.read("from", "backup, by a restore; omit it otherwise", |text| {
            let from = Some(Self::Backup).filter(|_| text == "backup");
            from.ok_or_else(|| format!("{:?} is not a source", shortened(text)))
        });
        from.unwrap_or(Self::Caller)
    }
}

/// A page of the job list.
pub(crate) struct PageQuery {
    pub(crate) filter: Filter,
    /// Where the page begins; `None` for the first page.
    pub(crate) from: Option<ListCursor>,
    pub(crate) limit: usize,
    pub(crate) include: Include,
}

impl FromQuery for PageQuery {
    fn read(query: &mut Parameters) -> Self {
        let (filter, from, limit) = (Filter::read(query), query.parse("cursor", CURSOR), query.limit());
        let filter = Filter { scope: query.own(), ..filter };
        Self { filter, from, limit, include: Include::read(query) }
    }
}

/// Reads which jobs to list, among those that the caller's key reaches.
impl FromQuery for Filter {
    fn read(query: &mut Parameters) -> Self {
        let topic = query.topic();
        let mut filter = Self { topic, ..query.filter_of_caller() };
        for (name, _) in FILTER_FIELDS.into_iter().filter(|(name, _)| *name != "topic") {
            let Some(text) = query.value(name) else { continue };
            if let Err(WrongValue { detail, allowed }) = set_filter_field(&mut filter, name, &text) {
                query.mistake(name, detail, allowed);
            }
        }
        filter
    }
}

pub(crate) struct TopicsQuery {
    /// The page begins after this topic; `None` for the first page.
    pub(crate) after: Option<Topic>,
    pub(crate) limit: usize,
}

impl FromQuery for TopicsQuery {
    fn read(query: &mut Parameters) -> Self {
        Self { after: query.topic_cursor(TOPICS_CURSOR), limit: query.limit() }
    }
}

/// A page of the list of destinations.
impl FromQuery for DestinationQuery {
    fn read(query: &mut Parameters) -> Self {
        let after = query.parse("cursor", DESTINATIONS_CURSOR);
        let failing = query.parse("failing", "true or false").unwrap_or(false);
        Self { after, limit: query.limit(), failing }
    }
}

pub(crate) struct SchedulesQuery {
    /// The page begins after this schedule; `None` for the first page.
    pub(crate) after: Option<(ScheduleKey, Topic)>,
    pub(crate) limit: usize,
}

impl FromQuery for SchedulesQuery {
    fn read(query: &mut Parameters) -> Self {
        let after = query.read("cursor", SCHEDULES_CURSOR, |text| {
            let parts = text.split_once('~');
            let parts = parts.and_then(|(id, topic)| Some((id.parse().ok()?, Topic::from_stored(topic)?)));
            parts.ok_or_else(|| is_no("cursor", text))
        });
        let after = after.map(|(id, topic)| {
            let topic = query.of_caller(topic);
            (ScheduleKey { tenant: topic.tenant(), id }, topic)
        });
        Self { after, limit: query.limit() }
    }
}

/// How many of the next times of a schedule to show.
pub(crate) struct UpcomingQuery {
    pub(crate) count: usize,
}

impl FromQuery for UpcomingQuery {
    fn read(query: &mut Parameters) -> Self {
        Self { count: query.count("count", DEFAULT_UPCOMING, MAX_UPCOMING) }
    }
}

/// Whether the jobs of a topic are deleted with it, and where to continue.
pub(crate) enum ForceQuery {
    No,
    Yes(Option<Cursor>),
}

impl FromQuery for ForceQuery {
    fn read(query: &mut Parameters) -> Self {
        let force = query.parse("force", "true or false");
        let from = query.parse("cursor", FORCE_CURSOR);
        if from.is_some() && force != Some(true) {
            query.mistake("cursor", "given without force", "only together with force=true");
        }
        if force == Some(true) { Self::Yes(from) } else { Self::No }
    }
}

pub(crate) struct DetachQuery {
    /// Whether to drop what waits for it.
    pub(crate) drops: bool,
}

impl FromQuery for DetachQuery {
    fn read(query: &mut Parameters) -> Self {
        Self { drops: query.parse("drop", "true or false") == Some(true) }
    }
}

/// A filter of dead jobs.
pub(crate) struct DeadQuery {
    reason: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl DeadQuery {
    /// The filter as it was asked, for the audit log; null if all jobs match.
    pub(crate) fn shown(&self) -> Value {
        if self.reason.is_none() && self.after.is_none() && self.before.is_none() {
            return Value::Null;
        }
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        json!({"reason": self.reason, "died_after": time(self.after), "died_before": time(self.before)})
    }

    pub(crate) fn of(self, topic: Topic) -> DeadFilter {
        DeadFilter { topic, reason: self.reason, after: self.after, before: self.before }
    }
}

impl FromQuery for DeadQuery {
    fn read(query: &mut Parameters) -> Self {
        let reason = query.text("reason", REASON, is_reason);
        Self { reason, after: query.time("died_after"), before: query.time("died_before") }
    }
}

pub(crate) struct DeadPageQuery {
    pub(crate) filter: DeadQuery,
    pub(crate) from: Option<DeadCursor>,
    pub(crate) limit: usize,
    pub(crate) include: Include,
}

impl FromQuery for DeadPageQuery {
    fn read(query: &mut Parameters) -> Self {
        let filter = DeadQuery::read(query);
        let (from, limit) = (query.parse("cursor", DEAD_CURSOR), query.limit());
        Self { filter, from, limit, include: Include::read(query) }
    }
}

/// Which dead jobs to purge, and where to continue.
pub(crate) struct PurgeQuery {
    pub(crate) filter: DeadQuery,
    pub(crate) from: Option<PurgeCursor>,
}

impl FromQuery for PurgeQuery {
    fn read(query: &mut Parameters) -> Self {
        Self { filter: DeadQuery::read(query), from: query.parse("cursor", DEAD_CURSOR) }
    }
}

/// Which events to stream.
impl FromQuery for events::Filter {
    fn read(query: &mut Parameters) -> Self {
        let topic = query.topic();
        let id = query.parse("id", JobId::ALLOWED);
        if id.is_some() && !query.has("topic") {
            query.mistake("id", "given without topic", "only together with topic");
        }
        let allowed = EventName::VARIANTS.join(", ");
        let allowed =
            format!("one or more of {allowed}, each once, separated by commas; omit it for all of them");
        let kind = |name: &str| name.parse::<EventName>().map_err(|_| is_no("kind", name));
        let kinds = query.read("kind", allowed, |text| {
            let mut kinds = Vec::new();
            for kind in text.split(',').map(kind) {
                let kind = kind?;
                // Each event is compared with all of them.
                if kinds.contains(&kind) {
                    return Err(format!("{kind} is named twice"));
                }
                kinds.push(kind);
            }
            Ok(kinds)
        });
        Self { topic, id, kinds: kinds.unwrap_or_default(), caller: None }
    }
}

/// The 422 for a cursor that was issued before the store was restarted.
pub(crate) fn outdated_cursor() -> ApiError {
    let detail = "the store was restarted since this cursor was issued; begin again without a cursor";
    invalid_field("cursor", detail, CURSOR).into()
}

#[cfg(test)]
mod tests;
