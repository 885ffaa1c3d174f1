//! Tests of answers that need no store, as requests are validated before it is called: here each call of it is a 503.
//! Also which operations are audited, and what access each needs.

use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode, header};
use ringback_core::access::Scope;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::app::open as app;
use crate::error::MEDIA_TYPE;
use crate::operation::{Need, Operations};
use crate::state::tests::unprepared;

const GOOD: &str = r#"{"topic":"t","id":"i","url":"http://h/"}"#;

struct Reply {
    status: StatusCode,
    headers: http::HeaderMap,
    body: Value,
}

async fn send(method: Method, path: &str, content_type: Option<&str>, body: impl Into<Body>) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    let response = app(unprepared()).oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Reply { status: head.status, headers: head.headers, body: serde_json::from_slice(&body).unwrap() }
}

/// Sends a request, and returns the status of the answer, which must have problem details unless it is a success.
async fn status(method: Method, path: &str, content_type: Option<&str>, body: impl Into<Body>) -> u16 {
    let answer = send(method, path, content_type, body).await;
    if !answer.status.is_success() {
        assert_eq!(answer.headers[header::CONTENT_TYPE], MEDIA_TYPE);
        assert_eq!(answer.body["status"], answer.status.as_u16());
        assert!(answer.body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{}", answer.body);
    }
    answer.status.as_u16()
}

async fn submit(body: impl Into<Body>) -> u16 {
    status(Method::POST, "/v1/jobs", Some("application/json"), body).await
}

async fn batch(content_type: &str, body: impl Into<Body>) -> Reply {
    send(Method::POST, "/v1/jobs/batch", Some(content_type), body).await
}

fn item_statuses(answer: &Reply) -> Vec<u64> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["results"].as_array().unwrap().iter().map(|r| r["status"].as_u64().unwrap()).collect()
}

fn invalid_fields(answer: &Reply) -> Vec<&str> {
    let errors = answer.body["errors"].as_array().unwrap();
    errors.iter().map(|error| error["field"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_valid_job_is_not_refused_by_validation() {
    assert_eq!(submit(GOOD).await, 503);
}

#[tokio::test]
async fn an_invalid_job_is_refused_though_the_store_is_unavailable() {
    assert_eq!(submit("{").await, 400);
    assert_eq!(submit(&b"{\"topic\":\"\xff\"}"[..]).await, 400);
    assert_eq!(submit(r#"{"topic":"t","url":"h"}"#).await, 422);
}

#[tokio::test]
async fn bodies_and_requests_have_limits_of_their_own() {
    let json =
        |bytes: usize| format!(r#"{{"topic":"t","url":"http://h/","body":"{}"}}"#, "x".repeat(bytes - 2));
    assert_eq!(submit(json(256 * 1024)).await, 503);
    assert_eq!(submit(json(257 * 1024)).await, 413);
    assert_eq!(submit(json(2 * 1024 * 1024)).await, 413);
    let base64 = |bytes: usize| {
        let text = "AAAA".repeat(bytes / 3);
        format!(r#"{{"topic":"t","url":"http://h/","body_base64":"{text}","content_type":"a/b"}}"#)
    };
    assert_eq!(submit(base64(255 * 1024)).await, 503);
    assert_eq!(submit(base64(258 * 1024)).await, 413);
}

#[tokio::test]
async fn other_content_types_are_refused_before_the_body_is_parsed() {
    let post = async |path: &str, content_type| status(Method::POST, path, content_type, "{").await;
    for content_type in [None, Some("text/plain"), Some("application/json; charset=latin1"), Some("")] {
        assert_eq!(post("/v1/jobs", content_type).await, 415, "{content_type:?}");
        assert_eq!(post("/v1/jobs/batch", content_type).await, 415, "{content_type:?}");
        assert_eq!(post("/v1/import", content_type).await, 415, "{content_type:?}");
    }
    assert_eq!(post("/v1/import", Some("application/json")).await, 415);
    assert_eq!(post("/v1/jobs", Some("application/x-ndjson")).await, 415);
    assert_eq!(post("/v1/jobs", Some("Application/JSON;charset=\"UTF-8\"")).await, 400);
}

#[tokio::test]
async fn an_item_of_a_batch_fails_by_itself() {
    let answer = batch("application/json", format!(r#"[{GOOD},5,{{"topic":"t","url":"h"}}]"#)).await;
    assert_eq!(item_statuses(&answer), [503, 400, 422]);
    assert_eq!((&answer.body["accepted"], &answer.body["refused"]), (&0.into(), &3.into()));
    let lines = format!("{GOOD}\r\n\r\n{{\n{{}}\n");
    assert_eq!(item_statuses(&batch("application/x-ndjson", lines).await), [503, 400, 422]);
}

#[tokio::test]
async fn a_batch_of_which_the_store_accepted_nothing_is_refused_as_a_whole() {
    let answer = batch("application/json", format!("[{GOOD},{GOOD}]")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers[header::RETRY_AFTER], "1");
}

#[tokio::test]
async fn an_empty_batch_is_fine() {
    assert!(item_statuses(&batch("application/json", "[]").await).is_empty());
    assert!(item_statuses(&batch("application/x-ndjson", "\n").await).is_empty());
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_refused_as_a_whole() {
    let post = async |content_type: &str, body: String| batch(content_type, body).await.status.as_u16();
    assert_eq!(post("application/json", format!("[{}1]", "1,".repeat(10_000))).await, 413);
    assert_eq!(post("application/x-ndjson", "1\n".repeat(10_001)).await, 413);
    assert_eq!(post("application/json", format!("[{}]", " ".repeat(16 * 1024 * 1024))).await, 413);
}

#[tokio::test]
async fn the_lines_of_an_import_fail_by_themselves_and_are_reported_by_number() {
    let post =
        async |body: String| send(Method::POST, "/v1/import", Some("application/x-ndjson"), body).await;
    let answer = post(format!("\n{GOOD}\r\n  \n{{\n{{\"topic\":\"t\",\"url\":\"h\"}}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let problems = answer.body["problems"].as_array().unwrap();
    let found: Vec<_> = problems.iter().map(|p| (p["line"].as_u64().unwrap(), &p["status"])).collect();
    assert_eq!(found, [(2, &503.into()), (4, &400.into()), (5, &422.into())]);
    assert_eq!(answer.body["problems"][2]["problem"]["errors"][0]["field"], "url");
    let counts = ["created", "repeated", "refused"].map(|name| answer.body[name].as_u64().unwrap());
    assert_eq!(counts, [0, 0, 3]);
    let answer = post(format!("{GOOD}\n{GOOD}")).await;
    assert_eq!((answer.status.as_u16(), &answer.headers[header::RETRY_AFTER]), (503, &"1".parse().unwrap()));
    assert_eq!(post("\n \r\n".to_owned()).await.body["problems"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn an_import_that_is_too_large_is_refused_as_a_whole() {
    let post =
        async |body: String| status(Method::POST, "/v1/import", Some("application/x-ndjson"), body).await;
    assert_eq!(post("1\n\n".repeat(10_000)).await, 200);
    assert_eq!(post("1\n".repeat(10_001)).await, 413);
    assert_eq!(post(" ".repeat(16 * 1024 * 1024 + 1)).await, 413);
}

#[tokio::test]
async fn lists_and_exports_need_the_store_and_a_valid_query() {
    for path in ["/v1/jobs", "/v1/export"] {
        let get = async |query: &str| send(Method::GET, &format!("{path}{query}"), None, Body::empty()).await;
        let answer = get("?topic=t&state=ready").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.headers[header::RETRY_AFTER]),
            (503, &"1".parse().unwrap())
        );
        let answer = get("?topic=a%20b&state=done&state=dead&x").await;
        assert_eq!(answer.status, 422);
        assert_eq!(invalid_fields(&answer), ["state", "x", "topic", "state"]);
    }
}

#[tokio::test]
async fn a_reschedule_is_validated_before_the_store_is_called() {
    let patch =
        async |body: String| status(Method::PATCH, "/v1/jobs/t/i", Some("application/json"), body).await;
    assert_eq!(patch(r#"{"delay":"5s"}"#.to_owned()).await, 503);
    assert_eq!(patch("{".to_owned()).await, 400);
    assert_eq!(patch("{}".to_owned()).await, 422);
    assert_eq!(patch(r#"{"delay":1,"at":"2030-01-01T00:00:00Z"}"#.to_owned()).await, 422);
    assert_eq!(patch(" ".repeat(2 * 1024 * 1024)).await, 413);
    for content_type in [None, Some("text/plain"), Some("application/merge-patch+json")] {
        assert_eq!(status(Method::PATCH, "/v1/jobs/t/i", content_type, r#"{"delay":1}"#).await, 415);
    }
    let answer = send(Method::PATCH, "/v1/jobs/t/i", Some("application/json"), r#"{"due":1,"delay":-1}"#);
    let answer = answer.await;
    assert_eq!(invalid_fields(&answer), ["due", "delay"]);
}

#[tokio::test]
async fn a_call_that_takes_no_body_refuses_one() {
    for path in ["/v1/jobs/t/i/run", "/v1/jobs/t/i/revive"] {
        let post = async |body: &'static str| status(Method::POST, path, None, body).await;
        assert_eq!([post("").await, post("{}").await, post("\n").await], [503; 3]);
        assert_eq!((post("5").await, post("{\"delay\":1}").await), (400, 422));
        assert_eq!(status(Method::POST, path, Some("application/json"), " ".repeat(5000)).await, 413);
        assert_eq!(status(Method::GET, path, None, Body::empty()).await, 405);
    }
}

#[tokio::test]
async fn a_policy_is_validated_before_the_store_is_called() {
    let put = async |body: String| status(Method::PUT, "/v1/topics/t", Some("application/json"), body).await;
    assert_eq!(put("{}".to_owned()).await, 503);
    assert_eq!((put(String::new()).await, put("[]".to_owned()).await), (400, 400));
    assert_eq!(put(r#"{"expect_body":" x"}"#.to_owned()).await, 422);
    assert_eq!(put(format!("{{{}}}", " ".repeat(16 * 1024))).await, 413);
    assert_eq!(put(" ".repeat(2 * 1024 * 1024)).await, 413);
    assert_eq!(status(Method::PUT, "/v1/topics/t", None, "{}").await, 415);
    for method in [Method::PUT, Method::GET, Method::DELETE] {
        let answer = send(method, "/v1/topics/a%20b", Some("application/json"), "{}").await;
        assert_eq!((answer.status.as_u16(), &answer.body["errors"][0]["field"]), (422, &"topic".into()));
    }
    assert_eq!(status(Method::GET, "/v1/topics/t", None, Body::empty()).await, 503);
}

#[tokio::test]
async fn the_query_of_a_deletion_is_validated_before_the_store_is_called() {
    let delete = async |query: &str| {
        status(Method::DELETE, &format!("/v1/topics/t{query}"), None, Body::empty()).await
    };
    for good in ["", "?force=true", "?force=false", "?force=true&cursor=1-2-3"] {
        assert_eq!(delete(good).await, 503, "{good}");
    }
    for bad in
        ["?force", "?force=1", "?force=true&force=true", "?cursor=1-2-3", "?force=true&cursor=x", "?a=b"]
    {
        assert_eq!(delete(bad).await, 422, "{bad}");
    }
}

#[tokio::test]
async fn jobs_that_depend_on_policies_wait_until_those_are_read() {
    let answer = send(Method::POST, "/v1/jobs", Some("application/json"), r#"{"topic":"t"}"#).await;
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(answer.status == 503 && detail.contains("policies"), "{}", answer.body);
    assert_eq!(answer.headers[header::RETRY_AFTER], "1");
    let answer = send(Method::POST, "/v1/topics/t/reserve", None, Body::empty()).await;
    assert!(answer.status == 503 && answer.body["detail"].as_str().unwrap().contains("policies"));
}

#[tokio::test]
async fn names_outside_their_alphabet_are_invalid_fields() {
    for method in [Method::GET, Method::DELETE] {
        let answer = send(method.clone(), "/v1/jobs/a%20b/x%2Fy", None, Body::empty()).await;
        assert_eq!(answer.status, 422);
        assert_eq!(invalid_fields(&answer), ["topic", "id"]);
        assert_eq!(status(method.clone(), "/v1/jobs/t/%ff", None, Body::empty()).await, 400);
        assert_eq!(status(method, "/v1/jobs/t/a~b:c@d+e=f,g", None, Body::empty()).await, 503);
    }
    for (method, end) in [(Method::PATCH, ""), (Method::POST, "/run"), (Method::POST, "/revive")] {
        let answer = send(method, &format!("/v1/jobs/a%20b/x%2Fy{end}"), None, Body::empty()).await;
        assert_eq!((answer.status.as_u16(), &answer.body["errors"][1]["field"]), (422, &"id".into()));
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    assert_eq!(status(Method::GET, "/v1/nothing", None, Body::empty()).await, 404);
    assert_eq!(status(Method::GET, "/v1/jobs/t/", None, Body::empty()).await, 404);
    let answer = send(Method::PUT, "/v1/jobs/t/i", None, Body::empty()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers[header::CONTENT_TYPE]),
        (405, &MEDIA_TYPE.parse().unwrap())
    );
    assert_eq!(answer.headers[header::ALLOW], "GET,HEAD,DELETE,PATCH");
}

#[tokio::test]
async fn stats_need_the_store() {
    assert_eq!(status(Method::GET, "/v1/stats", None, Body::empty()).await, 503);
}

#[test]
fn purges_need_the_scope_and_the_check_the_archive_the_keys_and_the_quotas_the_root_key() {
    let operations: Operations = super::table().into_iter().map(|route| route.operation).collect();
    // Two routes are named `purge`. The OpenAPI document has one of them, so the test of scopes, which reads the
    // document, does not check the other.
    let purges = operations.iter().filter(|operation| &*operation.name == "purge");
    assert!(purges.map(|operation| operation.need).eq([Need::Scope(Scope::Manage); 2]));
    let roots = ["/v1/archive", "/v1/check", "/v1/keys", "/v1/quotas"];
    for operation in operations.iter() {
        let is_roots =
            &*operation.path != "/v1/audit-log" && roots.iter().any(|root| operation.path.starts_with(root));
        assert_eq!(operation.need == Need::Root, is_roots, "{operation:?}");
    }
}

/// The operations that leave no entry in the audit log, although they are not reads.
const UNAUDITED: [(&str, &str); 9] = [
    ("submit", "jobs are submitted all the time; the job itself says when"),
    ("submit_batch", "as submit"),
    ("reserve", "consumers do it all the time; the attempts of the job are logged"),
    ("finish", "as reserve"),
    ("finish_all", "as reserve"),
    ("retry", "as reserve"),
    ("bury", "as reserve"),
    ("release", "as reserve"),
    ("renew", "as reserve"),
];

#[test]
fn each_operation_that_changes_something_is_audited_unless_there_is_a_reason() {
    for operation in super::table().into_iter().map(|route| route.operation) {
        let is_exempt = UNAUDITED.iter().any(|(name, _)| *name == &*operation.name);
        let is_audited = !operation.method.is_safe() && !is_exempt;
        assert_eq!(operation.is_audited, is_audited, "{operation:?}");
    }
}
