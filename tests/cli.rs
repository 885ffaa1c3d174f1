//! Tests of the command line `ringback` against real stacks: exit codes, output, and effects. This file has how a run
//! is started, and the tests of submit, show, cancel, stats, usage and failing servers.

mod attempts;
mod audit_log;
mod backup;
mod bulk;
mod credentials;
mod dead_letters;
mod full_and_curl;
mod idempotency_key;
mod if_exists;
mod import_export_faults;
mod keys;
mod list;
mod list_export_import;
mod listen;
mod many_jobs;
mod order;
mod policy;
mod pull_jobs;
mod quotas;
mod reschedule_run_revive;
mod scripted_server;
mod terminal;
mod topics;
mod up;
mod watch;

use std::io::Write;
use std::process::{Output, Stdio};

use ringback_testkit::{ProcessSpec, free_port, now};

use crate::prelude::*;
use crate::sample_jobs::{between, time};

/// How a run ended and what it printed.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Standard output as one JSON document.
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("only text is printed");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// The command line with these arguments and the URL of a server.
pub(crate) fn spec(server: &str, words: &[&str]) -> ProcessSpec {
    let spec = ProcessSpec::new("ringback").env("RINGBACK_URL", server);
    words.iter().fold(spec, |spec, word| spec.arg(word))
}

/// Runs the command line to its end, with nothing on standard input.
pub(crate) async fn ringback(server: &str, words: &[&str]) -> Run {
    fed(server, words, Vec::new()).await
}

/// Runs the command line to its end, with `input` on standard input.
pub(crate) async fn fed(server: &str, words: &[&str], input: Vec<u8>) -> Run {
    run_fed(spec(server, words), input).await
}

/// Runs the command line to its end. Asserts its exit status, and that standard error contains `part`.
pub(crate) async fn reports(server: &str, words: &[&str], status: i32, part: &str) {
    let run = ringback(server, words).await;
    assert!(run.code == Some(status) && run.err.contains(part), "{words:?}: {run:?}");
}

/// Runs the command line to its end. Asserts its exit status, and that standard output contains `part`.
pub(crate) async fn prints(server: &str, words: &[&str], status: i32, part: &str) {
    let run = ringback(server, words).await;
    assert!(run.code == Some(status) && run.out.contains(part), "{words:?}: {run:?}");
}

/// Runs a process to its end, with `input` on standard input.
pub(crate) async fn run_fed(spec: ProcessSpec, input: Vec<u8>) -> Run {
    let mut command = spec.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = move || {
        let mut child = command.spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        let writer = std::thread::spawn(move || {
            // The process may end before it has read all input.
            stdin.write_all(&input).ok();
        });
        let output = child.wait_with_output().expect("its outputs can be read");
        writer.join().expect("the input is written");
        output
    };
    tokio::task::spawn_blocking(run).await.expect("it runs to its end").into()
}

#[tokio::test]
async fn a_job_goes_its_way_from_submit_to_done() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let (server, url) = (stack.url(""), sink.url("/hook"));
    let words = ["submit", "--topic", TOPIC, "--id", "a", "--url", &url, "--body", r#"{"b": 1.0e5}"#];
    let words = [&words[..], &["--context", "k=v", "--header", "x-a:1", "--timeout", "5"]].concat();
    let run = ringback(&server, &words).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.out.starts_with("job       e2e/a\nstate     "), "{run:?}");

    let arrival = &sink.wait_for_job("a", 1, SOON).await[0];
    assert_eq!(arrival.body, r#"{"b": 1.0e5}"#);
    assert_eq!((arrival.header("ringback-context-k"), arrival.header("x-a")), (Some("v"), Some("1")));
    stack.wait_state(TOPIC, "a", "done", SOON).await;

    let run = ringback(&server, &words).await;
    assert!(run.code == Some(0) && run.out.contains("state     done"), "the same again: {run:?}");
    assert_eq!(run.err, "the same job was accepted before: nothing changed\n");
    let mut other = words.clone();
    other[8] = "2";
    let run = ringback(&server, &other).await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.starts_with("error: 409 Conflict: another job has this topic and id"), "{run:?}");
    let run = ringback(&server, &["cancel", "e2e/a"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains("409"), "{run:?}");
}

#[tokio::test]
async fn a_delay_and_a_time_are_when_a_job_is_due() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let url = "http://127.0.0.1:9/";
    let at = "2030-01-02T03:04:05+01:00";
    let run =
        ringback(&server, &["submit", "--topic", "t", "--url", url, "--at", at, "--output", "json"]).await;
    assert_eq!(run.json()["due_at"], "2030-01-02T02:04:05.000Z");
    let before = now();
    let words = ["submit", "--topic", "t", "--url", url, "--delay", "1h 30m", "--output", "json"];
    let due = time(&ringback(&server, &words).await.json()["due_at"]);
    let ahead = between(before, due);
    assert!((Duration::from_secs(5_399)..Duration::from_secs(5_430)).contains(&ahead), "{ahead:?}");
}

#[tokio::test]
async fn json_output_is_the_json_of_the_api() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let job = json!({"topic": "t", "id": "i", "delay": "1h", "url": "http://127.0.0.1:9/"}).to_string();
    let run = fed(&server, &["submit", "-", "--output", "json"], job.into_bytes()).await;
    let (_, shown) = stack.job("t", "i").await;
    assert_eq!((run.code, run.json()), (Some(0), shown.clone()));
    let run = ringback(&server, &["get", "t", "i", "--output", "json"]).await;
    assert_eq!((run.code, run.json()), (Some(0), shown));
    let run = ringback(&server, &["cancel", "t/i", "--output", "json"]).await;
    assert_eq!(run.json(), json!({"topic": "t", "id": "i", "state": "cancelled"}));
    let run = ringback(&server, &["stats", "--output", "json"]).await;
    assert_eq!((run.code, &run.json()["states"]["cancelled"]), (Some(0), &json!(1)));

    let run = ringback(&server, &["get", "t", "nobody", "--output", "json"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{run:?}");
    let problem: Value = serde_json::from_str(&run.err).expect("the problem on standard error");
    assert_eq!(problem["status"], 404);
}

#[tokio::test]
async fn stats_and_single_jobs_are_shown_as_tables() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    stack.accept(&json!({"topic": "t", "id": "i", "delay": "1h", "url": "http://127.0.0.1:9/"})).await;
    let run = ringback(&server, &["stats"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.starts_with("STATE      JOBS\ndelayed       1\nready         0\n"), "{}", run.out);
    assert!(run.out.contains("\nstore                        redis, memory\n"), "{}", run.out);
    let run = ringback(&server, &["get", "t/i"]).await;
    assert!(run.out.contains("Z (in 59m "), "{}", run.out);
    let run = ringback(&server, &["cancel", "t/i"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "t/i is cancelled\n"));
    assert!(!run.out.contains('\u{1b}'));
}

#[tokio::test]
async fn mistakes_in_a_job_are_reported_field_by_field() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let job = br#"{"topic":"a b","url":"ftp://h","colour":1}"#;
    let run = fed(&server, &["submit", "-"], job.to_vec()).await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    let lines: Vec<_> = run.err.lines().collect();
    assert!(lines[0].starts_with("error: 422 Unprocessable Entity: wrong: colour, topic, url"), "{run:?}");
    assert!(lines[1].starts_with("  colour: unknown field; allowed: topic, id"), "{run:?}");
    assert!(lines[2].starts_with("  topic: \"a b\" is not a topic; allowed: 1 to 64"), "{run:?}");
    assert!(lines[4].starts_with("next: "), "{run:?}");

    let run = fed(&server, &["submit", "-"], vec![b'x'; 2_000_000]).await;
    assert!(run.code == Some(1) && run.err.contains("use `ringback import`"), "{run:?}");
    reports(&server, &["submit", "no-such-file.json"], 2, "no-such-file.json: No such file").await;
    reports(&server, &["cancel", "t/nobody"], 1, "no job t/nobody is known").await;
}

#[tokio::test]
async fn wrong_usage_is_64_and_help_is_none() {
    let server = "http://127.0.0.1:1";
    for words in [
        &[][..],
        &["submit"],
        &["fly"],
        &["get", "x"],
        &["reschedule", "t/i"],
        &["reschedule", "t/i", "--delay", "1", "--at", "2030-01-01T00:00:00Z"],
        &["reschedule", "t/i", "--delay", "-1"],
        &["run"],
        &["revive", "t"],
        &["list", "--limit", "-1"],
        &["stats", "--server", "nowhere"],
        &["submit", "--topic", "t", "--url", "http://h/", "--body", "no json"],
    ] {
        let run = ringback(server, words).await;
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{words:?}: {run:?}");
        assert!(!run.err.is_empty());
    }
    for words in [&["--help"][..], &["--version"], &["help", "import"], &["completions", "zsh"]] {
        let run = ringback(server, words).await;
        assert!(run.code == Some(0) && run.out.contains("ringback"), "{words:?}: {run:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_reported_at_once_with_2() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let began = now();
    for words in [&["stats"][..], &["get", "t/i"], &["list"], &["export", "--patience", "0"]] {
        let run = ringback(&server, words).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{words:?}: {run:?}");
        assert!(
            run.err.starts_with(&format!("error: no response from {server}: Connection refused")),
            "{run:?}"
        );
        assert!(run.err.contains("next: start a server there, or name another with --server"), "{run:?}");
    }
    assert!(between(began, now()) < Duration::from_secs(10));
}

#[tokio::test]
async fn a_store_that_is_away_is_2() {
    let mut stack = StackOptions::api_only().start().await;
    stack.redis_mut().kill();
    stack.skip_check();
    let run = ringback(&stack.url(""), &["get", "t/i"]).await;
    assert!(run.code == Some(2) && run.err.starts_with("error: 503 Service Unavailable"), "{run:?}");
}

#[tokio::test]
async fn what_is_no_ringback_is_2() {
    let sink = Sink::start().await;
    sink.answer(ringback_testkit::Answer::status(404).body("<html>"));
    reports(&sink.url(""), &["get", "t/i"], 2, "answered 404 Not Found, but it is not a Ringback API").await;
}
