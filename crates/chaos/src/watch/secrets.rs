//! Planted secrets: in the password of the store's URL and in the headers of a topic's policy. Only deliveries,
//! exports and the jobs of consumers may contain them.

use std::time::Duration;

use reqwest::Method;
use ringback_testkit::history::{Canary, Entry, History};
use ringback_testkit::{eventually, http_client};

use crate::clients::Api;
use crate::ending::ask;
use crate::installation::Installation;
use crate::planted_secret::{MARK, scan};

/// A policy with headers whose values are secrets.
const POLICY: &str =
    r#"{"headers":{"authorization":"Bearer pl4nted-in-chaos-1","cookie":"pl4nted-in-chaos-2"}}"#;
/// How long it may take until the policy is put.
const PUT: Duration = Duration::from_secs(20);
const TOPIC: &str = "push";

/// Questions whose answers show no secret.
const QUESTIONS: [&str; 8] = [
    "/v1/topics",
    "/v1/topics/push",
    "/v1/stats",
    "/v1/check",
    "/v1/jobs",
    "/v1/topics/push/dead?include=request",
    "/v1/bulk",
    "/v1/topics/push/none",
];

/// Sets the policy with secrets, and writes to the history what to search for.
pub(super) async fn plant(api: &Api, history: &History) {
    history.write(&Entry::Canary(Canary { text: MARK.into() }));
    let put = async || api.call(Method::PUT, &format!("/v1/topics/{TOPIC}"), Some(POLICY.to_owned())).await;
    eventually(
        PUT,
        "the policy is put",
        async || if put().await.is_unknown() { Err("no answer") } else { Ok(()) },
    )
    .await;
}

/// Searches answers of the API for secrets, also those that refuse something.
pub(super) async fn scan_answers(installation: &Installation, api: &Api) {
    let (history, base) = (&installation.history, installation.apis().remove(0));
    for question in QUESTIONS {
        scan(&answer(&base, Method::GET, question, "").await, history);
    }
    let jobs = ask(api, "/v1/jobs").await;
    let names = jobs["items"].as_array().into_iter().flatten().filter_map(|job| job["id"].as_str());
    for id in names.take(5) {
        let path = format!("/v1/jobs/{TOPIC}/{id}?include=request");
        scan(&answer(&base, Method::GET, &path, "").await, history);
    }
    // This name is refused.
    let wrong = POLICY.replace("cookie", "webhook-id");
    scan(&answer(&base, Method::PUT, &format!("/v1/topics/{TOPIC}"), &wrong).await, history);
}

async fn answer(base: &str, method: Method, path: &str, body: &str) -> String {
    let request = http_client().request(method, format!("{base}{path}"));
    let request = request.header("content-type", "application/json").body(body.to_owned());
    let Ok(answer) = request.send().await else { return String::new() };
    answer.text().await.unwrap_or_default()
}
