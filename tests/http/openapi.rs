//! Every operation of the OpenAPI document, against a real API: each response is documented, and a body is accepted if
//! and only if it is valid by its schema. The operations come from the document, so a new one is covered at once.
//! schemathesis and redocly, if installed, check the same from outside.

mod agreement;
mod cases;
mod edges;
mod examples;
mod exceptions;
mod generators;
mod operation;
mod patterns;
mod schema;
mod tools;
mod wire;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use reqwest::Client;
use ringback_testkit::{Role, http_client};

use self::cases::{Case, Names};
use self::operation::Operation;
use self::wire::{Answer, send};
use crate::archive::database::{attached, readable};
use crate::prelude::*;

/// Further failures are not printed.
const MAX_PRINTED: usize = 30;

#[tokio::test]
async fn every_operation_answers_what_is_documented_to_whatever_is_sent_on_redis() {
    every_operation(StackOptions::api_only().count(Role::Archiver, 1)).await;
}

#[tokio::test]
async fn every_operation_answers_what_is_documented_to_whatever_is_sent_on_the_embedded_store() {
    every_operation(Stack::options().in_one_process().store("embedded:data")).await;
}

async fn every_operation(options: StackOptions) {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = format!("sqlite:{}", directory.path().join("archive.db").display());
    let mut stack = options.env("RINGBACK_ARCHIVE", &archive).start().await;
    readable(&stack).await;
    let address: SocketAddr = stack.url("").trim_start_matches("http://").parse().expect("an address");
    let (client, document) = (http_client(), stack.get("/openapi.json").await.json());
    let operations = Operation::all(&document);
    assert!(operations.len() >= 20, "{} operations", operations.len());
    let (mut wrong, mut sent, mut with_requests) = (Vec::new(), 0, BTreeSet::new());
    for (n, operation) in operations.iter().enumerate() {
        let bulk = if operation.is_of("bulk") { bulk(&stack).await } else { "b".to_owned() };
        let (topic, receipt) = ("t".to_owned(), receipt(&stack).await);
        let names = Names { topic, id: format!("job-{n}"), receipt, bulk };
        if operation.is_of_history() {
            // One of the operations detaches the archive, and an archiver attaches it again.
            attached(&stack).await;
        }
        stack.accept(&example(&document, "JobRequest", &names.id)).await;
        stack.import(&[example(&document, "ImportLine", &format!("dead-{n}"))]).await;
        if operation.is_of_history() {
            end(&stack, &names.id).await;
        }
        let cases = cases::of(operation, &names);
        sent += cases.len();
        for (case, answer) in cases.iter().zip(send_all(address, &cases).await) {
            let judged = answer.and_then(|answer| {
                if operation.includes_requests() && has_requests(operation, &answer) {
                    with_requests.insert(operation.name());
                }
                judge(operation, &answer)?;
                agreement::check(&document, operation, case, &answer)
            });
            if let Err(why) = judged {
                wrong.push(format!("{} {}: {why}", operation.name(), case.describe()));
            }
        }
        lives_on(&mut stack, &client, operation).await;
    }
    assert!(sent > 50 * operations.len(), "{sent} requests to {} operations", operations.len());
    let expected = operations.iter().filter(|operation| operation.includes_requests()).map(Operation::name);
    assert_eq!(with_requests, expected.collect(), "operations that answered with requests of jobs");
    let printed = wrong.iter().take(MAX_PRINTED).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {sent} answers are not as documented:\n{printed}", wrong.len());
    let job = json!({"topic": "t", "id": "afterwards", "delay": "1h", "url": "http://127.0.0.1:9/"});
    stack.accept(&job).await;
}

/// Sends all cases, three at once. One address may have only two exports, and some calls may run only once at a time,
/// so a case that is answered 503 is sent again alone.
async fn send_all(address: SocketAddr, cases: &[Case]) -> Vec<Result<Answer, String>> {
    let mut answers = Vec::new();
    for three in cases.chunks(3) {
        let send_nth = async |n: usize| match three.get(n) {
            Some(case) => Some(send(address, case).await),
            None => None,
        };
        let (first, second, third) = tokio::join!(send_nth(0), send_nth(1), send_nth(2));
        for (case, answer) in three.iter().zip([first, second, third].into_iter().flatten()) {
            let is_refused = answer.as_ref().is_ok_and(|answer| answer.status == 503);
            answers.push(if is_refused { send(address, case).await } else { answer });
        }
    }
    answers
}

/// The first example of a schema of jobs, as a job of the topic `t` that goes to a closed port.
fn example(document: &Value, schema: &str, id: &str) -> Value {
    let mut job = document["components"]["schemas"][schema]["examples"][0].clone();
    assert!(job.is_object(), "{schema} has no example");
    (job["topic"], job["id"], job["url"]) = ("t".into(), id.into(), "http://127.0.0.1:9/".into());
    job
}

/// Whether an answer is a 200 with a `request` and, unless the operation is about ended jobs, an `effective`.
fn has_requests(operation: &Operation, answer: &Answer) -> bool {
    let body = String::from_utf8_lossy(&answer.body);
    let has_effective = operation.is_of_history() || body.contains(r#""effective":{"#);
    answer.status == 200 && body.contains(r#""request":{"#) && has_effective
}

/// Cancels a job of the topic `t`, and waits until the history has it.
async fn end(stack: &Stack, id: &str) {
    stack.delete(&format!("/v1/jobs/t/{id}")).await.expect(200);
    eventually(SOON, "the history has the job", async || {
        let history = stack.get(&format!("/v1/history/t/{id}")).await.expect(200);
        if history["items"][0].is_object() { Ok(()) } else { Err(history) }
    })
    .await;
}

/// Stops all bulk operations, starts one, and returns its id.
async fn bulk(stack: &Stack) -> String {
    // Stops running operations, because no carrier ends them.
    let running = stack.get("/v1/bulk").await.json();
    for bulk in running["items"].as_array().into_iter().flatten() {
        stack.delete(&format!("/v1/bulk/{}", bulk["id"].as_str().expect("an id"))).await.expect(200);
    }
    let begun = stack.post_empty("/v1/topics/t/dead/revive").await.expect(202);
    begun["id"].as_str().expect("an id").to_owned()
}

/// Submits and reserves a pull job, and returns its receipt.
async fn receipt(stack: &Stack) -> String {
    let job = json!({"topic": "reserved", "body": 1, "ttr": "1h"});
    let (status, answer) = stack.submit(&job).await;
    assert_eq!(status, 201, "{answer}");
    let reply = stack.post_empty("/v1/topics/reserved/reserve").await;
    let answer = reply.json();
    answer["jobs"][0]["receipt"].as_str().unwrap_or_else(|| panic!("no receipt in {answer}")).to_owned()
}

/// Checks that an answer is documented for the operation, is no 5xx, and has a complete problem if it is an error.
fn judge(operation: &Operation, answer: &Answer) -> Result<(), String> {
    let Answer { status, content_type, body, .. } = answer;
    let shown = String::from_utf8_lossy(&body[..body.len().min(200)]);
    let Some(documented) = operation.responses.get(status) else {
        return Err(format!("{status} is not documented: {shown}"));
    };
    // The store is well, and no request waits for others.
    if *status >= 500 {
        return Err(format!("{status}: {shown}"));
    }
    let types = &documented.content;
    if !types.is_empty() && !types.contains_key(content_type) {
        return Err(format!("{status} with {content_type:?} in place of {:?}: {shown}", types.keys()));
    }
    if *status < 400 {
        // Answers of many parts have a status for each.
        let is_fault = String::from_utf8_lossy(body).contains("\"status\":500");
        return if is_fault { Err(format!("a part of it is a 500: {shown}")) } else { Ok(()) };
    }
    let problem: Value =
        serde_json::from_slice(body).map_err(|error| format!("{status}: {error}: {shown}"))?;
    let has_text = |field: &str| problem[field].as_str().is_some_and(|text| !text.is_empty());
    if content_type != "application/problem+json" || problem["status"] != *status || !has_text("detail") {
        return Err(format!("{status} is not a problem with a detail: {content_type:?} {shown}"));
    }
    if *status == 422 && problem["errors"].as_array().is_none_or(Vec::is_empty) {
        return Err(format!("422 names no field: {shown}"));
    }
    Ok(())
}

async fn lives_on(stack: &mut Stack, client: &Client, after: &Operation) {
    let process = stack.apis.first_mut().or(stack.ups.first_mut()).expect("an api");
    let ended = process.exit_status();
    assert!(ended.is_none(), "it ended with {ended:?} after {}", after.name());
    let url = format!("http://{}/healthz", process.admin());
    let answer = client.get(&url).send().await.expect("the admin port answers");
    assert_eq!(answer.status(), 200, "after {}", after.name());
}
