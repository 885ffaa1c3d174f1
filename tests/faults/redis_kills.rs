//! A single Redis with `appendfsync always` is killed and started again in quick succession: no accepted job is lost.

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{FaultClass, Invariant, InvariantResult};
use ringback_testkit::recorded::{Bounds, Recorded};
use ringback_testkit::{Persistence, RedisServer, variable};
use tokio::time::Instant;

use super::recorded_load::{RecordedLoad, TOPIC};
use crate::prelude::*;

/// How often Redis is killed, unless `RINGBACK_TEST_REDIS_KILLS` says another number.
const KILLS: usize = 30;
/// How many jobs are accepted between two kills.
const JOBS_BETWEEN: usize = 4;
/// The time after a start within which a submit is accepted again.
const ALLOWED: Duration = Duration::from_secs(2);
/// The limit until all jobs have ended: leases have to expire, on a busy machine.
const DRAIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn redis_is_killed_again_and_again_and_loses_nothing_that_was_accepted() {
    let kills = variable("RINGBACK_TEST_REDIS_KILLS").unwrap_or(KILLS);
    let redis = RedisServer::options().persistence(Persistence::Always);
    let mut stack = Stack::options().redis(redis).lock_ttl("500ms").start().await;
    let recorded = Recorded::start("killed redis", &Bounds { live: Some(DRAIN), ..Bounds::default() });
    let sink = Sink::recorded(recorded.history()).await;
    recorded.read_clock(stack.redis()).await;

    let load = RecordedLoad::new(&recorded, &stack, sink.url("/hook"));
    let killing = async {
        let mut longest = Duration::ZERO;
        for _ in 0..kills {
            load.accepted.more(JOBS_BETWEEN).await;
            let fault = recorded.fault("kill-redis", FaultClass::Store);
            stack.redis_mut().kill();
            let away = recorded.fault("redis-away", FaultClass::StoreDown);
            recorded.healed(away);
            stack.redis_mut().restart().await;
            recorded.healed(fault);
            let started = Instant::now();
            load.accepted.more(1).await;
            longest = longest.max(started.elapsed());
        }
        load.end();
        longest
    };
    let ((), (), (), longest) = tokio::join!(load.run("a"), load.run("b"), load.run("c"), killing);
    recorded.drain(&stack, &[TOPIC], DRAIN).await;
    recorded.read_clock(stack.redis()).await;
    recorded.end(&stack, &[TOPIC], true).await;

    let report = recorded.check();
    Reached::new(Figure::RedisKills, "killed redis", kills as u64).wrong(report.totals.lost).write();
    Reached::new(Figure::StoreRecovery, "killed redis", kills as u64).took(longest, ALLOWED).write();
    recorded.assert_clean(&report, "");
    let held = |invariant| report.standing(invariant).verdict == InvariantResult::Held;
    assert!(
        [Invariant::NothingLost, Invariant::CountsAgree, Invariant::Liveness, Invariant::DurableAccept]
            .into_iter()
            .all(held),
        "{report}"
    );
}
