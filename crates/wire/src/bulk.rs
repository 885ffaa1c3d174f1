//! Bulk operations in the API: the requests to cancel, run, revive, reschedule or purge the jobs that a filter fits,
//! the answers with their progress, and the result of a dry run.

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::Due;
use ringback_core::state::State;
use ringback_core::store_types::{Bulk, BulkAction, BulkTarget, BulkVerb, Filter, MAX_RATE};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::dead::{DEFAULT_RATE, RATE, Rate};
use super::declare::request;
use super::field_parsers::due::due;
use super::field_parsers::object::{Fields, Mistakes, open_or_empty};
use super::field_parsers::values::object;
use super::filter::{FilterDetails, parse};
use super::job_answers::JobResponse;
use super::kinds::{Flag, Given};
use super::problem::Problem;
use super::schema::{Delay, DueTime, FilterFields, ZoneName};

/// The most jobs that a dry run shows.
pub const MAX_EXAMPLES: usize = 10;

const FILTER: &str = "an object with one or more of topic, state, tag, host, reason, status, error, due_after, due_before, created_after, created_before, failed_after, failed_before and id_prefix";
const ALL: &str = "a filter with one field or more, or \"all\": true for all jobs";

request! {
    /// Which jobs to cancel, run, revive or purge, and how fast.
    #[example {"filter": {"tag": "customer:42"}, "dry_run": true}]
    pub struct BulkRequest(open_or_empty) {
        /// Which jobs. One field at least, unless `all` is true.
        filter: Given<FilterFields>;
        /// Whether to change all jobs; only without a filter.
        all: Flag, or false;
        /// The number of jobs per second. By default 100 to run or revive them, and 100,000 to cancel or purge them.
        rate: Rate [RATE];
        /// Whether to count the jobs and to change nothing.
        dry_run: Flag, or false;
    }
}

request! {
    /// Which jobs to reschedule, how fast, and until when: exactly one of `delay` and `at`.
    #[example {"filter": {"topic": "pay.notify", "due_before": "2026-11-20T09:30:00Z"}, "delay": "1h"}]
    pub struct BulkRescheduleRequest(open_or_empty) {
        /// Which jobs. One field at least, unless `all` is true.
        filter: Given<FilterFields>;
        /// Whether to change all jobs; only without a filter.
        all: Flag, or false;
        /// The number of jobs per second; 100,000 by default.
        rate: Rate [RATE];
        /// Whether to count the jobs and to change nothing.
        dry_run: Flag, or false;
        /// How long after its change a job is due; 0 means at once.
        delay: Given<Delay>;
        /// A time at most 10 years ahead, as in a submit. A time in the past means at once.
        at: Given<DueTime>;
        /// The time zone of `at`, as in a submit. Only together with `at`.
        time_zone: Given<ZoneName>;
    }
}

/// The body of a bulk operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBulk {
    /// Which jobs to change. A topic has no tenant yet.
    pub filter: Filter,
    pub action: BulkAction,
    /// Jobs a second.
    pub rate: u32,
    /// Whether to count the jobs, and to change nothing.
    pub is_dry_run: bool,
}

impl NewBulk {
    /// Parses the body of the call that does `verb`. `now` is for the due time of a reschedule.
    ///
    /// # Errors
    /// A 400 problem if it is not a JSON object, 422 with all wrong fields.
    pub fn parse(verb: BulkVerb, json: &[u8], now: Timestamp) -> Result<Self, Problem> {
        let (fields, mut mistakes) = (open_or_empty(json)?, Mistakes::default());
        let (is_all, rate, is_dry_run) = if verb == BulkVerb::Reschedule {
            let request = BulkRescheduleRequest::read(&fields, &mut mistakes);
            (request.all, request.rate, request.dry_run)
        } else {
            let request = BulkRequest::read(&fields, &mut mistakes);
            (request.all, request.rate, request.dry_run)
        };
        let (filter, is_wrong) = filter(&fields, &mut mistakes);
        let action = action(verb, &fields, now, &mut mistakes);
        check_state(&filter, action, &mut mistakes);
        if filter.is_all() && !is_all && !is_wrong {
            mistakes.add("filter", "it has no field, and so would fit all jobs", ALL);
        } else if is_all && !filter.is_all() {
            mistakes.add("all", "given with a filter that has fields", "true without a filter");
        }
        mistakes.or(Self { filter, action, rate: rate.unwrap_or(default_rate(action)), is_dry_run })
    }
}

/// The rate if the request names none: lower where the jobs are delivered soon after the change.
const fn default_rate(action: BulkAction) -> u32 {
    match action {
        BulkAction::Run | BulkAction::Revive => DEFAULT_RATE,
        BulkAction::Cancel | BulkAction::Reschedule(_) | BulkAction::Purge => MAX_RATE,
    }
}

/// Parses the filter; without one it fits all jobs. Returns also whether it has mistakes.
fn filter(fields: &Fields<'_>, mistakes: &mut Mistakes) -> (Filter, bool) {
    if fields.get("filter").is_none() {
        return (Filter::default(), false);
    }
    let Some(fields) = object(fields, "filter", FILTER, mistakes) else { return (Filter::default(), true) };
    let mut inner = Mistakes::default();
    let filter = parse(&fields, &mut inner);
    let is_wrong = !inner.is_empty();
    mistakes.add_within("filter", inner);
    (filter, is_wrong)
}

fn check_state(filter: &Filter, action: BulkAction, mistakes: &mut Mistakes) {
    let Some(state) = filter.state else { return };
    if !action.states().contains(&state) {
        let detail = format!("{action} does not change {state} jobs");
        let states: Vec<_> = action.states().iter().map(<&str>::from).collect();
        mistakes.add("filter.state", detail, format!("{}; or leave it out", states.join(", ")));
    }
}

/// The action of a verb. A reschedule has the due time of the body; if that is missing, adds a mistake.
fn action(verb: BulkVerb, fields: &Fields<'_>, now: Timestamp, mistakes: &mut Mistakes) -> BulkAction {
    match verb {
        BulkVerb::Cancel => BulkAction::Cancel,
        BulkVerb::Run => BulkAction::Run,
        BulkVerb::Revive => BulkAction::Revive,
        BulkVerb::Purge => BulkAction::Purge,
        BulkVerb::Reschedule => {
            let due = due(fields, now, mistakes);
            if fields.get("delay").is_none() && fields.get("at").is_none() {
                let allowed = "one of delay and at; a delay of 0 means now";
                mistakes.add("delay", "missing, and so is at", allowed);
            }
            BulkAction::Reschedule(due)
        }
    }
}

/// The result of a dry run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DryRunResponse {
    /// How many jobs the operation would change now.
    pub count: u64,
    /// Whether all jobs were looked at. If not, `count` is an estimate from those that were.
    pub exact: bool,
    /// Some of the jobs, at most 10.
    pub examples: Vec<JobResponse>,
    /// How many jobs of the installation were looked at. Only the operator sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examined: Option<u64>,
}

/// A bulk operation and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkResponse {
    /// Its id.
    pub id: String,
    /// Whose it is, in a list of all tenants; absent if it belongs to none, and in other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `cancel`, `run`, `revive`, `reschedule` or `purge`.
    #[schema(value_type = BulkVerb)]
    pub action: String,
    /// Which jobs it changes, of those that were created before it began. Empty for all.
    #[schema(value_type = crate::schema::FilterFields)]
    pub filter: FilterDetails,
    /// `running`, `done` or `stopped`.
    #[schema(value_type = ringback_core::store_types::BulkState)]
    pub state: String,
    /// How many jobs it has changed so far. A reserved job counts once its cancel is requested.
    pub changed: u64,
    /// How many jobs a second it may change.
    pub rate: u32,
    /// When it began.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    /// Of a revive of a topic: only jobs that died at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub died_after: Option<String>,
    /// Of a revive of a topic: only jobs that died before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub died_before: Option<String>,
    /// Of a reschedule: how long after the change the jobs are due, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Of a reschedule: when the jobs are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub at: Option<String>,
}

impl From<&Bulk> for BulkResponse {
    fn from(bulk: &Bulk) -> Self {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let (filter, action, died) = match &bulk.target {
            BulkTarget::Jobs(filter, action) => (FilterDetails::from(&**filter), *action, (None, None)),
            BulkTarget::Dead(filter) => {
                let answer = FilterDetails {
                    topic: Some(filter.topic.to_string()),
                    state: Some(State::Dead.to_string()),
                    reason: filter.reason.clone(),
                    ..FilterDetails::default()
                };
                (answer, BulkAction::Revive, (time(filter.after), time(filter.before)))
            }
        };
        let (delay_ms, at) = match action {
            BulkAction::Reschedule(Due::In(delay)) => (Some(millis_up(delay)), None),
            BulkAction::Reschedule(Due::At(at)) => (None, Some(at.to_string())),
            BulkAction::Cancel | BulkAction::Run | BulkAction::Revive | BulkAction::Purge => (None, None),
        };
        Self {
            id: bulk.id.to_string(),
            tenant: None,
            action: action.to_string(),
            filter,
            state: bulk.state.to_string(),
            changed: bulk.changed,
            rate: bulk.rate,
            started_at: bulk.started.to_string(),
            ended_at: time(bulk.ended),
            died_after: died.0,
            died_before: died.1,
            delay_ms,
            at,
        }
    }
}

/// The running bulk operations, and those that ended within a day; the latest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulksResponse {
    /// The bulk operations.
    pub items: Vec<BulkResponse>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_763_600_000_000);

    fn fields(verb: BulkVerb, json: &str) -> Vec<String> {
        let problem = NewBulk::parse(verb, json.as_bytes(), NOW).unwrap_err();
        assert_eq!(problem.status, 422, "{json}: {problem:?}");
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn all_fields_of_a_filter_are_read_and_shown() {
        let filter = r#"{"topic":"pay","state":"dead","tag":"customer:42","host":"H:8080","reason":"gone","status":503,"error":"refused","due_after":"1970-01-01T00:00:01Z","due_before":"1970-01-01T00:00:02Z","created_after":"1970-01-01T00:00:03Z","created_before":"1970-01-01T00:00:04Z","failed_after":"1970-01-01T00:00:05Z","failed_before":"1970-01-01T00:00:06Z","id_prefix":"order-"}"#;
        let json = format!(r#"{{"filter":{filter},"rate":7,"dry_run":true}}"#);
        let asked = NewBulk::parse(BulkVerb::Revive, json.as_bytes(), NOW).unwrap();
        assert_eq!((asked.action, asked.rate, asked.is_dry_run), (BulkAction::Revive, 7, true));
        let shown = serde_json::to_string(&FilterDetails::from(&asked.filter)).unwrap();
        let written = filter.replace("H:8080", "h:8080").replace("Z\"", ".000Z\"");
        assert_eq!(shown, written);
    }

    #[test]
    fn an_empty_filter_needs_all() {
        for json in ["", "{}", r#"{"filter":{}}"#, r#"{"all":false}"#, r#"{"filter":{"tag":null}}"#] {
            assert_eq!(fields(BulkVerb::Cancel, json), ["filter"], "{json}");
        }
        let all = NewBulk::parse(BulkVerb::Cancel, br#"{"all":true}"#, NOW).unwrap();
        assert!(all.filter.is_all() && all.rate == MAX_RATE && !all.is_dry_run);
        assert_eq!(fields(BulkVerb::Cancel, r#"{"all":true,"filter":{"tag":"a"}}"#), ["all"]);
    }

    #[test]
    fn wrong_fields_are_named() {
        let wrong = r#"{"filter":{"topic":"a b","state":"done","tag":"a b","host":"a b","reason":"a b","status":99,"error":"","due_after":5,"due_before":"now","id_prefix":"/","colour":1},"rate":0,"dry_run":1,"colour":2}"#;
        let expected = [
            "colour",
            "rate",
            "dry_run",
            "filter.colour",
            "filter.topic",
            "filter.state",
            "filter.tag",
            "filter.host",
            "filter.reason",
            "filter.status",
            "filter.error",
            "filter.due_after",
            "filter.due_before",
            "filter.id_prefix",
        ];
        assert_eq!(fields(BulkVerb::Cancel, wrong), expected);
        assert_eq!(fields(BulkVerb::Run, r#"{"filter":{"state":"dead"}}"#), ["filter.state"]);
        assert_eq!(fields(BulkVerb::Revive, r#"{"filter":{"state":"ready"}}"#), ["filter.state"]);
        assert_eq!(fields(BulkVerb::Cancel, r#"{"filter":{"tag":"a"},"delay":1}"#), ["delay"]);
        assert_eq!(fields(BulkVerb::Reschedule, r#"{"filter":{"tag":"a"}}"#), ["delay"]);
        assert_eq!(fields(BulkVerb::Cancel, r#"{"filter":5}"#), ["filter"]);
    }

    #[test]
    fn a_reschedule_has_a_time_and_what_is_delivered_has_a_slow_rate() {
        let asked = |verb, json: &str| NewBulk::parse(verb, json.as_bytes(), NOW).unwrap();
        let later = asked(BulkVerb::Reschedule, r#"{"filter":{"tag":"a"},"delay":"1h"}"#);
        let hour = std::time::Duration::from_secs(3600);
        assert_eq!((later.action, later.rate), (BulkAction::Reschedule(Due::In(hour)), MAX_RATE));
        assert_eq!(asked(BulkVerb::Run, r#"{"filter":{"tag":"a"}}"#).rate, DEFAULT_RATE);
    }
}
