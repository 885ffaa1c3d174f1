//! A lane's wrong count in Redis while jobs move: no transition fails for it, and a check repairs it.

use ringback_core::job::Due;
use ringback_core::store_types::{DamageKind, MoveResult};

use super::{Ground, lane, pull_lane, row};
use crate::contract::job_builders::{LONG, TOPIC, With, ms};

#[tokio::test]
async fn a_lane_counted_as_empty_is_kept_by_calls_that_end_no_job() {
    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    let of_push = row([0; 4], &format!("{TOPIC} http://receiver.example"));
    let of_pull = row([0; 4], &format!("{TOPIC} "));
    let due = ground.bench.accept(ground.bench.job("due").after(ms(1))).await.key;
    let (ready, pull) = (ground.ready.key.clone(), ground.pull.key.clone());
    let store = ground.bench.store().clone();

    ground.run(&[b"HSET", &shard, &lane(), &of_push]).await;
    ground.bench.take_one(&ready).await;
    ground.run(&[b"HSET", &shard, &lane(), &of_push]).await;
    ground.bench.promote_until(1).await;
    ground.run(&[b"HSET", &shard, &lane(), &of_push]).await;
    ground.bench.take_one(&due).await;
    ground.run(&[b"HSET", &shard, &pull_lane(), &of_pull]).await;
    ground.bench.pull_one(&pull, LONG).await;
    for name in ["reschedule", "run", "revive"] {
        ground.run(&[b"HSET", &shard, &lane(), &of_push]).await;
        let token = ground.bench.token();
        let moved = match name {
            "run" => store.run(&ground.near.key, token).await,
            "revive" => store.revive(&ground.dead.key, token).await,
            _ => store.reschedule(&ground.near.key, Due::In(LONG), token).await,
        };
        assert!(matches!(moved, Ok(MoveResult::Applied(_))), "{name}: {moved:?}");
    }
    ground.mended("lanes whose rows count none", &[DamageKind::LaneCount]).await;
}
