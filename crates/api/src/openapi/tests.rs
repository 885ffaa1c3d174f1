//! Tests that the OpenAPI document agrees with the routes, the parsers and the problems that are returned.

mod limits;
mod statuses;

use std::collections::BTreeSet;

use axum::body::Body;
use http::{Method, Request};
use ringback_admission::Principal;
use ringback_core::clock::Timestamp;
use ringback_core::job::{NewJob, TenantScope};
use ringback_core::state::State;
use ringback_core::store_types::{BulkVerb, Token};
use ringback_core::topic_policy::Policies;
use ringback_wire::{
    BreakerRequest, Defaults, DestinationRequest, NewBulk, NewSchedule, PolicyPatch, Problem, QuotaRequest,
    ReplayRequest, ReviveRequest, ScheduleDefaults, parse_job, parse_policy, parse_reschedule,
    parse_schedule,
};
use serde_json::Value;
use strum::VariantArray as _;
use tower::ServiceExt as _;

use super::*;
use crate::app::open as app;
use crate::state::tests::unprepared;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn document() -> Value {
    serde_json::from_slice(&TEXT).unwrap()
}

/// The statuses of the problems of each operation, by its path and method.
const PROBLEMS: &[(&str, &str, &str)] = &[
    ("/v1/jobs", "post", "400 408 409 413 415 422 429 503"),
    ("/v1/jobs/batch", "post", "400 408 413 415 422 429 503"),
    ("/v1/jobs", "get", "400 422 503"),
    ("/v1/export", "get", "400 422 503"),
    ("/v1/export/topics", "get", "503"),
    ("/v1/import", "post", "400 408 413 415 429 503"),
    ("/v1/jobs/{topic}/{id}", "get", "400 404 422 503"),
    ("/v1/jobs/{topic}/{id}", "delete", "400 404 409 422 503"),
    ("/v1/jobs/{topic}/{id}", "patch", "400 404 408 409 413 415 422 503"),
    ("/v1/jobs/{topic}/{id}/run", "post", "400 404 408 409 413 422 503"),
    ("/v1/jobs/{topic}/{id}/revive", "post", "400 404 408 409 413 422 503"),
    ("/v1/topics/{topic}", "put", "400 408 409 413 415 422 503"),
    ("/v1/topics/{topic}", "delete", "400 409 422 503"),
    ("/v1/topics/{topic}/reserve", "post", "400 408 413 415 422 503"),
    ("/v1/receipts/{receipt}/finish", "post", "400 404 408 409 413 415 422 503"),
    ("/v1/receipts/{receipt}/retry", "post", "400 404 408 409 413 415 422 503"),
    ("/v1/receipts/{receipt}/bury", "post", "400 404 408 409 413 415 422 503"),
    ("/v1/receipts/{receipt}/release", "post", "400 404 408 409 413 415 422 503"),
    ("/v1/receipts/{receipt}/renew", "post", "400 404 408 409 413 415 422 503"),
    ("/v1/receipts/finish", "post", "400 408 413 415 422 503"),
    ("/v1/stats", "get", "503"),
    ("/v1/topics", "get", "400 422 503"),
    ("/v1/topics/{topic}", "get", "400 404 422 503"),
    ("/v1/topics/{topic}/pause", "post", "400 408 413 422 503"),
    ("/v1/topics/{topic}/resume", "post", "400 404 408 413 422 503"),
    ("/v1/topics/{topic}/keys/{key}/unblock", "post", "400 408 413 422 503"),
    ("/v1/export/destinations", "get", "503"),
    ("/v1/destinations", "get", "400 422 503"),
    ("/v1/destinations/{host}", "get", "400 422 503"),
    ("/v1/destinations/{host}", "put", "400 408 409 413 415 422 503"),
    ("/v1/destinations/{host}", "delete", "400 404 422 503"),
    ("/v1/destinations/{host}/breaker", "post", "400 408 409 413 415 422 503"),
    ("/v1/destinations/{host}/pause", "post", "400 408 409 413 422 503"),
    ("/v1/destinations/{host}/resume", "post", "400 408 413 422 503"),
    ("/v1/topics/{topic}/dead", "get", "400 422 503"),
    ("/v1/topics/{topic}/dead", "delete", "400 422 503"),
    ("/v1/topics/{topic}/dead/{id}", "delete", "400 404 409 422 503"),
    ("/v1/topics/{topic}/dead/revive", "post", "400 408 409 413 415 422 503"),
    ("/v1/check", "get", "503"),
    ("/v1/check/repair", "post", "400 408 413 422 503"),
    ("/v1/check/accept-clock", "post", "400 408 409 413 422 503"),
    ("/v1/jobs/{topic}/{id}/attempts", "get", "400 404 422 503"),
    ("/v1/events", "get", "400 422 503"),
    ("/v1/schedules", "get", "400 422 503"),
    ("/v1/schedules/{id}", "get", "400 404 422 503"),
    ("/v1/schedules/{id}", "put", "400 408 409 413 415 422 503"),
    ("/v1/schedules/{id}", "delete", "400 404 422 503"),
    ("/v1/schedules/{id}/pause", "post", "400 404 408 413 422 503"),
    ("/v1/schedules/{id}/resume", "post", "400 404 408 413 422 503"),
    ("/v1/schedules/{id}/run", "post", "400 404 408 413 422 429 503"),
    ("/v1/schedules/{id}/next", "get", "400 404 422 503"),
    ("/v1/export/schedules", "get", "503"),
    ("/v1/audit-log", "get", "400 422 503"),
    ("/v1/keys", "get", "503"),
    ("/v1/keys", "post", "400 408 409 413 415 422 503"),
    ("/v1/keys/{key}", "delete", "404 503"),
    ("/v1/quotas", "get", "503"),
    ("/v1/quotas/{tenant}", "put", "400 408 409 413 415 422 503"),
    ("/v1/quotas/{tenant}", "delete", "404 422 503"),
    ("/v1/history", "get", "400 409 422 503"),
    ("/v1/history", "delete", "400 409 422 503"),
    ("/v1/history/{topic}/{id}", "get", "400 409 422 503"),
    ("/v1/history/replay", "post", "400 408 409 413 415 422 429 503"),
    ("/openapi.json", "get", ""),
];

#[test]
fn each_operation_documents_its_problems() {
    let document = document();
    for &(path, method, statuses) in PROBLEMS {
        let responses = document["paths"][path][method]["responses"].as_object().unwrap();
        let is_refusal = |status: &str| ["401", "403"].contains(&status);
        let has_refusals = responses.keys().filter(|status| is_refusal(status)).count() == 2;
        assert_eq!(has_refusals, path != "/openapi.json", "{method} {path}");
        let problems = responses.iter().filter(|(status, _)| !status.starts_with('2') && !is_refusal(status));
        let found: Vec<_> = problems.clone().map(|(status, _)| status.as_str()).collect();
        assert_eq!(found.join(" "), statuses, "{method} {path}");
        for (_, response) in problems {
            let schema = &response["content"][crate::error::MEDIA_TYPE]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{method} {path}");
        }
    }
}

#[test]
fn it_is_openapi_3_1_and_every_reference_leads_somewhere() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

/// The names of the fields of a schema.
fn fields(document: &Value, schema: &str) -> BTreeSet<String> {
    let fields = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
    fields.keys().cloned().collect()
}

/// The fields that a parser lists in its error about the unknown field `colour`.
fn parsed(problem: &Problem) -> BTreeSet<String> {
    let error = problem.errors.iter().find(|error| error.field == "colour").unwrap();
    error.allowed.split(", ").map(str::to_owned).collect()
}

/// The schema of the request of each bulk operation.
const BULKS: [(&str, BulkVerb); 5] = [
    ("BulkRequest", BulkVerb::Cancel),
    ("BulkRequest", BulkVerb::Run),
    ("BulkRequest", BulkVerb::Revive),
    ("BulkRescheduleRequest", BulkVerb::Reschedule),
    ("BulkRequest", BulkVerb::Purge),
];

#[test]
fn the_fields_of_a_request_are_those_that_are_parsed() {
    let (document, colour) = (document(), br#"{"colour":"red"}"#);
    let job = parse(r#"{"colour":"red"}"#).unwrap_err();
    let reschedule = parse_reschedule(br#"{"delay":1,"colour":"red"}"#, Timestamp::default()).unwrap_err();
    for (schema, problem) in [
        ("JobRequest", job),
        ("RescheduleRequest", reschedule),
        ("PolicyRequest", parse_policy(colour).unwrap_err()),
        ("PolicyPatchRequest", PolicyPatch::parse(colour).unwrap_err()),
        ("QuotaRequest", QuotaRequest::parse(colour).unwrap_err()),
        ("DestinationRequest", DestinationRequest::parse(colour).unwrap_err()),
        ("BreakerRequest", BreakerRequest::parse(colour).unwrap_err()),
        ("ScheduleRequest", schedule(r#"{"colour":"red"}"#).unwrap_err()),
        ("ReviveRequest", ReviveRequest::parse(colour).unwrap_err()),
        ("ReplayRequest", ReplayRequest::parse(colour).unwrap_err()),
    ] {
        assert_eq!(fields(&document, schema), parsed(&problem), "{schema}");
    }
    let bulk = |verb, json: &[u8]| NewBulk::parse(verb, json, Timestamp::default()).unwrap_err();
    for (schema, verb) in BULKS {
        assert_eq!(fields(&document, schema), parsed(&bulk(verb, br#"{"all":true,"colour":1}"#)), "{schema}");
    }
    let mut filter = bulk(BulkVerb::Cancel, br#"{"filter":{"colour":1}}"#);
    filter.errors.retain(|error| error.field == "filter.colour");
    filter.errors[0].field = "colour".to_owned();
    assert_eq!(fields(&document, "JobFilter"), parsed(&filter));
    let mut limits = DestinationRequest::parse(br#"{"limits":{"colour":1}}"#).unwrap_err();
    limits.errors[0].field = "colour".to_owned();
    assert_eq!(fields(&document, "LimitsRequest"), parsed(&limits));
}

#[test]
fn the_examples_can_be_parsed() {
    let document = document();
    let example = |schema: &str| {
        let schema = &document["components"]["schemas"][schema];
        schema.get("example").unwrap_or(&schema["examples"][0]).to_string()
    };
    parse(&example("JobRequest")).unwrap();
    parse_policy(example("PolicyRequest").as_bytes()).unwrap();
    PolicyPatch::parse(example("PolicyPatchRequest").as_bytes()).unwrap().merged(None).unwrap();
    assert!(DestinationRequest::parse(example("DestinationRequest").as_bytes()).is_ok());
    assert!(BreakerRequest::parse(example("BreakerRequest").as_bytes()).is_ok());
    assert!(ReviveRequest::parse(example("ReviveRequest").as_bytes()).is_ok());
    assert!(ReplayRequest::parse(example("ReplayRequest").as_bytes()).is_ok());
    schedule(&example("ScheduleRequest")).unwrap();
    for (schema, verb) in BULKS {
        NewBulk::parse(verb, example(schema).as_bytes(), Timestamp::default()).unwrap();
    }
}

#[tokio::test]
async fn the_fields_of_a_line_are_those_that_an_import_reads() {
    let problem = unprepared()
        .admission
        .parse_import(br#"{"colour":"red"}"#, &Principal::operator(TenantScope::All))
        .unwrap_err();
    assert_eq!(fields(&document(), "ImportLine"), parsed(&problem));
}

#[tokio::test]
async fn the_parameters_of_a_query_are_those_that_are_read() {
    let document = document();
    let calls = [
        (Method::GET, "/v1/jobs"),
        (Method::GET, "/v1/export"),
        (Method::GET, "/v1/topics"),
        (Method::GET, "/v1/schedules"),
        (Method::GET, "/v1/schedules/{id}/next"),
        (Method::PUT, "/v1/schedules/{id}"),
        (Method::PUT, "/v1/topics/{topic}"),
        (Method::GET, "/v1/events"),
        (Method::GET, "/v1/topics/{topic}/dead"),
        (Method::DELETE, "/v1/topics/{topic}/dead"),
        (Method::DELETE, "/v1/archive"),
        (Method::GET, "/v1/history"),
        (Method::DELETE, "/v1/history"),
        (Method::GET, "/v1/history/{topic}/{id}"),
    ];
    for (method, path) in calls {
        let operation = &document["paths"][path][method.as_str().to_lowercase()];
        let parameters = operation["parameters"].as_array().unwrap();
        let of_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
        let documented: Vec<_> = of_query.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let uri = format!("{}?colour=red", path.replace("{topic}", "t").replace("{id}", "i"));
        let request = Request::builder().method(&method).uri(uri).body(Body::empty()).unwrap();
        let response = app(unprepared()).oneshot(request).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem.errors[0].allowed, documented.join(", "), "{method} {path}");
    }
}

#[test]
fn the_states_of_a_list_are_those_that_have_not_ended() {
    let states = document()["components"]["schemas"]["PendingState"]["enum"].take();
    let listed = State::VARIANTS.iter().copied().filter(|state| !state.is_terminal());
    assert_eq!(states, Value::from(listed.map(<&str>::from).collect::<Vec<_>>()));
}

fn schedule(json: &str) -> Result<NewSchedule, Problem> {
    let (now, id) = (Timestamp::default(), "i".parse().unwrap());
    let defaults = ScheduleDefaults { now, id: &id, tenant: None, stored: None };
    parse_schedule(json.as_bytes(), defaults, Some(&Policies::new()))
}

fn parse(json: &str) -> Result<NewJob, Problem> {
    let (make_id, make_token) = (&mut |_: &_| "made".parse().unwrap(), &mut || Token([0; 8]));
    parse_job(
        json.as_bytes(),
        Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None },
    )
}
