//! Tests that the route of an operation answers each status that the OpenAPI document gives for it, and that scopes
//! allow what is documented. A new operation or status fails the test until it gets a request here.

mod bulk;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Method, Request};
use ringback_core::access::{MAX_QUOTAS, Quota};
use ringback_core::credential::{Credential, MAX_CREDENTIALS};
use ringback_core::destination::{Destination, DestinationPause};
use ringback_core::flow::Limits;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::{
    ArchiveSettings, EndedStates, LimitTarget, MAX_LIMITS, MAX_PAUSED_DESTINATIONS, PolicyPut, WhenFull,
};
use ringback_core::topic_policy::{MAX_POLICIES, Policy};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{METHODS, document};
use crate::access::{Access, Gate};
use crate::app::open as app;
use crate::openapi::table;
use crate::state::Api;
use crate::state::tests::{prepared, prepared_with, unprepared};

/// A receipt of the first shard that no lease has.
const RECEIPT: &str = "AAAHBwcHBwcHBwcHBwcABkRi_oAAAP7-_v7-_v7-";
const SECRET: &str = r#"{"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}"#;
const CREDENTIAL: &str = r#"{"to":["http://h"],"bearer":"t"}"#;
const LIMITS: &str = r#"{"limits":{"rate":"10/s"}}"#;
const SCHEDULE: &str = r#"{"every":"1h","job":{"topic":"t","url":"http://h/"}}"#;
const DEAD: &str = r#"{"topic":"t","id":"i","url":"http://h/","state":"dead","reason":"lost"}"#;

struct Operation {
    id: String,
    method: Method,
    path: String,
    body: Option<&'static str>,
    statuses: Vec<u16>,
}

fn operations() -> Vec<Operation> {
    let document = document();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
            let operation = &item[*method];
            let content = operation["requestBody"]["content"].as_object();
            let types = content.into_iter().flatten().map(|(name, _)| name.as_str());
            let body = types.clone().find(|name| *name == "application/json").or(types.clone().next());
            operations.push(Operation {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                body: body.map(|name| {
                    if name.contains("ndjson") { "application/x-ndjson" } else { "application/json" }
                }),
                statuses: operation["responses"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(|n| n.parse().unwrap())
                    .collect(),
            });
        }
    }
    operations
}

impl Operation {
    /// A request that is valid if what it names exists.
    fn good(&self) -> Request<Body> {
        let body = match self.id.as_str() {
            "submit" => r#"{"topic":"t","id":"i","url":"http://h/","delay":"1h"}"#,
            "submit_batch" => r#"[{"topic":"t","url":"http://h/"}]"#,
            "import_jobs" => r#"{"topic":"t","url":"http://h/"}"#,
            "reschedule" => r#"{"delay":"2h"}"#,
            "put_policy" | "patch_policy" => r#"{"timeout":"5s"}"#,
            "add_secret" => SECRET,
            "add_key" => r#"{"scopes":["read"]}"#,
            "put_quota" => r#"{"jobs":5}"#,
            "put_limits" => LIMITS,
            "force_breaker" => r#"{"state":"closed"}"#,
            "put_credential" => CREDENTIAL,
            "put_schedule" => SCHEDULE,
            "finish_all" => r#"{"receipts":["x"]}"#,
            "retry" => r#"{"delay":"1h"}"#,
            "accept_loss" => r#"{"run_id":"8b1f"}"#,
            "replay_history" => r#"{"filter":{}}"#,
            "cancel_jobs" | "run_jobs" | "revive_jobs" | "purge_jobs" => r#"{"filter":{"tag":"a"}}"#,
            "reschedule_jobs" => r#"{"filter":{"tag":"a"},"delay":"1h"}"#,
            _ => "",
        };
        self.with(&self.target("t"), body)
    }

    fn target(&self, topic: &str) -> String {
        let path = self.path.replace("{topic}", topic).replace("{id}", "i");
        path.replace("{receipt}", RECEIPT)
            .replace("{bulk}", "0000000000000000")
            .replace("{secret}", "sec_0")
            .replace("{key}", "key_0")
            .replace("{tenant}", "acme")
            .replace("{credential}", "bank")
            .replace("{host}", "h.example")
    }

    fn with(&self, target: &str, body: impl Into<Body>) -> Request<Body> {
        let request = Request::builder().method(&self.method).uri(target);
        let kind = self.body.unwrap_or("application/json");
        request.header("content-type", kind).body(body.into()).unwrap()
    }

    /// A request that is refused with this status whatever the store contains.
    fn refused(&self, status: u16) -> Request<Body> {
        let target = self.target("t");
        let has_topic = self.path.contains("{topic}");
        let broken = || stream::iter([Err::<Bytes, _>(io::Error::other("broken"))]);
        match status {
            400 if self.body.is_some() => self.with(&target, Body::from_stream(broken())),
            400 if self.path.contains("{id}") && !has_topic => self.with(&target.replace("/i", "/%ff"), ""),
            400 if has_topic => self.with(&self.target("%ff"), ""),
            400 if self.path.contains("{host}") => self.with(&target.replace("h.example", "%ff"), ""),
            400 => self.with(&format!("{target}?{}", "a=1&".repeat(65)), ""),
            413 => self.with(&target, vec![b' '; 16 * 1024 * 1024 + 1]),
            415 => {
                let mut request = self.with(&target, "x");
                request.headers_mut().insert("content-type", "text/plain".parse().unwrap());
                request
            }
            422 if self.id == "submit_batch" => {
                let mut request = self.good();
                request.headers_mut().insert("idempotency-key", "k".parse().unwrap());
                request
            }
            422 if self.body.is_some() => self.with(&target, r#"{"colour":"red"}"#),
            422 if self.path.contains("{id}") && !has_topic => self.with(&target.replace("/i", "/a%20b"), ""),
            422 if has_topic => self.with(&self.target("a%20b"), ""),
            422 if self.path.contains("{tenant}") => self.with(&target.replace("acme", "a%20b"), ""),
            422 if self.path.contains("{credential}") => self.with(&target.replace("bank", "a%20b"), ""),
            422 if self.path.contains("{host}") => self.with(&target.replace("h.example", "a%20b"), ""),
            422 => self.with(&format!("{target}?colour=red"), ""),
            other => unreachable!("{other}"),
        }
    }
}

async fn answer(app: &Router, request: Request<Body>) -> (u16, Value) {
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    // A stream of events does not end.
    if response.headers()["content-type"] == "text/event-stream" {
        return (status, Value::Null);
    }
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Makes a `POST` that must succeed, and returns what it answers.
async fn post(app: &Router, path: &str, body: &str) -> Value {
    let kind = if path == "/v1/import" { "application/x-ndjson" } else { "application/json" };
    let request = Request::post(path).header("content-type", kind).body(Body::from(body.to_owned())).unwrap();
    let (status, answer) = answer(app, request).await;
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    answer
}

async fn put(app: &Router, path: &str, body: &str) {
    let request = Request::put(path).header("content-type", "application/json");
    let (status, answer) = answer(app, request.body(Body::from(body.to_owned())).unwrap()).await;
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
}

/// Adds the most secrets that a topic can have.
async fn add_all_secrets(app: &Router, path: &str) {
    for _ in 0..ringback_core::topic_policy::MAX_SECRETS {
        post(app, path, "").await;
    }
}

/// Puts a credential, and a policy that refers to it.
async fn put_credential_in_use(app: &Router, path: &str) {
    put(app, path, CREDENTIAL).await;
    put(app, "/v1/topics/t", r#"{"credentials":"bank"}"#).await;
}

/// Puts the schedule `i`: for 200 as a request has it, for 409 of another topic, for other statuses not at all.
async fn scheduled(app: &Router, status: u16) {
    match status {
        200 => put(app, "/v1/schedules/i", SCHEDULE).await,
        409 => put(app, "/v1/schedules/i", &SCHEDULE.replace("\"t\"", "\"other\"")).await,
        _ => {}
    }
}

/// Brings a store into the state in which a good request to the operation is answered with the status, and
/// returns that request.
async fn arranged(app: &Router, operation: &Operation, status: u16) -> Request<Body> {
    let delayed =
        async || post(app, "/v1/jobs", r#"{"topic":"t","id":"i","url":"http://h/","delay":"1h"}"#).await;
    let ready = async || post(app, "/v1/jobs", r#"{"topic":"t","id":"i","ttr":"30s"}"#).await;
    let reserved = async || {
        ready().await;
        let answer = post(app, "/v1/topics/t/reserve", "").await;
        answer["jobs"][0]["receipt"].as_str().unwrap().to_owned()
    };
    let settle =
        async |receipt: &str, how: &str| post(app, &format!("/v1/receipts/{receipt}/{how}"), "").await;
    let mut target = operation.target("t");
    if operation.is_bulk() {
        return bulk::arranged(app, operation, status).await;
    }
    match (operation.id.as_str(), status) {
        ("submit" | "reschedule" | "run" | "get_job" | "cancel" | "attempts" | "get_topic", 200)
        | ("revive" | "purge" | "delete_topic", 409) => drop(delayed().await),
        ("submit" | "reschedule", 409) => drop(ready().await),
        ("cancel", 202) => drop(reserved().await),
        ("cancel", 409) => drop(settle(&reserved().await, "finish").await),
        ("run", 409) | ("revive" | "purge", 200) => drop(post(app, "/v1/import", DEAD).await),
        ("finish" | "retry" | "bury" | "release" | "renew", 404) => target = target.replace(RECEIPT, "r"),
        ("finish" | "retry" | "bury" | "release" | "renew", status) => {
            let receipt = reserved().await;
            target = target.replace(RECEIPT, &receipt);
            if status == 409 {
                settle(&receipt, if operation.id == "finish" { "bury" } else { "finish" }).await;
            }
        }
        ("put_policy" | "patch_policy", 200) => put(app, &target, "{}").await,
        ("add_secret", 200) => drop(post(app, &target, SECRET).await),
        ("add_secret", 409) => add_all_secrets(app, &target).await,
        ("delete_secret", 200) => {
            let added = post(app, "/v1/topics/t/secrets", "").await;
            target = target.replace("sec_0", added["id"].as_str().unwrap());
        }
        ("delete_topic", 202) => {
            reserved().await;
            target += "?force=true";
        }
        ("erase_history", _) => target += "?tag=a",
        ("put_quota" | "delete_quota", 200) => put(app, &target, r#"{"jobs":5}"#).await,
        ("put_limits" | "delete_limits", 200) => put(app, &target, LIMITS).await,
        ("put_credential" | "delete_credential", 200) => put(app, &target, CREDENTIAL).await,
        ("delete_credential", 409) => put_credential_in_use(app, &target).await,
        _ if operation.path.starts_with("/v1/schedules/{id}") => scheduled(app, status).await,
        ("resume", 200) => drop(post(app, "/v1/topics/t/pause", "").await),
        ("revive_dead", 409) => {
            for _ in 0..ringback_core::store_types::MAX_BULKS {
                post(app, "/v1/topics/t/dead/revive", "").await;
            }
        }
        _ => {}
    }
    let mut request = operation.good();
    *request.uri_mut() = target.parse().unwrap();
    request
}

#[tokio::test]
async fn every_status_of_the_document_is_one_that_the_route_answers() {
    let mut wrong = Vec::new();
    for operation in operations() {
        for status in
            operation.statuses.iter().copied().filter(|status| ![401, 403, 408, 429, 503].contains(status))
        {
            // A store in memory loses nothing and follows its clock, and there are keys only with a root key.
            // An archive needs a database.
            let is_elsewhere = matches!(
                (operation.id.as_str(), status),
                ("accept_loss" | "accept_clock" | "delete_key", 200)
                    | ("add_key", 201)
                    | ("list_history" | "get_history" | "replay_history", 200)
                    | ("erase_history", 200 | 202)
            );
            if is_elsewhere {
                continue;
            }
            let api = prepared().await;
            match (operation.id.as_str(), status) {
                ("put_policy" | "patch_policy", 409) => put_all_policies(&api).await,
                ("put_quota", 409) => put_all_quotas(&api).await,
                ("put_credential", 409) => put_all_credentials(&api).await,
                ("pause_destination", 409) => pause_all_destinations(&api).await,
                ("put_limits", 409) => limit_all_destinations(&api).await,
                ("force_breaker", 409) => force_all_breakers(&api).await,
                ("detach_archive", 409) => attach_archive(&api).await,
                _ => {}
            }
            let app = app(api);
            let request = match status {
                400 | 413 | 415 | 422 => operation.refused(status),
                status => arranged(&app, &operation, status).await,
            };
            let (found, body) = answer(&app, request).await;
            if found != status {
                wrong.push(format!(
                    "{} {}: {found} in place of {status}: {body}",
                    operation.method, operation.path
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Puts the most policies that there can be, many at once, which then share a commit.
async fn put_all_policies(api: &Api) {
    let topics = (0..MAX_POLICIES).map(|n| format!("topic-{n}").parse::<Topic>().unwrap());
    let mut puts = stream::iter(topics)
        .map(|topic| async move { api.store.put_policy(&topic, &Policy::default()).await.unwrap() })
        .buffer_unordered(500);
    while let Some(put) = puts.next().await {
        assert!(matches!(put, PolicyPut::Created(_)), "{put:?}");
    }
}

/// Attaches an archive, and cancels a job, whose record waits for the archive.
async fn attach_archive(api: &Arc<Api>) {
    let (states, when_full) = (EndedStates::all(), WhenFull::Stall);
    let settings = ArchiveSettings { states, with_bodies: true, bound: 1 << 20, when_full };
    api.store.attach_archive(Some(settings)).await.unwrap();
    let app = app(Arc::clone(api));
    let job = r#"{"topic":"archived","id":"i","url":"http://h/","delay":"1h"}"#;
    post(&app, "/v1/jobs", job).await;
    let cancel = Request::delete("/v1/jobs/archived/i").body(Body::empty()).unwrap();
    assert_eq!(answer(&app, cancel).await.0, 200);
}

async fn pause_all_destinations(api: &Api) {
    for n in 0..MAX_PAUSED_DESTINATIONS {
        api.store.pause_destination(&of_all(n)).await.unwrap().unwrap();
    }
}

async fn force_all_breakers(api: &Api) {
    for n in 0..MAX_PAUSED_DESTINATIONS {
        api.store.force_breakers_closed(&of_all(n)).await.unwrap().unwrap();
    }
}

/// A destination, for the jobs of all.
fn of_all(n: u64) -> DestinationPause {
    DestinationPause::new(&TenantScope::All, Destination::parse(&format!("{n}.example")).unwrap())
}

/// Sets the most limits that there can be, many at once, which then share a commit.
async fn limit_all_destinations(api: &Api) {
    let limits = &Limits { in_flight: Some(1), ..Limits::default() };
    let mut limited = stream::iter(0..MAX_LIMITS)
        .map(|n| async move { api.store.limit(&LimitTarget::Destination(of_all(n)), limits).await })
        .buffer_unordered(500);
    while let Some(limited) = limited.next().await {
        limited.unwrap().unwrap();
    }
}

/// Puts the most quotas that there can be, and waits until this process has them.
async fn put_all_quotas(api: &Api) {
    let mut last = None;
    for n in 0..MAX_QUOTAS {
        let of = format!("tenant-{n}").parse().unwrap();
        let put = api.store.put_quota(&of, Quota::default()).await.unwrap();
        let PolicyPut::Created(version) = put else { panic!("{put:?}") };
        last = Some(version);
    }
    api.policies.reached(last.unwrap()).await;
}

/// Puts the most credentials that there can be, and waits until this process has them.
async fn put_all_credentials(api: &Api) {
    let mut last = None;
    for n in 0..MAX_CREDENTIALS {
        let key = format!("credential-{n}").parse().unwrap();
        let (to, kinds) = (vec!["http://h".to_owned()], Vec::new());
        let credential = Credential { to, kinds, sealed: "k.a".into(), created: api.now() };
        let put = api.store.change_credential(&key, |_| Ok::<_, ()>(credential.clone())).await.unwrap();
        let Ok((_, PolicyPut::Created(version))) = put else { panic!("{put:?}") };
        last = Some(version);
    }
    api.policies.reached(last.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_with_a_408_answers_it_to_a_body_that_does_not_come() {
    for operation in operations() {
        let pending = Body::from_stream(stream::pending::<io::Result<Bytes>>());
        let request = operation.with(&operation.target("t"), pending);
        let (found, body) = answer(&app(unprepared()), request).await;
        assert_eq!(found == 408, operation.statuses.contains(&408), "{}: {found} {body}", operation.id);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_with_a_503_answers_it_without_a_store() {
    for operation in operations() {
        let api = unprepared();
        // Without the store, these refuse each item by itself, wait for the first event, or refuse keys where there is
        // no root key. Those on the history need an archive first.
        let request = match operation.id.as_str() {
            "finish_all" => without_memory(&api, &operation).await,
            "events" | "add_key" | "list_history" | "get_history" | "erase_history" | "replay_history"
            // The clock of a store on Redis is not accepted here, whether that is there or not.
            | "accept_clock" => continue,
            _ => operation.good(),
        };
        let (found, body) = answer(&app(api), request).await;
        assert_eq!(found == 503, operation.statuses.contains(&503), "{}: {found} {body}", operation.id);
    }
}

/// Takes all memory of the budget, and returns a request whose body needs some.
async fn without_memory(api: &Api, operation: &Operation) -> Request<Body> {
    // Nothing is given back before the test ends.
    std::mem::forget(api.memory.acquire(api.memory.free()).await.unwrap());
    let receipts = json!({"receipts": vec![RECEIPT; 1000]}).to_string();
    operation.with(&operation.target("t"), receipts)
}

const ROOT: &str = "0123456789abcdef0123456789abcdef";

/// What each scope allows, as docs/concepts/tenants-and-keys.md says it. All other operations are for the root key.
const ALLOWED: [(&str, &str); 5] = [
    (
        "submit",
        "submit submit_batch cancel reschedule run put_schedule delete_schedule pause_schedule \
         resume_schedule run_schedule cancel_jobs run_jobs reschedule_jobs stop_bulk_operation",
    ),
    ("consume", "reserve finish retry bury release renew finish_all"),
    (
        "read",
        "get_job list_jobs attempts list_topics list_destinations get_destination forecast get_topic \
         list_dead list_bulk_operations get_bulk_operation events stats get_schedule list_schedules next_firings \
         list_history get_history",
    ),
    (
        "manage",
        "put_policy patch_policy delete_topic add_secret list_secrets list_credentials put_credential \
         delete_credential delete_secret pause resume unblock pause_destination resume_destination force_breaker put_limits \
         delete_limits revive purge purge_dead revive_dead revive_jobs purge_jobs erase_history \
         replay_history list_audit_log",
    ),
    (
        "import",
        "export_jobs export_topics export_credentials export_destinations export_schedules import_jobs",
    ),
];

#[tokio::test]
async fn with_a_root_key_each_operation_needs_a_key_that_allows_it() {
    let api = prepared_with(ROOT).await;
    let access = Access { root: Some(ROOT.parse().unwrap()), ..Access::open() };
    let gate = Gate::with(access, &api);
    let app = crate::app::app(api, gate, table());
    let with = |mut request: Request<Body>, key: &str| {
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        request
    };
    let mut keys = Vec::new();
    for (scope, _) in ALLOWED {
        let body = format!(r#"{{"scopes":["{scope}"]}}"#);
        let request = Request::post("/v1/keys").header("content-type", "application/json");
        let (status, made) = answer(&app, with(request.body(Body::from(body)).unwrap(), ROOT)).await;
        assert_eq!(status, 201, "{made}");
        keys.push(made);
    }
    for operation in operations().iter().filter(|operation| operation.id != "openapi") {
        let (status, body) = answer(&app, operation.good()).await;
        assert_eq!(status, 401, "{}: {body}", operation.id);
        for (key, (scope, allowed)) in keys.iter().zip(ALLOWED) {
            let (status, body) = answer(&app, with(operation.good(), key["key"].as_str().unwrap())).await;
            let is_allowed = allowed.split(' ').any(|name| name == operation.id);
            assert_ne!(status, 401, "{}: {body}", operation.id);
            assert_eq!(status != 403, is_allowed, "{} with {scope}: {status} {body}", operation.id);
        }
        let (status, body) = answer(&app, with(operation.good(), ROOT)).await;
        assert!(![401, 403].contains(&status), "{}: {status} {body}", operation.id);
    }
    let path = format!("/v1/keys/{}", keys[0]["id"].as_str().unwrap());
    let (status, left) = answer(&app, with(Request::delete(path).body(Body::empty()).unwrap(), ROOT)).await;
    assert!(status == 200 && !left.to_string().contains(keys[0]["id"].as_str().unwrap()), "{left}");
    let submit = operations().into_iter().find(|operation| operation.id == "submit").unwrap();
    let (status, body) = answer(&app, with(submit.good(), keys[0]["key"].as_str().unwrap())).await;
    assert_eq!(status, 401, "{body}");
    let (status, _) = answer(&app, Request::get("/openapi.json").body(Body::empty()).unwrap()).await;
    assert_eq!(status, 200);
}
