//! The demo of `make demo` runs on a stack: it succeeds, reports what did not happen, and says when nothing is up.

use std::process::ExitStatus;
use std::time::Duration;

use ringback_testkit::{ProcessSpec, Role, Stack, free_port};

/// The limit of the demo. It takes six seconds if all is well, and ten more if something is missing.
const DEMO: Duration = Duration::from_secs(60);

/// Runs the demo. Returns its exit status and what it has printed.
async fn demo(spec: ProcessSpec) -> (ExitStatus, String) {
    let mut process = spec.start();
    let status = process.wait_exit(DEMO).await;
    (status, process.log())
}

#[tokio::test]
async fn the_demonstration_finds_all_as_it_should_be() {
    let stack = Stack::start().await;
    let one_process = Stack::options().in_one_process().store("embedded:./data").start().await;
    let (first, second) = (stack.url(""), one_process.url(""));
    let (one, other) = tokio::join!(
        demo(ProcessSpec::new("demo").arg(&first)),
        demo(ProcessSpec::new("demo").env("RINGBACK_URL", &second))
    );
    for (status, output) in [one, other] {
        assert_eq!(status.code(), Some(0), "{output}");
        assert_eq!(output.lines().filter(|line| line.ends_with(" ok")).count(), 6, "{output}");
        assert!(output.contains("9 of 9 attempts arrived, 6 of 6 jobs ended"), "{output}");
    }
}

#[tokio::test]
async fn the_demonstration_reports_what_did_not_happen() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    let (status, output) = demo(ProcessSpec::new("demo").arg(&stack.url(""))).await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("\"due now\" should have arrived 1 times; arrivals seen: 0"), "{output}");
    assert!(output.contains("\"always fails\" should be dead (exhausted) by now, and is ready"), "{output}");
}

#[tokio::test]
async fn the_demonstration_reports_that_nothing_is_up() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let (status, output) = demo(ProcessSpec::new("demo").arg(&url)).await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert_eq!(output, format!("demo: nothing answers at {url}; run make up first\n"));
}
