//! An embedded store on a disk with too little room accepts no new jobs, and delivers those that it has.

use crate::prelude::*;

/// More MiB to leave free than any disk has.
const MORE_THAN_THERE_IS: &str = "1048576";

#[tokio::test]
async fn submits_are_refused_and_deliveries_go_on_when_the_disk_has_little_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("embedded:{}", directory.path().display());
    let options = Stack::options().in_one_process().store(&url);
    let (mut stack, sink) = (options.clone().start().await, Sink::start().await);
    stack.accept(&with(job(&sink, "waits"), "delay", "3s")).await;
    stack.ups[0].term();
    stack.ups[0].wait_exit(SOON).await;
    stack.skip_check();
    drop(stack);

    let full = options.env("RINGBACK_KEEP_FREE_MIB", MORE_THAN_THERE_IS).start().await;
    let reply = full.post("/v1/jobs", &job(&sink, "refused")).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{:?}", reply.body);
    let detail = reply.json()["detail"].to_string();
    assert!(detail.contains("the disk of the store has less than 1048576 MiB free"), "{detail}");
    let line = json!({"topic": TOPIC, "id": "refused", "url": "http://h/"}).to_string();
    assert_eq!(full.import_lines(line).await.status, 503);
    sink.wait_for_job("waits", 1, SOON).await;
    full.wait_state(TOPIC, "waits", "done", SOON).await;
    // Readiness says so, and stays: everything else is served.
    let (status, text) = full.ups[0].readiness().await.expect("it answers");
    let why = "less than 1048576 MiB free, so submits are refused";
    assert!(status == 200 && text.contains(why), "{status} {text}");
    assert!(full.ups[0].log().contains("submits are refused and attempts are not logged until it has room"));
}
