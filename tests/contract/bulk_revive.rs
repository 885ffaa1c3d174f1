//! Cases of bulk revives: one call makes many dead jobs ready, each once; one worker at a time continues a bulk
//! revive, until it is done or stopped.

use ringback_core::clock::Timestamp;
use ringback_core::job::{Job, JobKey};
use ringback_core::store_types::{
    Bulk, BulkId, BulkStart, BulkState, BulkStep, BulkTarget, DeadCursor, DeadFilter, MAX_BULKS, TakenBulk,
    Wake, WorkerId,
};
use ringback_store::Wakes;

use super::bulk::look;
use super::dead_letters::{all, bring, cursors, jobs, of_topic, wanted};
use super::job_builders::{LONG, TOPIC, With, bury, ms, seen, tags};
use super::workbench::{SOON, Workbench, next, now, until};
use crate::prelude::*;

const ONE: WorkerId = WorkerId([1; 8]);
const OTHER: WorkerId = WorkerId([2; 8]);

async fn begin(bench: &Workbench, filter: &DeadFilter) -> Bulk {
    match bench.store().start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 50).await.expect("begin")
    {
        BulkStart::Bulk(bulk) => bulk,
        BulkStart::TooMany => panic!("too many go on"),
    }
}

async fn revive(bench: &Workbench, id: BulkId, cursors: &[DeadCursor]) -> BulkStep {
    bench.store().revive_many(bench.shard(), id, cursors).await.expect("revive")
}

async fn take(bench: &Workbench, holder: WorkerId, ttl: Duration) -> TakenBulk {
    bench.store().take_bulk(holder, ttl).await.expect("take")
}

/// The next wake-up except those about bulk operations, which a cluster may deliver late.
async fn other_than_bulk(wakes: &mut Wakes) -> Wake {
    loop {
        match next(wakes).await {
            Wake::Bulk => {}
            other => return other,
        }
    }
}

pub(crate) async fn many_dead_jobs_are_revived_as_each_would_be(bench: &Workbench) {
    let brought = jobs(bench, TOPIC, "job", 30);
    bring(bench, &brought, "gone").await;
    let others = jobs(bench, "other", "job", 3);
    bring(bench, &others, "gone").await;
    let one = bench.get(&brought[0].key).await;
    let (before, bulk) = (now(), begin(bench, &of_topic(TOPIC)).await);
    let cursors = cursors(bench, &wanted(&bulk)).await;
    let mut wakes = bench.wakes().await;
    assert_eq!(revive(bench, bulk.id, &cursors[..29]).await, BulkStep::Jobs(29));
    assert_eq!(other_than_bulk(&mut wakes).await, Wake::Ready(bench.shard()));
    let last = all(bench, &of_topic(TOPIC)).await.remove(0).job.key;
    for job in brought.iter().filter(|job| job.key != last) {
        let revived = bench.get(&job.key).await;
        assert!(revived.due >= before && revived.due <= now(), "{revived:?}");
        let as_each = Job {
            key: job.key.clone(),
            state: State::Ready,
            due: revived.due,
            reason: None,
            tags: tags(&job.key),
            ..one.clone()
        };
        assert_eq!(Job { created: one.created, ..revived }, as_each);
        assert_eq!((one.attempts, &one.last), (2, &Some(seen())));
    }
    assert_eq!(look(bench, bulk.id).await, Bulk { changed: 29, ..bulk });
    let leases = bench.take(100).await;
    assert_eq!(leases.len(), 29);
    assert!(leases.iter().all(|lease| (lease.attempt, lease.failures) == (3, 0)));
    assert_eq!(bench.stats().await.states.dead, 4);
}

pub(crate) async fn a_job_is_revived_once_by_a_bulk_revive_whatever_is_repeated(bench: &Workbench) {
    let job = bench.job_in(State::Dead, bench.job("a").body(noise(7, 9000).into())).await;
    let bulk = begin(bench, &of_topic(TOPIC)).await;
    let first = cursors(bench, &of_topic(TOPIC)).await;
    let twice = [first[0], first[0]];
    assert_eq!(revive(bench, bulk.id, &twice).await, BulkStep::Jobs(1));
    assert_eq!(revive(bench, bulk.id, &first).await, BulkStep::Jobs(0));
    until(first[0].died().plus(ms(2))).await;
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, bury()).await;
    assert_eq!(revive(bench, bulk.id, &first).await, BulkStep::Jobs(0));
    let again = cursors(bench, &of_topic(TOPIC)).await;
    assert!(again.len() == 1 && again != first);
    assert_eq!(revive(bench, bulk.id, &again).await, BulkStep::Jobs(0), "it was revived before");
    assert_eq!(look(bench, bulk.id).await.changed, 1);
    let other = begin(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, other.id, &first).await, BulkStep::Jobs(0), "it has died since");
    assert_eq!(revive(bench, other.id, &again).await, BulkStep::Jobs(1));
    assert_eq!(bench.get(&job.key).await.state, State::Ready);
}

pub(crate) async fn only_what_was_dead_when_it_began_is_wanted(bench: &Workbench) {
    let early = bench.job_in(State::Dead, bench.job("early")).await;
    let bulk = begin(bench, &of_topic(TOPIC)).await;
    until(bulk.started.plus(ms(2))).await;
    bench.job_in(State::Dead, bench.job("late")).await;
    let found = all(bench, &wanted(&bulk)).await;
    assert_eq!(found.into_iter().map(|dead| dead.job.key).collect::<Vec<_>>(), [early.key]);
    let time = |ms| Some(Timestamp::from_millis(ms));
    let filter =
        DeadFilter { reason: Some("gone".into()), after: time(5), before: time(9), ..of_topic(TOPIC) };
    let narrow = begin(bench, &filter).await;
    assert_eq!((&narrow.target, wanted(&narrow)), (&BulkTarget::Dead(filter.clone()), filter.clone()));
    assert_eq!(look(bench, narrow.id).await, narrow);
}

pub(crate) async fn a_bulk_revive_has_one_worker_at_a_time_and_goes_on_with_another(bench: &Workbench) {
    assert_eq!(take(bench, ONE, LONG).await, TakenBulk::Nothing);
    let bulk = begin(bench, &of_topic(TOPIC)).await;
    let (store, id) = (bench.store(), bulk.id);
    assert_eq!(take(bench, ONE, LONG).await, TakenBulk::Bulk(bulk.clone()));
    let TakenBulk::Later(wait) = take(bench, OTHER, LONG).await else { panic!("it is worked on") };
    assert!(wait <= LONG && wait > LONG / 2, "{wait:?}");
    assert!(!store.keep_bulk(id, OTHER, LONG).await.expect("keep"));
    let began = now();
    assert!(store.keep_bulk(id, ONE, ms(60)).await.expect("keep"));
    let taken = eventually(SOON, "another takes it", async || match take(bench, OTHER, LONG).await {
        TakenBulk::Bulk(taken) => Ok(taken),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(taken.await, bulk);
    assert!(now() >= began.plus(ms(60)));
    assert!(!store.keep_bulk(id, ONE, LONG).await.expect("keep"));
    // A released bulk revive is free at once, and that wakes carriers.
    let mut wakes = bench.wakes().await;
    assert!(store.keep_bulk(id, OTHER, ms(0)).await.expect("keep"));
    assert_eq!(next(&mut wakes).await, Wake::Bulk);
    assert_eq!(take(bench, ONE, LONG).await, TakenBulk::Bulk(bulk));
}

pub(crate) async fn a_stopped_bulk_revive_revives_nothing_more(bench: &Workbench) {
    bring(bench, &jobs(bench, TOPIC, "job", 10), "gone").await;
    let bulk = begin(bench, &of_topic(TOPIC)).await;
    take(bench, ONE, LONG).await;
    let cursors = cursors(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, bulk.id, &cursors[..4]).await, BulkStep::Jobs(4));
    let stopped = bench.store().stop_bulk(bulk.id).await.expect("stop").expect("it is known");
    assert_eq!((stopped.state, stopped.changed), (BulkState::Stopped, 4));
    assert!(stopped.ended.is_some_and(|ended| ended >= bulk.started));
    assert_eq!(revive(bench, bulk.id, &cursors[4..]).await, BulkStep::Over);
    assert!(!bench.store().keep_bulk(bulk.id, ONE, LONG).await.expect("keep"));
    bench.store().finish_bulk(bulk.id, ONE).await.expect("finish");
    assert_eq!(look(bench, bulk.id).await, stopped);
    assert_eq!(bench.store().stop_bulk(bulk.id).await.expect("stop"), Some(stopped));
    assert_eq!(take(bench, ONE, LONG).await, TakenBulk::Nothing);
    let unknown = BulkId::from(bench.token());
    assert_eq!(bench.store().stop_bulk(unknown).await.expect("stop"), None);
    assert_eq!(bench.store().bulk(unknown).await.expect("look"), None);
    let stats = bench.stats().await.states;
    assert_eq!((stats.ready, stats.dead), (4, 6));
}

pub(crate) async fn a_finished_bulk_revive_is_done_and_shows_its_counts(bench: &Workbench) {
    bring(bench, &jobs(bench, TOPIC, "job", 5), "gone").await;
    let bulk = begin(bench, &of_topic(TOPIC)).await;
    take(bench, ONE, LONG).await;
    let cursors = cursors(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, bulk.id, &cursors).await, BulkStep::Jobs(5));
    bench.store().finish_bulk(bulk.id, ONE).await.expect("finish");
    let done = look(bench, bulk.id).await;
    assert_eq!((done.state, done.changed), (BulkState::Done, 5));
    assert!(done.ended.is_some());
    bench.store().finish_bulk(bulk.id, ONE).await.expect("finish");
    assert_eq!(bench.store().stop_bulk(bulk.id).await.expect("stop"), Some(done.clone()));
    let other = begin(bench, &of_topic("other")).await;
    assert_eq!(bench.store().bulks().await.expect("list").len(), 2);
    assert!([done, other].iter().all(|bulk| bulk.rate == 50));
}

pub(crate) async fn a_repeated_call_begins_no_second_bulk_revive(bench: &Workbench) {
    let (token, mut wakes) = (bench.token(), bench.wakes().await);
    let first = bench.store().start_bulk(token, &BulkTarget::Dead(of_topic(TOPIC)), 50).await.expect("begin");
    assert_eq!(next(&mut wakes).await, Wake::Bulk);
    assert_eq!(
        bench.store().start_bulk(token, &BulkTarget::Dead(of_topic(TOPIC)), 50).await.expect("begin"),
        first
    );
    assert_eq!(bench.store().bulks().await.expect("list").len(), 1);
}

pub(crate) async fn the_number_of_running_bulk_revives_is_bounded(bench: &Workbench) {
    let mut ids = Vec::new();
    for _ in 0..MAX_BULKS {
        ids.push(begin(bench, &of_topic(TOPIC)).await.id);
    }
    let refused = bench.store().start_bulk(bench.token(), &BulkTarget::Dead(of_topic(TOPIC)), 50).await;
    assert_eq!(refused.expect("begin"), BulkStart::TooMany);
    bench.store().stop_bulk(ids[3]).await.expect("stop");
    begin(bench, &of_topic("other")).await;
    let all = bench.store().bulks().await.expect("list");
    assert_eq!(all.len(), MAX_BULKS + 1);
    assert!(all.is_sorted_by_key(|bulk| std::cmp::Reverse(bulk.started)));
    // A worker of its own takes each operation.
    let mut taken = Vec::new();
    for _ in 0..2 * MAX_BULKS {
        let TakenBulk::Bulk(bulk) = take(bench, ONE, LONG).await else { break };
        taken.push(bulk.id);
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), MAX_BULKS);
}

pub(crate) async fn a_revived_job_can_be_moved_as_any_other(bench: &Workbench) {
    let keys: Vec<JobKey> = jobs(bench, TOPIC, "job", 3).into_iter().map(|job| job.key).collect();
    bring(bench, &jobs(bench, TOPIC, "job", 3), "gone").await;
    let bulk = begin(bench, &of_topic(TOPIC)).await;
    let cursors = cursors(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, bulk.id, &cursors).await, BulkStep::Jobs(3));
    bench.cancel(&keys[0]).await;
    let mut left = bench.take(10).await;
    assert_eq!(left.len(), 2);
    bench.settle(left.remove(0), super::job_builders::retry(LONG)).await;
    bench.settle(left.remove(0), super::job_builders::release(ms(0))).await;
    let states = bench.stats().await.states;
    assert_eq!((states.cancelled, states.delayed, states.ready), (1, 1, 1));
}
