//! The crash points of `ringback backup`, `restore` and `compact`, and of the first start of an embedded store: each
//! command is killed at each of them and run again. A backup that has its name is whole, a restore that is run again
//! restores the rest, and a compacted store keeps its jobs. By default a third of the points, by the seed.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringback_testkit::{ProcessSpec, Role, Stack};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::names::{command_points, share};
use super::{show, sweeps};
use crate::seed::seed;

/// More than one request of a restore takes.
const JOBS: usize = 1_200;
/// Within this a command ends on a busy machine.
const ENDS: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_command_that_is_killed_is_run_again_and_nothing_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut stack = api_only().start().await;
    fill(&stack).await;
    let whole = dir.path().join("whole");
    assert!(run(&stack, &["backup", &text(&whole)], None).await.status.success());

    let seed = seed();
    let points = share(command_points(), seed, sweeps().is_some());
    show(&format!("seed {seed}: {points:?}"));
    let of = |command: &str| -> Vec<&String> {
        points.iter().filter(|point| point.starts_with(command)).collect()
    };
    for (number, point) in of("backup.").iter().enumerate() {
        let file = dir.path().join(format!("backup-{number}"));
        assert_killed(&run(&stack, &["backup", &text(&file)], Some(point)).await, point);
        assert_eq!(file.exists(), *point == "backup.after_finish", "{point}");
        let again = run(&stack, &["backup", &text(&file)], None).await;
        assert!(again.status.success(), "{point}: {again:?}");
        assert_eq!(jobs(&file), jobs(&whole), "{point}");
    }
    for point in of("create.") {
        let new = text(&dir.path().join(point).join("data"));
        let up = [
            "up",
            "--store",
            &format!("embedded:{new}"),
            "--api-listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ];
        assert_killed(&run(&stack, &up, Some(point)).await, point);
        // A file that has not got its name yet is no store, and does not prevent a new one.
        let is_named = Path::new(&new).join("ringback.redb").exists();
        assert_eq!(is_named, *point == "create.after_name", "{point}");
        assert_killed(&run(&stack, &up, Some("embedded.after_note_log")).await, point);
    }
    for point in [of("restore."), of("import.")].concat() {
        let other = api_only().start().await;
        let restore = ["restore", &text(&whole), "--json"];
        assert_killed(&run(&other, &restore, Some(point)).await, point);
        let again = run(&other, &restore, None).await;
        assert!(again.status.success(), "{point}: {again:?}");
        let result: Value = serde_json::from_slice(&again.stdout).expect("JSON");
        let (created, repeated) = (&result["jobs"]["created"], &result["jobs"]["repeated"]);
        let both = created.as_u64().zip(repeated.as_u64()).map(|(created, repeated)| created + repeated);
        assert_eq!((&result["complete"], both), (&json!(true), Some(JOBS as u64)), "{point}: {result}");
        assert_eq!(other.stats().await["states"]["delayed"], JOBS, "{point}");
    }
    for point in of("compact.") {
        stack.apis[0].kill();
        let data = text(&stack.apis[0].directory().join("data"));
        assert_killed(&run(&stack, &["compact", &data], Some(point)).await, point);
        assert!(run(&stack, &["compact", &data], None).await.status.success(), "{point}");
        stack.apis[0].restart();
        stack.ready(ENDS).await;
        assert_eq!(stack.stats().await["states"]["delayed"], JOBS, "{point}");
    }
}

fn api_only() -> ringback_testkit::StackOptions {
    Stack::options().count(Role::Carrier, 0).count(Role::Notifier, 0).store("embedded:./data")
}

async fn fill(stack: &Stack) {
    stack.set_policy("t", &json!({"timeout": "3s"})).await;
    let job =
        |n| json!({"topic": "t", "id": format!("job-{n}"), "url": "http://127.0.0.1:9/", "delay": "1h"});
    for batch in (0..JOBS).collect::<Vec<_>>().chunks(400) {
        let batch: Value = batch.iter().map(&job).collect();
        let answer = stack.post("/v1/jobs/batch", &batch).await;
        assert!(answer.status < 300, "{answer:?}");
    }
}

/// Runs a command to its end, or until it is killed at a crash point. Panics after a minute.
async fn run(stack: &Stack, words: &[&str], point: Option<&str>) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let (plan, log) = (dir.path().join("plan"), dir.path().join("log"));
    fs::write(&plan, point.map(|point| format!("{point} kill 1\n")).unwrap_or_default()).expect("a plan");
    let spec = ProcessSpec::new("ringback").env("RINGBACK_URL", &stack.url(""));
    let spec = spec.env("FAULT_PLAN", &text(&plan)).env("FAULT_LOG", &text(&log));
    let spec = words.iter().fold(spec, |spec, word| spec.arg(word));
    let child = spec.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the binary starts");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid fits"));
    let output = spawn_blocking(move || child.wait_with_output());
    let Ok(output) = timeout(ENDS, output).await else {
        kill(pid, Signal::SIGKILL).expect("it runs");
        panic!("{words:?}, armed with {point:?}, goes on after {ENDS:?}");
    };
    output.expect("it does not panic").expect("its outputs can be read")
}

fn assert_killed(output: &Output, point: &str) {
    assert_eq!(output.status.signal(), Some(9), "{point}: {output:?}");
}

fn jobs(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("a backup");
    text.lines().filter(|line| line.contains("job-")).map(str::to_owned).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
