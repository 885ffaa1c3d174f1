//! Accepted jobs that are gone from Redis: after a repair they are counted as missing over restarts, and API, command
//! line and metrics show the count.

use ringback_testkit::{Persistence, RedisServer, Role};

use crate::cli::ringback;
use crate::prelude::*;
use crate::redis_layout::keys;

#[tokio::test]
async fn a_job_that_a_repair_finds_gone_is_shown_as_missing_after_all_were_restarted() {
    let redis = RedisServer::options().persistence(Persistence::Always);
    let mut stack = Stack::options().redis(redis).count(Role::Notifier, 0).start().await;
    let server = stack.url("");
    let job = json!({"topic": "t", "id": "gone", "delay": "1h", "url": "http://127.0.0.1:9/"});
    stack.accept(&job).await;
    for command in ["check", "stats"] {
        let run = ringback(&server, &[command]).await;
        assert!(run.code == Some(0) && !run.out.contains("missing"), "{run:?}");
    }
    let mut client = stack.redis().client().await;
    for pool in keys::all::<Vec<u8>>(&mut client, "pool").await {
        keys::run(&mut client, &[b"DEL", &pool]).await;
    }
    let run = ringback(&server, &["check"]).await;
    assert!(run.code == Some(1) && run.out.contains("a repair counts them as missing"), "{run:?}");
    let run = ringback(&server, &["check", "--repair"]).await;
    assert!(run.code == Some(0) && run.out.contains("missing jobs        1, "), "{run:?}");

    stack.redis_mut().restart().await;
    stack.apis[0].restart();
    stack.carriers[0].restart();
    stack.ready(SOON).await;
    let check = stack.check().await;
    assert_eq!((check.clean, check.found, check.missing), (true, 0, 1), "{check:?}");
    let states = stack.stats().await["states"].clone();
    assert_eq!((&states["missing"], &states["purged"]), (&json!(1), &json!(0)), "{states}");
    let run = ringback(&server, &["stats"]).await;
    assert!(run.out.contains("missing       1\n"), "{run:?}");
    stack.carriers[0].wait_metric("ringback_missing_jobs", 1.0, SOON).await;
    // The job can be submitted again, and is then another job.
    assert_eq!(stack.submit(&job).await.0, 201);
    let check = stack.check().await;
    assert_eq!((check.clean, check.checked, check.missing), (true, 1, 1), "{check:?}");
    stack.skip_check();
}
