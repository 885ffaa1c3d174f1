//! What the parsers check and an attribute of the schema macro cannot say: fields that exclude each other,
//! reserved names, and the names of states. `openapi` merges each rule into the schema that it names.

use std::time::Duration;

use ringback_core::contract::{AttemptOutcome, BulkAction, BulkState, BulkVerb, NOTICE_TOPICS};
use ringback_core::job::{Due, RESERVED_HEADERS, RESERVED_PREFIXES};
use ringback_core::schedule::{Missed, Overlap};
use ringback_core::state::State;
use ringback_wire::FILTER_FIELDS;
use serde_json::{Value, json};
use strum::VariantArray as _;

use super::patterns::in_any_case;

/// The name of a schema, or of a property of it after a slash, with the JSON to merge into it.
pub(crate) type Rule = (&'static str, Value);

/// All rules.
pub(crate) fn rules() -> Vec<Rule> {
    let mut rules = values();
    rules.extend(requests());
    rules.extend(bulk_operations());
    rules.extend(schedules());
    rules.extend(answers());
    rules
}

fn values() -> Vec<Rule> {
    let no_dots = json!({"not": {"enum": [".", ".."]}});
    let no_part_is_dots = json!({"not": {"pattern": "(?:^|[~/])\\.{1,2}(?:[~/]|$)"}});
    let spellings = |name: &str| in_any_case(name).replace('-', "[-_]");
    let prefixes = RESERVED_PREFIXES.map(|prefix| format!("{}.*", spellings(prefix)));
    let reserved: Vec<_> = RESERVED_HEADERS.into_iter().map(spellings).chain(prefixes).collect();
    let reserved = format!("^(?:{})$", reserved.join("|"));
    vec![
        ("TopicName", no_dots.clone()),
        ("TenantName", no_dots.clone()),
        ("QuotaName", no_dots.clone()),
        ("TopicCursor", no_part_is_dots.clone()),
        ("ScheduleCursor", no_part_is_dots),
        ("JobName", no_dots.clone()),
        ("CredentialText", no_dots.clone()),
        ("ScheduleName", no_dots),
        ("HeaderPatch", json!({"propertyNames": {"not": {"pattern": reserved.as_str()}}})),
        ("HeaderFields", json!({"propertyNames": {"not": {"pattern": reserved}}})),
    ]
}

/// What no job has, whether it is submitted, imported or part of a schedule. A field that is null counts as absent,
/// except the body.
fn of_any_job() -> Vec<Value> {
    let with_body =
        |field: &str| json!({"allOf": [{"required": ["body"], "properties": {"body": {}}}, given(&[field])]});
    let bodyless = json!({"required": ["method"], "properties": {"method": {"enum": ["GET", "DELETE"]}}});
    let without_body = |field: &str| {
        let has_body = if field == "body" { json!({"required": ["body"]}) } else { given(&[field]) };
        json!({"allOf": [bodyless, has_body]})
    };
    vec![
        given(&["url", "ttr"]),
        given(&["timeout", "ttr"]),
        given(&["method", "ttr"]),
        given(&["on_done", "ttr"]),
        without_body("body"),
        without_body("body_base64"),
        with_body("body_base64"),
        with_body("content_type"),
    ]
}

/// Jobs of these topics are made where others die or are done.
fn of_notices() -> Value {
    json!({"properties": {"topic": {"enum": NOTICE_TOPICS}}})
}

/// Exactly one of two fields.
fn one_of(one: &str, other: &str) -> Value {
    let (one, other) = (given(&[one]), given(&[other]));
    json!({"oneOf": [one, other]})
}

fn requests() -> Vec<Rule> {
    let both = |one: &str, other: &str| given(&[one, other]);
    let lone_zone = json!({"allOf": [given(&["time_zone"]), {"not": given(&["at"])}]});
    let job = [
        both("delay", "at"),
        lone_zone.clone(),
        json!({"allOf": [of_notices(), given(&["on_dead"])]}),
        json!({"allOf": [of_notices(), given(&["on_done"])]}),
    ];
    let job: Vec<_> = of_any_job().into_iter().chain(job).collect();
    let changes =
        json!({"required": ["if_exists"], "properties": {"if_exists": {"enum": ["replace", "postpone"]}}});
    let postpones = json!({"required": ["if_exists"], "properties": {"if_exists": {"const": "postpone"}}});
    let submit = [
        of_notices(),
        json!({"allOf": [changes, {"not": given(&["id"])}]}),
        json!({"allOf": [given(&["max_delay"]), {"not": postpones}]}),
    ];
    let submit: Vec<_> = job.iter().cloned().chain(submit).collect();
    let is_dead = json!({"required": ["state"], "properties": {"state": {"const": State::Dead}}});
    let line = [
        json!({"allOf": [is_dead, given(&["delay"])]}),
        json!({"allOf": [is_dead, {"not": given(&["reason"])}]}),
        json!({"allOf": [given(&["reason"]), {"not": is_dead}]}),
        // An import changes no job that exists.
        changes,
        given(&["max_delay"]),
    ];
    let line: Vec<_> = job.iter().cloned().chain(line).collect();
    let without = |one: &str, other: &str| json!({"allOf": [given(&[one]), {"not": given(&[other])}]});
    let contents = ["bearer", "basic", "certificate", "key", "ca"];
    let any = json!({"anyOf": contents.map(|field| given(&[field]))});
    let credential = [
        both("bearer", "basic"),
        without("certificate", "key"),
        without("key", "certificate"),
        json!({"allOf": [given(&["sealed"]), any]}),
        json!({"allOf": [{"not": given(&["sealed"])}, {"not": any}]}),
    ];
    vec![
        ("CredentialRequest", json!({"not": {"anyOf": credential}})),
        ("CredentialRequest/to", json!({"items": {"not": {"const": "*"}}})),
        ("JobRequest", json!({"not": {"anyOf": submit}})),
        ("ImportLine", json!({"not": {"anyOf": line}})),
        ("RescheduleRequest", one_of("delay", "at")),
        ("RescheduleRequest", json!({"not": lone_zone})),
        ("Retry", json!({"oneOf": [given(&["delays"]), given(&["preset"]), given(&["backoff"])]})),
        ("Retry/max", json!({"not": {"const": 0}})),
    ]
}

/// A bulk operation has a filter with a field, or `all`, and names no state that it does not change.
fn bulk_operations() -> Vec<Rule> {
    let fields = FILTER_FIELDS.map(|(name, _)| given(&[name]));
    let has_filter =
        json!({"required": ["filter"], "properties": {"filter": {"type": "object", "anyOf": fields}}});
    let is_all = json!({"required": ["all"], "properties": {"all": {"const": true}}});
    let which = json!({"oneOf": [has_filter, is_all]});
    let of_states = |action: BulkAction| {
        let states = action.states().iter().map(|state| json!(state)).chain([Value::Null]);
        let state = json!({"state": {"enum": states.collect::<Vec<_>>()}});
        json!({"properties": {"filter": {"properties": state}}})
    };
    let lone_zone = json!({"allOf": [given(&["time_zone"]), {"not": given(&["at"])}]});
    let reschedule = BulkAction::Reschedule(Due::In(Duration::ZERO));
    let timed = [which.clone(), of_states(reschedule), one_of("delay", "at"), json!({"not": lone_zone})];
    vec![
        ("BulkCancelRequest", json!({"allOf": [which, of_states(BulkAction::Cancel)]})),
        ("BulkRunRequest", json!({"allOf": [which, of_states(BulkAction::Run)]})),
        ("BulkReviveRequest", json!({"allOf": [which, of_states(BulkAction::Revive)]})),
        ("BulkPurgeRequest", json!({"allOf": [which, of_states(BulkAction::Purge)]})),
        ("BulkRescheduleRequest", json!({"allOf": timed})),
    ]
}

fn schedules() -> Vec<Rule> {
    let catches_up = json!({
        "required": ["missed", "overlap"],
        "properties": {"missed": {"const": Missed::All}, "overlap": {"const": Overlap::Skip}},
    });
    let schedule = [given(&["anchor", "cron"]), catches_up];
    let job: Vec<_> = of_any_job().into_iter().chain([of_notices()]).collect();
    vec![
        ("ScheduleRequest", one_of("cron", "every")),
        ("ScheduleRequest", json!({"not": {"anyOf": schedule}})),
        ("ScheduledJobRequest", json!({"not": {"anyOf": job}})),
    ]
}

fn answers() -> Vec<Rule> {
    let pending: Vec<_> = State::VARIANTS.iter().filter(|state| !state.is_terminal()).collect();
    let policy =
        json!({"oneOf": [{"$ref": "#/components/schemas/PolicyRequest"}, {"type": "null"}], "type": null});
    vec![
        ("JobResponse/state", json!({"enum": State::VARIANTS})),
        ("ExportLine/state", json!({"enum": pending})),
        ("CancelResponse/state", json!({"enum": [State::Cancelled, State::Reserved]})),
        ("EventResponse/outcome", json!({"enum": AttemptOutcome::VARIANTS})),
        ("BulkResponse/state", json!({"enum": BulkState::VARIANTS})),
        ("BulkResponse/action", json!({"enum": BulkVerb::VARIANTS})),
        ("InFlight", json!({"oneOf": [{"const": true}, {"const": "unknown"}]})),
        ("PolicyResponse/policy", policy.clone()),
        ("TopicResponse/policy", policy.clone()),
        ("TopicLine/policy", policy),
        ("Problem/status", json!({"minimum": 400, "maximum": 599})),
        ("NoticeBody/type", json!({"enum": ["job.dead", "job.done"]})),
    ]
}

/// The schema of an object in which none of these fields is absent or null.
fn given(fields: &[&str]) -> Value {
    let not_null = fields.iter().map(|field| ((*field).to_owned(), json!({"not": {"type": "null"}})));
    json!({"required": fields, "properties": not_null.collect::<serde_json::Map<_, _>>()})
}

/// Merges `patch` into a value: objects field by field, anything else in place of what was there. A null
/// removes it.
pub(crate) fn merge(value: &mut Value, patch: Value) {
    match (value, patch) {
        (Value::Object(fields), Value::Object(patch)) => {
            for (name, patch) in patch {
                if patch.is_null() {
                    fields.remove(&name);
                } else {
                    merge(fields.entry(name).or_insert(Value::Null), patch);
                }
            }
        }
        (value, patch) => *value = patch,
    }
}
