//! Damaged rows, counts and lists of topics in Redis are found and repaired; pauses, policies and revives are no damage.

use ringback_core::job::{NewJob, TenantLimits, TenantScope, Topic};
use ringback_core::store_types::{
    BulkStart, BulkTarget, DamageKind, DeadFilter, Limit, Repair, SubmitResult,
};
use ringback_wire::parse_policy;

use super::{Ground, LATE, lane, named, pull_lane, row};
use crate::contract::destinations::pause_of;
use crate::contract::job_builders::{LONG, TOPIC, With, bury};

fn topic() -> Topic {
    TOPIC.parse().expect("a topic")
}

fn of_index(lane: &[u8]) -> Vec<u8> {
    [format!("{TOPIC} ").as_bytes(), lane].concat()
}

#[tokio::test]
async fn topics_and_lanes_that_lists_do_not_show_are_found_and_listed_again() {
    let mut ground = Ground::new().await;
    let (index, topics) = (ground.key("index").await, ground.key("topics").await);
    ground.run(&[b"ZREM", &index, &of_index(&lane())]).await;
    ground.mended("a lane that is not listed", &[DamageKind::Topic]).await;
    ground.run(&[b"ZREM", &index, &of_index(b"")]).await;
    ground.mended("a topic that is not listed", &[DamageKind::Topic]).await;
    ground.run(&[b"ZREM", &topics, TOPIC.as_bytes()]).await;
    ground.mended("a topic that is not known by its hour", &[DamageKind::Topic]).await;
    ground.run(&[b"DEL", &index, &topics]).await;
    let found = ground.check(Repair::No).await;
    // The topic, its push lane and its pull lane.
    assert_eq!(found.total(), 3, "{found:#?}");
    ground.mended("no list", &[DamageKind::Topic]).await;
    let counts = ground.bench.store().topic(&topic()).await.expect("topic").expect("it is known");
    assert_eq!((counts.delayed, counts.ready, counts.reserved, counts.dead), (4, 2, 1, 1));
    ground.run(&[b"ZADD", &index, b"0", b"nobody ", b"0", b"nobody 12345678"]).await;
    let found = ground.check(Repair::No).await;
    assert_eq!((found.total(), found.stale), (0, 2), "{found:#?}");
}

#[tokio::test]
async fn what_is_counted_of_topics_is_found_wrong_and_put_right() {
    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    let field = format!("topic:{TOPIC}");
    for lanes in [0_u32, 1, 3] {
        let row = [&lanes.to_be_bytes()[..], &[0, 0, 0, 1], &[0; 13]].concat();
        ground.run(&[b"HSET", &shard, field.as_bytes(), &row]).await;
        ground.mended(&format!("a topic of {lanes} lanes"), &[DamageKind::Topic]).await;
    }
    ground.run(&[b"HDEL", &shard, field.as_bytes()]).await;
    ground.mended("a topic that is not known", &[DamageKind::Topic]).await;
    for sum in ["lanes", "topics", "paused"] {
        for by in [1, -1] {
            ground.count(&shard, sum, by).await;
            ground.mended(sum, &[DamageKind::Topic]).await;
        }
    }
    // Ends the last job of each lane, after which nothing of the repaired rows is left.
    let (near, pull) = (ground.near.key.clone(), ground.pull.key.clone());
    ground.bench.cancel(&pull).await;
    ground.bench.cancel(&near).await;
    ground.bench.check().await;
}

#[tokio::test]
async fn what_is_counted_of_tenants_is_found_wrong_and_put_right() {
    let mut ground = Ground::new().await;
    for (topic, id) in [("~a/one", "1"), ("~a/two", "1"), ("~b/one", "1")] {
        ground.bench.accept(ground.bench.job_of(topic, id).after(LONG)).await;
    }
    let shard = ground.key("shard").await;
    for numbers in [[0_u32, 0], [1, 2], [2, 1], [3, 3]] {
        ground.run(&[b"HSET", &shard, b"tenant:~a", &numbers.map(u32::to_be_bytes).concat()]).await;
        ground.mended(&format!("a tenant of {numbers:?}"), &[DamageKind::Topic]).await;
    }
    ground.run(&[b"HSET", &shard, b"tenant:~gone", &[0, 0, 0, 1, 0, 0, 0, 1]]).await;
    ground.mended("a tenant without topics", &[DamageKind::Topic]).await;
    ground.run(&[b"HDEL", &shard, b"tenant:~a"]).await;
    ground.mended("a tenant without a row", &[DamageKind::Topic]).await;
    let limits = Some(TenantLimits { topics: 2, lanes: 9 });
    let new = |topic: &str| NewJob { limits, ..ground.bench.job_of(topic, "2").after(LONG) };
    let answers = ground.bench.submit(&[new("~a/one"), new("~a/three"), new("~b/two")]).await;
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.answer).collect();
    let full = SubmitResult::Full(Limit::TenantTopics);
    assert_eq!(answers, [SubmitResult::Created, full, SubmitResult::Created]);
    ground.bench.check().await;
}

#[tokio::test]
async fn a_lane_that_is_counted_in_other_states_is_found_and_put_right_beside_lost_jobs() {
    let mut ground = Ground::new().await;
    let (shard, queue) = (ground.key("shard").await, ground.of("ready:", &lane()).await);
    ground.run(&[b"DEL", &queue]).await;
    let words = format!("{TOPIC} http://receiver.example");
    // The check cannot tell whether the lost job was delayed or ready.
    ground.run(&[b"HSET", &shard, &lane(), &row([3, 2, 1, 1], &words)]).await;
    let found = ground.check(Repair::No).await;
    assert_eq!(found.found.keys().copied().collect::<Vec<_>>(), [DamageKind::Unindexed], "{found:#?}");
    ground.run(&[b"HSET", &shard, &lane(), &row([3, 2, 2, 0], &words)]).await;
    ground.mended("a lost job, and another lane", &[DamageKind::Unindexed, DamageKind::LaneCount]).await;
}

#[tokio::test]
async fn a_dead_letter_among_others_is_missed_and_so_is_one_of_another_lane() {
    let mut ground = Ground::new().await;
    let lease = ground.bench.take(1).await.remove(0);
    let other = lease.key.clone();
    ground.bench.settle(lease, bury()).await;
    let other = ground.bench.get(&other).await;
    let (dead, locator) = (ground.key("dead").await, other.key.locator().0);
    ground.run(&[b"ZREM", &dead, &[&locator[..], &lane()].concat()]).await;
    let found = ground.check(Repair::No).await;
    assert!(named(&found, &other) && found.total() == 1, "{found:#?}");
    ground.run(&[b"ZADD", &dead, LATE, &[&locator[..], b"12345678"].concat()]).await;
    let found = ground.check(Repair::No).await;
    assert!(named(&found, &other) && found.total() == 1, "{found:#?}");
    let repaired = ground.check(Repair::Yes).await;
    assert!(repaired.is_clean() && repaired.total() == 1, "{repaired:#?}");
    let left = ground.check(Repair::No).await;
    assert_eq!((left.total(), left.stale), (0, 1), "{left:#?}");
    let filter = DeadFilter { topic: topic(), reason: None, after: None, before: None };
    let page = ground.bench.store().dead(&filter, None, 10).await.expect("a page");
    assert_eq!(page.items.len(), 2);
}

#[tokio::test]
async fn a_dead_letter_of_another_lane_of_its_topic_shows_its_job_no_second_time() {
    let mut ground = Ground::new().await;
    let (dead, locator) = (ground.key("dead").await, ground.dead.key.locator().0);
    // Both lanes are known, and both are the topic's.
    ground.run(&[b"ZADD", &dead, b"5", &[&locator[..], &pull_lane()].concat()]).await;
    let filter = DeadFilter { topic: topic(), reason: None, after: None, before: None };
    let page = ground.bench.store().dead(&filter, None, 10).await.expect("a page");
    let died: Vec<_> = page.items.iter().map(|dead| dead.died.as_millis()).collect();
    assert!(died.len() == 1 && died[0] > 5, "{died:?}");
}

#[tokio::test]
async fn lanes_of_a_paused_topic_may_stand_with_the_others_or_be_set_aside_and_lead_on_again() {
    let mut ground = Ground::new().await;
    let (paused, lanes) = (ground.key("paused").await, ground.key("lanes").await);
    let (pulls, shard) = (ground.key("pulls").await, ground.key("shard").await);
    let row = [&[0, 0, 0, 2, 0, 0, 0, 1][..], &[0; 13]].concat();
    ground.bench.store().pause(&topic(), None).await.expect("pause").expect("there is room");
    let well = ground.check(Repair::No).await;
    assert_eq!((well.total(), well.stale, well.compared), (0, 0, well.shards), "met by nobody: {well:#?}");
    assert!(ground.bench.take(10).await.is_empty());
    assert!(ground.bench.pull(10, LONG).await.jobs.is_empty());
    let well = ground.check(Repair::No).await;
    assert_eq!((well.total(), well.stale, well.compared), (0, 0, well.shards), "paused: {well:#?}");
    ground.bench.check().await;

    ground.run(&[b"DEL", &paused]).await;
    ground.mended("neither paused nor in turn", &[DamageKind::Schedule]).await;
    assert!(ground.bench.take(10).await.is_empty(), "the topic is paused still");
    assert!(ground.bench.pull(10, LONG).await.jobs.is_empty());
    ground.mended_nothing().await;

    // The topic counts as resumed and its lanes are still set aside, so they would never get a turn.
    let paused: Vec<u8> = ground.read(&shard, format!("topic:{TOPIC}").as_bytes()).await;
    ground.run(&[b"HSET", &shard, format!("topic:{TOPIC}").as_bytes(), &row]).await;
    ground.count(&shard, "paused", -1).await;
    ground.mended("paused for ever", &[DamageKind::Schedule]).await;
    assert_eq!(paused.len(), row.len());
    for (key, lane) in [(&lanes, lane()), (&pulls, pull_lane())] {
        ground.run(&[b"ZADD", key, b"XX", b"5", &lane]).await;
    }
    let (ready, pull) = (ground.ready.key.clone(), ground.pull.key.clone());
    ground.bench.take_one(&ready).await;
    ground.bench.pull_one(&pull, LONG).await;
    assert!(ground.bench.store().resume(&topic()).await.expect("resume"));
    ground.bench.check().await;
}

#[tokio::test]
async fn lanes_of_a_paused_destination_may_be_set_aside_and_lead_on_again() {
    let mut ground = Ground::new().await;
    let (paused, lanes, shard) =
        (ground.key("paused").await, ground.key("lanes").await, ground.key("shard").await);
    let destinations = ground.key("destinations").await;
    let pause = pause_of(&TenantScope::All, "receiver.example");
    ground.bench.store().pause_destination(&pause).await.expect("pause").expect("there is room");
    assert!(ground.bench.take(10).await.is_empty());
    let well = ground.check(Repair::No).await;
    assert_eq!((well.total(), well.stale, well.compared), (0, 0, well.shards), "paused: {well:#?}");

    ground.run(&[b"DEL", &paused]).await;
    ground.mended("neither paused nor in turn", &[DamageKind::Schedule]).await;
    assert!(ground.bench.take(10).await.is_empty(), "the destination is paused still");
    ground.mended_nothing().await;
    ground.set(&shard, "paused_hosts", 0).await;
    ground.mended("a pause that is not counted", &[DamageKind::WakeAt]).await;
    assert!(ground.bench.take(10).await.is_empty(), "it is paused still");

    // The pause has gone and its lanes are still set aside, so they would never get a turn.
    ground.run(&[b"DEL", &destinations]).await;
    ground.set(&shard, "paused_hosts", 0).await;
    ground.mended("paused for ever", &[DamageKind::Schedule]).await;
    ground.run(&[b"ZADD", &lanes, b"XX", b"5", &lane()]).await;
    ground.run(&[b"DEL", &paused]).await;
    let ready = ground.ready.key.clone();
    ground.bench.take_one(&ready).await;
    ground.bench.check().await;
}

#[tokio::test]
async fn a_paused_topic_without_jobs_a_policy_and_a_bulk_revive_are_no_findings() {
    let ground = Ground::new().await;
    let store = ground.bench.store();
    let empty: Topic = "empty".parse().expect("a topic");
    store.pause(&empty, None).await.expect("pause").expect("there is room");
    store.put_policy(&topic(), &parse_policy(b"{\"timeout\":\"7s\"}").expect("a policy")).await.expect("put");
    let filter = DeadFilter { topic: topic(), reason: None, after: None, before: None };
    let BulkStart::Bulk(bulk) =
        store.start_bulk(ground.bench.token(), &BulkTarget::Dead(filter.clone()), 10).await.expect("begin")
    else {
        panic!("one is not too many")
    };
    let shard = ground.bench.shard();
    let cursors = store.dead_cursors(shard, &filter, None, 10).await.expect("a page").items;
    store.revive_many(shard, bulk.id, &cursors).await.expect("revive");
    for repair in [Repair::No, Repair::Yes, Repair::No] {
        let check = ground.check(repair).await;
        assert_eq!((check.total(), check.stale, check.compared), (0, 0, check.shards), "{check:#?}");
    }
    ground.bench.check().await;
    assert!(store.resume(&empty).await.expect("resume"));
    ground.bench.check().await;
}
