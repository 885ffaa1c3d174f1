//! `ringback get`, `run`, `revive` and `cancel` with many jobs, named on the command line or on standard input.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use ringback_testkit::free_port;

use super::{Run, fed, ringback, spec};
use crate::prelude::*;

/// Submits jobs that are due in an hour. Returns their names.
async fn submit(stack: &Stack, count: usize) -> Vec<String> {
    let job =
        |n| json!({"topic": "t", "id": format!("job-{n}"), "delay": "1h", "url": "http://127.0.0.1:9/"});
    let jobs: Vec<_> = (0..count).map(job).collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &json!(count)));
    (0..count).map(|n| format!("t/job-{n}")).collect()
}

fn words<'a>(command: &'a str, names: &'a [String]) -> Vec<&'a str> {
    [command].into_iter().chain(names.iter().map(String::as_str)).collect()
}

#[tokio::test]
async fn a_command_is_applied_to_each_of_many_jobs_in_order() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let names = submit(&stack, 60).await;
        let run = ringback(&server, &words("get", &names[..3])).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        let jobs: Vec<_> = run.out.split("\n\n").collect();
        assert_eq!(jobs.len(), 3, "{run:?}");
        for (shown, name) in jobs.iter().zip(&names) {
            assert!(shown.starts_with(&format!("job       {name}\nstate     delayed\n")), "{run:?}");
        }
        let run = ringback(&server, &words("cancel", &names)).await;
        let expected: String = names.iter().map(|name| format!("{name} is cancelled\n")).collect();
        assert_eq!((run.code, run.out, run.err.as_str()), (Some(0), expected, ""));
        assert_eq!(stack.count_in("cancelled").await, 60);
    }
}

#[tokio::test]
async fn a_refused_job_does_not_stop_the_others_and_the_exit_code_is_1() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        submit(&stack, 4).await;
        let run = ringback(&server, &["cancel", "t/job-0", "t/nobody", "t/job-1"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(1), "t/job-0 is cancelled\nt/job-1 is cancelled\n"));
        assert!(run.err.starts_with("error: t/nobody: 404 Not Found: no job t/nobody is known"), "{run:?}");
        assert_eq!(run.err.lines().count(), 1, "{run:?}");

        let run = ringback(&server, &["get", "t/job-2", "t/nobody", "t/job-3", "--output", "json"]).await;
        let ids: Vec<_> = run.out.lines().map(|line| json_line(line)["id"].clone()).collect();
        assert_eq!((run.code, ids), (Some(1), vec![json!("job-2"), json!("job-3")]), "{run:?}");
        let refused = json_line(&run.err);
        assert_eq!((&refused["topic"], &refused["id"]), (&json!("t"), &json!("nobody")), "{run:?}");
        assert_eq!((&refused["status"], &refused["problem"]["status"]), (&json!(404), &json!(404)));
    }
}

fn json_line(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[tokio::test]
async fn a_name_that_is_wrong_is_found_before_anything_is_done() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    submit(&stack, 1).await;
    for wrong in
        [&["cancel", "t/job-0", "nonsense"][..], &["cancel", "t/job-0", "t/a b"], &["cancel", "-", "t/job-0"]]
    {
        let run = ringback(&server, wrong).await;
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{run:?}");
        assert!(run.err.contains("Usage: ringback cancel [OPTIONS] [TOPIC/ID]...\n"), "{run:?}");
    }
    assert_eq!(stack.job("t", "job-0").await.1["state"], "delayed");
}

#[tokio::test]
async fn jobs_are_read_from_standard_input() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let dead = |id: &str| {
            json!({"topic": "d", "id": id, "url": "http://127.0.0.1:9/", "state": "dead",
            "reason": "exhausted", "failures": 3, "attempts": 4})
        };
        stack.import(&[dead("a"), dead("b")]).await;
        let run = fed(&server, &["revive", "-"], b"d/a\r\n\nd b\n".to_vec()).await;
        let lines: Vec<_> = run.out.lines().collect();
        assert_eq!((run.code, lines.len(), run.err.as_str()), (Some(0), 2, ""), "{run:?}");
        assert!(
            lines[0].starts_with("d/a is ready, due ") && lines[1].starts_with("d/b is ready"),
            "{run:?}"
        );

        submit(&stack, 2).await;
        let run = fed(&server, &["run", "-"], b"t/job-0\nnonsense\nt/job-1".to_vec()).await;
        assert_eq!((run.code, run.out.lines().count()), (Some(1), 2), "{run:?}");
        assert_eq!(run.err, "error: line 2: \"nonsense\" is not a job; write TOPIC/ID or TOPIC ID\n");
        let run = fed(&server, &["get", "-"], Vec::new()).await;
        assert_eq!(
            (run.code, run.out.as_str(), run.err.as_str()),
            (Some(0), "", ""),
            "an empty list is not an error"
        );
    }
}

#[tokio::test]
async fn a_server_that_fails_stops_the_command_with_2() {
    let sink = Sink::start().await;
    let job = json!({"topic": "t", "id": "any", "state": "ready", "due_at": "2025-11-20T10:22:44.193Z",
        "created_at": "2025-11-20T10:22:41.087Z", "attempts": 0, "failures": 0});
    sink.answer(Answer::status(200).body(job.to_string()));
    let problem =
        json!({"type": "about:blank", "status": 503, "title": "Service Unavailable", "detail": "no store"});
    sink.answer_path("/v1/jobs/t/job-2/run", Answer::status(503).body(problem.to_string()));
    let names: Vec<_> = (0..100).map(|n| format!("t/job-{n}")).collect();
    let run = ringback(&sink.url(""), &words("run", &names)).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let shown = run.out.lines().count();
    assert!((2..20).contains(&shown) && sink.seen() == shown + 1, "{} calls: {run:?}", sink.seen());
    assert!(run.err.contains("error: stopped at t/job-2: 503 Service Unavailable: no store"), "{run:?}");
    assert!(run.err.contains("next: run the command again for the jobs from t/job-2 on"), "{run:?}");
}

#[tokio::test]
async fn a_failure_ends_the_command_while_standard_input_is_open() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let mut command = spec(&server, &["run", "-"]).command();
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(b"t/a\n").expect("it reads its input");
    let status = eventually(SOON, "it ends", async || match child.try_wait().expect("its status") {
        Some(status) => Ok(status),
        None => Err("it still runs"),
    })
    .await;
    drop(stdin);
    let mut err = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut err).expect("text");
    assert_eq!(status.code(), Some(2), "{err}");
    assert!(
        err.contains("error: stopped at t/a: no response from ")
            && err.contains("; 0 were done and 0 refused"),
        "{err}"
    );
}

#[tokio::test]
async fn standard_input_that_cannot_be_read_is_2() {
    let mut command = spec("http://127.0.0.1:1", &["cancel", "-"]).command();
    // A directory can be opened, and not be read.
    command.stdin(File::open("/").expect("it can be opened"));
    let run = tokio::task::spawn_blocking(move || command.output().expect("the binary starts")).await;
    let run = Run::from(run.expect("it runs to its end"));
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
    assert!(
        run.err.starts_with("error: standard input cannot be read after line 0: Is a directory"),
        "{run:?}"
    );
}
