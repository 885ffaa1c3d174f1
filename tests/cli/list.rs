//! `ringback list` against scripted answers: pages, limits, and servers without lists.

use super::{reports, ringback};
use crate::prelude::*;

fn job(id: usize) -> Value {
    json!({"topic": "t", "id": format!("job-{id}"), "state": "dead", "due_at": "2025-11-20T10:22:44.193Z",
        "created_at": "2025-11-20T10:22:41.087Z", "attempts": 3, "failures": 12, "reason": "exhausted",
        "last": {"at": "2025-11-20T10:22:44.193Z", "status": 503, "duration_ms": 4}, "tags": ["customer:42"]})
}

fn page(ids: std::ops::Range<usize>, next: Option<&str>) -> Answer {
    let items: Vec<_> = ids.map(job).collect();
    Answer::status(200).body(json!({"items": items, "next": next}).to_string())
}

/// A server with three scripted pages, of which the second is empty. Other paths are answered 500.
async fn pages(first: &str, second: &str, third: &str) -> Sink {
    let sink = Sink::start().await;
    sink.answer(Answer::status(500));
    sink.answer_path(first, page(0..2, Some("c 1")));
    sink.answer_path(second, page(0..0, Some("c2")));
    sink.answer_path(third, page(2..3, None));
    sink
}

#[tokio::test]
async fn a_list_follows_its_pages_even_an_empty_one() {
    let path = |cursor: &str| format!("/v1/jobs?topic=t&state=dead{cursor}&limit=");
    let sink = pages(&(path("") + "100"), &(path("&cursor=c+1") + "98"), &(path("&cursor=c2") + "98")).await;
    let run = ringback(&sink.url(""), &["list", "--topic", "t", "--state", "dead"]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let lines: Vec<_> = run.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", run.out);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "TOPIC ID STATE DUE ATTEMPTS FAILURES REASON LAST FAILURE TAGS"
    );
    let row = words(lines[3]);
    assert_eq!(row[..4], ["t", "job-2", "dead", "2025-11-20T10:22:44.193Z"]);
    assert_eq!(row[row.len() - 7..], ["ago", "3", "12", "exhausted", "answered", "503", "customer:42"]);
}

#[tokio::test]
async fn all_jobs_are_listed_as_lines_of_json() {
    let path = |cursor: &str| format!("/v1/jobs?{cursor}limit=1000");
    let sink = pages(&path(""), &path("cursor=c+1&"), &path("cursor=c2&")).await;
    let run = ringback(&sink.url(""), &["list", "--all", "--output", "json"]).await;
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, lines), (Some(0), vec![job(0), job(1), job(2)]), "{}", run.err);
}

#[tokio::test]
async fn a_list_ends_at_its_limit_and_shows_that_there_is_more() {
    let sink = Sink::start().await;
    sink.answer_path("/v1/jobs?limit=2", page(0..2, Some("c")));
    let run = ringback(&sink.url(""), &["list", "--limit", "2"]).await;
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 3));
    assert!(run.err.contains("the first 2 jobs; more with --limit or --all"), "{run:?}");
    sink.answer(page(0..0, None));
    let run = ringback(&sink.url(""), &["list"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no jobs\n"));
}

#[tokio::test]
async fn a_server_without_lists_is_reported() {
    let sink = Sink::start().await;
    let problem = json!({"type": "about:blank", "status": 405, "title": "Method Not Allowed", "detail": "x"});
    sink.answer(Answer::status(405).body(problem.to_string()));
    reports(&sink.url(""), &["list"], 2, "the server does not offer lists of jobs").await;
}

#[tokio::test]
async fn a_page_that_follows_itself_ends_the_list() {
    let sink = Sink::start().await;
    sink.answer(page(0..1, Some("c")));
    reports(&sink.url(""), &["list", "--all"], 2, "follows itself").await;
}
