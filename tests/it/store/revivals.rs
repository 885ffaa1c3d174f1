//! Revivals: many dead jobs made ready again by one call, and who works on that.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::contract::{
    DeadCursor, DeadFilter, MAX_REDRIVES, Redrive, RedriveId, RedriveStart, RedriveState, Redriven,
    TakenRedrive, Wake, WorkerId,
};
use ringback_core::job::{Job, JobKey};
use ringback_core::state::State;
use ringback_store::Wakes;
use ringback_testkit::eventually;

use super::bench::{Bench, SOON, next, now, until};
use super::dead::{all, bring, jobs, of_topic, places};
use super::jobs::{LONG, TOPIC, With, bury, ms, seen};

const ONE: WorkerId = WorkerId([1; 8]);
const OTHER: WorkerId = WorkerId([2; 8]);

async fn begin(bench: &Bench, filter: &DeadFilter) -> Redrive {
    match bench.store().start_redrive(bench.token(), filter, 50).await.expect("begin") {
        RedriveStart::Redrive(revival) => revival,
        RedriveStart::TooMany => panic!("too many go on"),
    }
}

async fn revive(bench: &Bench, id: RedriveId, places: &[DeadCursor]) -> Redriven {
    bench.store().revive_many(bench.shard(), id, places).await.expect("revive")
}

async fn look(bench: &Bench, id: RedriveId) -> Redrive {
    bench.store().redrive(id).await.expect("look").expect("it is known")
}

async fn take(bench: &Bench, holder: WorkerId, ttl: Duration) -> TakenRedrive {
    bench.store().take_redrive(holder, ttl).await.expect("take")
}

/// The next wake-up but for those of a beginning, which a cluster may tell later.
async fn other_than_revival(wakes: &mut Wakes) -> Wake {
    loop {
        match next(wakes).await {
            Wake::Redrive => {}
            other => return other,
        }
    }
}

pub(super) async fn many_dead_jobs_are_revived_as_each_would_be(bench: &Bench) {
    let brought = jobs(bench, TOPIC, "job", 30);
    bring(bench, &brought, "gone").await;
    let others = jobs(bench, "other", "job", 3);
    bring(bench, &others, "gone").await;
    let one = bench.get(&brought[0].key).await;
    let (before, revival) = (now(), begin(bench, &of_topic(TOPIC)).await);
    let places = places(bench, &revival.wanted()).await;
    let mut wakes = bench.wakes().await;
    assert_eq!(revive(bench, revival.id, &places[..29]).await, Redriven::Jobs(29));
    assert_eq!(other_than_revival(&mut wakes).await, Wake::Ready(bench.shard()));
    let last = all(bench, &of_topic(TOPIC)).await.remove(0).job.key;
    for job in brought.iter().filter(|job| job.key != last) {
        let revived = bench.get(&job.key).await;
        assert!(revived.due >= before && revived.due <= now(), "{revived:?}");
        let as_each =
            Job { key: job.key.clone(), state: State::Ready, due: revived.due, reason: None, ..one.clone() };
        assert_eq!(Job { created: one.created, ..revived }, as_each);
        assert_eq!((one.attempts, &one.last), (2, &Some(seen())));
    }
    assert_eq!(look(bench, revival.id).await, Redrive { revived: 29, ..revival });
    let leases = bench.take(100).await;
    assert_eq!(leases.len(), 29);
    assert!(leases.iter().all(|lease| (lease.attempt, lease.failures) == (3, 0)));
    assert_eq!(bench.stats().await.states.dead, 4);
}

pub(super) async fn a_job_is_revived_once_by_one_revival_whatever_is_repeated(bench: &Bench) {
    let job = bench.job_in(State::Dead, bench.job("a").body(vec![7; 9000])).await;
    let revival = begin(bench, &of_topic(TOPIC)).await;
    let first = places(bench, &of_topic(TOPIC)).await;
    let twice = [first[0], first[0]];
    assert_eq!(revive(bench, revival.id, &twice).await, Redriven::Jobs(1));
    assert_eq!(revive(bench, revival.id, &first).await, Redriven::Jobs(0));
    until(first[0].died().plus(ms(2))).await;
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, bury()).await;
    assert_eq!(revive(bench, revival.id, &first).await, Redriven::Jobs(0));
    let again = places(bench, &of_topic(TOPIC)).await;
    assert!(again.len() == 1 && again != first);
    assert_eq!(revive(bench, revival.id, &again).await, Redriven::Jobs(0), "it was revived before");
    assert_eq!(look(bench, revival.id).await.revived, 1);
    let other = begin(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, other.id, &first).await, Redriven::Jobs(0), "it has died since");
    assert_eq!(revive(bench, other.id, &again).await, Redriven::Jobs(1));
    assert_eq!(bench.get(&job.key).await.state, State::Ready);
}

pub(super) async fn only_what_was_dead_when_it_began_is_wanted(bench: &Bench) {
    let early = bench.job_in(State::Dead, bench.job("early")).await;
    let revival = begin(bench, &of_topic(TOPIC)).await;
    until(revival.started.plus(ms(2))).await;
    bench.job_in(State::Dead, bench.job("late")).await;
    let wanted = all(bench, &revival.wanted()).await;
    assert_eq!(wanted.into_iter().map(|dead| dead.job.key).collect::<Vec<_>>(), [early.key]);
    let time = |ms| Some(Timestamp::from_millis(ms));
    let filter =
        DeadFilter { reason: Some("gone".into()), after: time(5), before: time(9), ..of_topic(TOPIC) };
    let narrow = begin(bench, &filter).await;
    assert_eq!((&narrow.filter, narrow.wanted()), (&filter, filter.clone()));
    assert_eq!(look(bench, narrow.id).await, narrow);
}

pub(super) async fn a_revival_has_one_holder_at_a_time_and_goes_on_with_another(bench: &Bench) {
    assert_eq!(take(bench, ONE, LONG).await, TakenRedrive::Nothing);
    let revival = begin(bench, &of_topic(TOPIC)).await;
    let (store, id) = (bench.store(), revival.id);
    assert_eq!(take(bench, ONE, LONG).await, TakenRedrive::Redrive(revival.clone()));
    let TakenRedrive::Later(wait) = take(bench, OTHER, LONG).await else { panic!("it is worked on") };
    assert!(wait <= LONG && wait > LONG / 2, "{wait:?}");
    assert!(!store.keep_redrive(id, OTHER, LONG).await.expect("keep"));
    let began = now();
    assert!(store.keep_redrive(id, ONE, ms(60)).await.expect("keep"));
    let taken = eventually(SOON, "another takes it", async || match take(bench, OTHER, LONG).await {
        TakenRedrive::Redrive(taken) => Ok(taken),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(taken.await, revival);
    assert!(now() >= began.plus(ms(60)));
    assert!(!store.keep_redrive(id, ONE, LONG).await.expect("keep"));
    // Given back it is free at once, and that is told.
    let mut wakes = bench.wakes().await;
    assert!(store.keep_redrive(id, OTHER, ms(0)).await.expect("keep"));
    assert_eq!(next(&mut wakes).await, Wake::Redrive);
    assert_eq!(take(bench, ONE, LONG).await, TakenRedrive::Redrive(revival));
}

pub(super) async fn a_stopped_revival_revives_nothing_more(bench: &Bench) {
    bring(bench, &jobs(bench, TOPIC, "job", 10), "gone").await;
    let revival = begin(bench, &of_topic(TOPIC)).await;
    take(bench, ONE, LONG).await;
    let places = places(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, revival.id, &places[..4]).await, Redriven::Jobs(4));
    let stopped = bench.store().stop_redrive(revival.id).await.expect("stop").expect("it is known");
    assert_eq!((stopped.state, stopped.revived), (RedriveState::Stopped, 4));
    assert!(stopped.ended.is_some_and(|ended| ended >= revival.started));
    assert_eq!(revive(bench, revival.id, &places[4..]).await, Redriven::Over);
    assert!(!bench.store().keep_redrive(revival.id, ONE, LONG).await.expect("keep"));
    bench.store().finish_redrive(revival.id, ONE).await.expect("finish");
    assert_eq!(look(bench, revival.id).await, stopped);
    assert_eq!(bench.store().stop_redrive(revival.id).await.expect("stop"), Some(stopped));
    assert_eq!(take(bench, ONE, LONG).await, TakenRedrive::Nothing);
    let unknown = RedriveId::from(bench.token());
    assert_eq!(bench.store().stop_redrive(unknown).await.expect("stop"), None);
    assert_eq!(bench.store().redrive(unknown).await.expect("look"), None);
    let stats = bench.stats().await.states;
    assert_eq!((stats.ready, stats.dead), (4, 6));
}

pub(super) async fn a_finished_revival_is_done_and_tells_what_it_has_done(bench: &Bench) {
    bring(bench, &jobs(bench, TOPIC, "job", 5), "gone").await;
    let revival = begin(bench, &of_topic(TOPIC)).await;
    take(bench, ONE, LONG).await;
    let places = places(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, revival.id, &places).await, Redriven::Jobs(5));
    bench.store().finish_redrive(revival.id, ONE).await.expect("finish");
    let done = look(bench, revival.id).await;
    assert_eq!((done.state, done.revived), (RedriveState::Done, 5));
    assert!(done.ended.is_some());
    bench.store().finish_redrive(revival.id, ONE).await.expect("finish");
    assert_eq!(bench.store().stop_redrive(revival.id).await.expect("stop"), Some(done.clone()));
    let other = begin(bench, &of_topic("other")).await;
    assert_eq!(bench.store().redrives().await.expect("list").len(), 2);
    assert!([done, other].iter().all(|revival| revival.rate == 50));
}

pub(super) async fn a_repeated_call_begins_no_second_revival(bench: &Bench) {
    let (token, mut wakes) = (bench.token(), bench.wakes().await);
    let first = bench.store().start_redrive(token, &of_topic(TOPIC), 50).await.expect("begin");
    assert_eq!(next(&mut wakes).await, Wake::Redrive);
    assert_eq!(bench.store().start_redrive(token, &of_topic(TOPIC), 50).await.expect("begin"), first);
    assert_eq!(bench.store().redrives().await.expect("list").len(), 1);
}

pub(super) async fn no_more_than_so_many_revivals_go_on(bench: &Bench) {
    let mut ids = Vec::new();
    for _ in 0..MAX_REDRIVES {
        ids.push(begin(bench, &of_topic(TOPIC)).await.id);
    }
    let refused = bench.store().start_redrive(bench.token(), &of_topic(TOPIC), 50).await;
    assert_eq!(refused.expect("begin"), RedriveStart::TooMany);
    bench.store().stop_redrive(ids[3]).await.expect("stop");
    begin(bench, &of_topic("other")).await;
    let all = bench.store().redrives().await.expect("list");
    assert_eq!(all.len(), MAX_REDRIVES + 1);
    assert!(all.is_sorted_by_key(|revival| std::cmp::Reverse(revival.started)));
    // Each is worked on by somebody of its own.
    let mut taken = Vec::new();
    for _ in 0..2 * MAX_REDRIVES {
        let TakenRedrive::Redrive(revival) = take(bench, ONE, LONG).await else { break };
        taken.push(revival.id);
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), MAX_REDRIVES);
}

pub(super) async fn a_revived_job_can_be_moved_as_any_other(bench: &Bench) {
    let keys: Vec<JobKey> = jobs(bench, TOPIC, "job", 3).into_iter().map(|job| job.key).collect();
    bring(bench, &jobs(bench, TOPIC, "job", 3), "gone").await;
    let revival = begin(bench, &of_topic(TOPIC)).await;
    let places = places(bench, &of_topic(TOPIC)).await;
    assert_eq!(revive(bench, revival.id, &places).await, Redriven::Jobs(3));
    bench.cancel(&keys[0]).await;
    let mut left = bench.take(10).await;
    assert_eq!(left.len(), 2);
    bench.settle(left.remove(0), super::jobs::retry(LONG)).await;
    bench.settle(left.remove(0), super::jobs::release(ms(0))).await;
    let states = bench.stats().await.states;
    assert_eq!((states.cancelled, states.delayed, states.ready), (1, 1, 1));
}
