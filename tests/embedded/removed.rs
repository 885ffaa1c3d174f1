//! Files of an embedded store that are removed or moved while it is open: it accepts nothing until they are back.

use ringback_testkit::Reply;
use tokio::time::Instant;

use crate::prelude::*;

/// The time within which a process notices that files are gone.
const NOTICED: Duration = Duration::from_secs(2);

/// Asserts for 4 seconds that submits are refused and that the process is not ready and says why.
async fn stays_refused(stack: &Stack, sink: &Sink, what: &str) {
    let begun = Instant::now();
    stack.ups[0].wait_readiness(503, "was removed, moved or replaced", NOTICED).await;
    let mut n = 0;
    while begun.elapsed() < 2 * NOTICED {
        n += 1;
        let reply: Reply = stack.post("/v1/jobs", &job(sink, &format!("{what}-{n}"))).await;
        let detail = reply.json()["detail"].to_string();
        assert!(reply.status == 503 && detail.contains("was removed, moved or replaced"), "{detail}");
        let (status, text) = stack.ups[0].readiness().await.expect("it answers");
        assert_eq!(status, 503, "{text}");
    }
}

#[tokio::test]
async fn a_process_whose_directory_is_gone_accepts_nothing_until_it_is_back() {
    let top = tempfile::tempdir().expect("a directory");
    let (data, away) = (top.path().join("data"), top.path().join("away"));
    let options = Stack::options().in_one_process().store(&format!("embedded:{}", data.display()));
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    stack.accept(&with(job(&sink, "early"), "delay", "1h")).await;
    std::fs::rename(&data, &away).expect("moved");
    stays_refused(&stack, &sink, "moved").await;
    assert!(!data.exists(), "no empty store takes its place");
    std::fs::rename(&away, &data).expect("moved back");
    stack.ready(SOON).await;
    assert_eq!(stack.job(TOPIC, "early").await.0, 200);
    stack.accept(&job(&sink, "again")).await;
    sink.wait_for_job("again", 1, SOON).await;

    std::fs::remove_dir_all(&data).expect("removed");
    stays_refused(&stack, &sink, "removed").await;
    assert!(!data.exists(), "no empty store takes its place");
    stack.skip_check();
}
