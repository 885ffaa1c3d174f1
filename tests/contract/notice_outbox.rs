//! Cases of the outbox for notices: each death, and each success that is asked for, leaves one entry with all that its
//! notice needs, until it is acknowledged.

mod successes;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Callback, Context, History, ImportJob, Job, JobKey, NewJob};
use ringback_core::outcome::{LastAttempt, Reason};
use ringback_core::store_types::{
    AckResult, EndedJob, Lease, Outbox, OutboxAck, SettleResult, SubmitResult, Wake,
};
use ringback_wire::notice_of;

pub(crate) use self::successes::*;
use super::job_builders::{BRIEF, With, bury, ms, retry};
use super::workbench::{SOON, Workbench, next, now, run_out, until};
use crate::prelude::*;

const ON_DEAD: &str = "https://up.example/dead?x=1";

fn with_on_dead(job: NewJob) -> NewJob {
    let mut job = job;
    job.delivery.on_dead = Some(Box::new(Callback::parse(ON_DEAD).expect("a URL")));
    job.delivery.context = Context::parse(vec![("tenant".to_owned(), "a7".to_owned())]).expect("a context");
    job
}

async fn outbox(bench: &Workbench) -> Outbox {
    bench.store().outbox(bench.shard(), 100).await.expect("outbox")
}

async fn dead_letters(bench: &Workbench) -> Vec<EndedJob> {
    let deaths = outbox(bench).await.pending.into_iter();
    deaths.map(|notice| notice.ended.expect("it can be read")).collect()
}

async fn acknowledge(bench: &Workbench, ack: &OutboxAck) -> AckResult {
    bench.store().acknowledge(bench.shard(), bench.epoch(), ack).await.expect("acknowledge")
}

async fn tell_all(bench: &Workbench) {
    let done = outbox(bench).await.pending.into_iter().map(|notice| notice.id).collect();
    assert_eq!(acknowledge(bench, &OutboxAck { done, later: Vec::new() }).await, AckResult::Held(None));
}

async fn dead(bench: &Workbench, job: NewJob) -> Job {
    bench.job_in(State::Dead, job).await
}

/// The lease of a job that dies as lost if this lease expires too. The job's timeout must be brief.
async fn last_lease(bench: &Workbench, key: &JobKey) -> Lease {
    for _ in 0..4 {
        bench.take_one(key).await;
        bench.recover_until(key, State::Ready).await;
    }
    bench.take_one(key).await
}

/// Asserts that an entry agrees with its job and has the `on_dead` URL and the context.
fn is_of(death: &EndedJob, job: &Job) {
    assert_eq!(death.job, *job);
    assert!(death.at >= job.created && death.at <= now(), "{death:?}");
    assert_eq!(death.url.as_ref().map(ToString::to_string).as_deref(), Some(ON_DEAD));
    assert_eq!(death.context.entries(), [("tenant".to_owned(), "a7".to_owned())]);
}

pub(crate) async fn a_dead_letter_has_an_entry_with_all_its_notice_needs(bench: &Workbench) {
    let job = dead(bench, with_on_dead(bench.job("a"))).await;
    let plain = dead(bench, bench.job("b")).await;
    let deaths = dead_letters(bench).await;
    assert_eq!(deaths.len(), 2);
    is_of(&deaths[0], &job);
    assert_eq!((&deaths[1].job, &deaths[1].url), (&plain, &None));
    assert_eq!(bench.stats().await.pending_notices, 2);
    tell_all(bench).await;
    assert_eq!((dead_letters(bench).await.len(), bench.stats().await.pending_notices), (0, 0));
}

pub(crate) async fn each_way_to_die_leaves_an_entry(bench: &Workbench) {
    let by_exchange = bench.reserved(with_on_dead(bench.job("exchange"))).await;
    let key = by_exchange.key.clone();
    bench.exchange(vec![(by_exchange, bury())], &bench.ask(1)).await;
    is_of(&dead_letters(bench).await[0], &bench.get(&key).await);

    let mut job = with_on_dead(bench.pull_job("bury"));
    job.delivery.callback = Callback::pull();
    let key = bench.accept(job).await.key;
    let pulled = bench.pull_one(&key, ms(60_000)).await;
    let outcome = Outcome::Bury {
        reason: Reason::Custom("unwanted".to_owned()),
        last: LastAttempt::by_consumer(Some("no paper".to_owned())),
    };
    assert_eq!(bench.settle_receipt(pulled.receipt, outcome).await, SettleResult::Applied);
    is_of(&dead_letters(bench).await[1], &bench.get(&key).await);

    let key = bench.accept(with_on_dead(bench.pull_job("expired"))).await.key;
    bench.pull_one(&key, BRIEF).await;
    let expired = bench.expired_leases(1).await.remove(0);
    let outcome = Outcome::Bury {
        reason: Reason::Custom("exhausted".to_owned()),
        last: LastAttempt::by_consumer(Some("lease ran out".to_owned())),
    };
    let settled = bench.store().settle_expired(bench.shard(), &[(expired.receipt, outcome)]).await;
    assert_eq!(settled.expect("settle"), [SettleResult::Applied]);
    is_of(&dead_letters(bench).await[2], &bench.get(&key).await);

    let key = bench.accept(with_on_dead(bench.job("lost")).timeout(BRIEF)).await.key;
    let lease = last_lease(bench, &key).await;
    run_out(&lease).await;
    let pass = bench.recover(10).await;
    assert_eq!((pass.other, pass.next_notice), (1, Some(Duration::ZERO)));
    let deaths = dead_letters(bench).await;
    is_of(&deaths[3], &bench.get(&key).await);
    assert_eq!((deaths.len(), deaths[3].job.reason.as_deref()), (4, Some("lost")));
}

pub(crate) async fn jobs_that_end_otherwise_or_are_imported_dead_leave_no_entry(bench: &Workbench) {
    for state in [State::Done, State::Cancelled, State::Delayed] {
        bench.job_in(state, with_on_dead(bench.job(state.into()))).await;
    }
    let lease = bench.reserved(with_on_dead(bench.job("retried"))).await;
    assert_eq!(bench.settle(lease, retry(ms(60_000))).await, SettleResult::Applied);
    let history = History { dead: Some("gone".to_owned()), ..History::default() };
    let job = ImportJob { job: with_on_dead(bench.job("imported")), history: Some(history) };
    bench.store().import(bench.shard(), &[job]).await.expect("import");
    let lease = bench.reserved(with_on_dead(bench.job("marked"))).await;
    bench.cancel(&lease.key).await;
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    assert_eq!(dead_letters(bench).await.len(), 0);
    assert_eq!(bench.promote(10).await.next_notice, None);
}

pub(crate) async fn the_later_life_of_a_job_does_not_change_its_entry(bench: &Workbench) {
    let jobs = ["purged", "cancelled", "revived", "again"].map(|name| with_on_dead(bench.job(name)));
    let mut as_it_was = Vec::new();
    for job in &jobs {
        as_it_was.push(dead(bench, job.clone()).await);
    }
    let [purged, cancelled, revived, again] = jobs;
    bench.store().purge(&purged.key).await.expect("purge");
    bench.cancel(&cancelled.key).await;
    bench.store().purge(&again.key).await.expect("purge");
    bench.accept(again.content(2)).await;
    let token = bench.token();
    bench.store().revive(&revived.key, token).await.expect("revive");
    let deaths = dead_letters(bench).await;
    assert_eq!(deaths.len(), 4);
    for job in &as_it_was {
        let death = deaths.iter().find(|death| death.job.key == job.key).expect("it is pending");
        is_of(death, job);
    }
}

pub(crate) async fn the_entry_of_a_large_job_has_no_body(bench: &Workbench) {
    let mut job = with_on_dead(bench.job("large")).body(noise(b'x', 200_000).into());
    job.delivery.headers =
        ringback_core::job::Headers::parse(vec![("x-long".to_owned(), "y".repeat(8000))]).expect("headers");
    let job = dead(bench, job).await;
    let mut pull = with_on_dead(bench.pull_job("pulled")).body(noise(b'z', 200_000).into());
    pull.delivery.callback = Callback::pull();
    let key = bench.accept(pull).await.key;
    let pulled = bench.pull_one(&key, ms(60_000)).await;
    bench
        .settle_receipt(
            pulled.receipt,
            Outcome::Bury {
                reason: Reason::Custom("unwanted".to_owned()),
                last: LastAttempt::by_consumer(None),
            },
        )
        .await;
    bench.store().purge(&job.key).await.expect("purge");
    let deaths = dead_letters(bench).await;
    is_of(&deaths[0], &job);
    is_of(&deaths[1], &bench.get(&key).await);
}

pub(crate) async fn a_dead_letter_that_is_acknowledged_twice_has_one_notice(bench: &Workbench) {
    dead(bench, with_on_dead(bench.job("a"))).await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        // The first time, the relay dies before it acknowledges the entry.
        let notice = notice_of(&dead_letters(bench).await[0], None).expect("it is wanted");
        let shard = bench.store().shard_of(&notice.key);
        answers.push(bench.store().submit(shard, &[notice]).await.expect("submit").remove(0).answer);
    }
    assert_eq!(answers, [SubmitResult::Created, SubmitResult::Repeated]);
    tell_all(bench).await;
    assert_eq!(bench.stats().await.states.ready, 1);
}

pub(crate) async fn a_job_that_dies_again_has_another_entry(bench: &Workbench) {
    let job = dead(bench, with_on_dead(bench.job("a"))).await;
    let token = bench.token();
    bench.store().revive(&job.key, token).await.expect("revive");
    let lease = bench.take_one(&job.key).await;
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    let deaths = dead_letters(bench).await;
    assert_eq!((deaths[0].job.attempts, deaths[1].job.attempts, deaths.len()), (1, 2, 2));
    let names = [0, 1].map(|n| notice_of(&deaths[n], None).expect("it is wanted").key);
    assert_ne!(names[0], names[1]);
}

pub(crate) async fn a_job_that_is_imported_again_and_dies_again_has_another_entry(bench: &Workbench) {
    let created = Some(Timestamp::from_millis(1_700_000_000_000));
    let history = History { created, attempts: 3, failures: 2, ..History::default() };
    for _ in 0..2 {
        let line = ImportJob { job: with_on_dead(bench.job("a")), history: Some(history.clone()) };
        bench.store().import(bench.shard(), &[line]).await.expect("import");
        let job = dead_by_hand(bench).await;
        bench.store().purge(&job.key).await.expect("purge");
    }
    let deaths = dead_letters(bench).await;
    assert_eq!((deaths[0].job.attempts, deaths[1].job.attempts, deaths.len()), (4, 4, 2));
    let names = [0, 1].map(|n| notice_of(&deaths[n], None).expect("it is wanted").key);
    assert_ne!(names[0], names[1]);
}

/// Reserves and buries the job `a`, and returns it.
async fn dead_by_hand(bench: &Workbench) -> Job {
    let lease = bench.take_one(&bench.job("a").key).await;
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    bench.get(&bench.job("a").key).await
}

pub(crate) async fn a_repeated_settle_leaves_one_entry(bench: &Workbench) {
    let key = bench.accept(with_on_dead(bench.job("a"))).await.key;
    for lease in bench.take_twice(&key).await {
        bench.settle(lease, bury()).await;
    }
    assert_eq!(dead_letters(bench).await.len(), 1);
}

pub(crate) async fn deaths_are_read_in_their_order_and_no_more_than_the_limit(bench: &Workbench) {
    let mut names = Vec::new();
    for n in 0..25 {
        names.push(dead(bench, with_on_dead(bench.job(&format!("job-{n}")))).await.key);
        until(now().plus(ms(2))).await;
    }
    let keys: Vec<_> = dead_letters(bench).await.into_iter().map(|death| death.job.key).collect();
    assert_eq!(keys, names);
    let some = bench.store().outbox(bench.shard(), 12).await.expect("outbox").pending;
    let keys: Vec<_> = some.iter().map(|one| one.ended.as_ref().expect("a death").job.key.clone()).collect();
    assert_eq!(keys, names[..12]);
    let done = some.into_iter().map(|one| one.id).collect();
    let left = acknowledge(bench, &OutboxAck { done, later: Vec::new() }).await;
    assert_eq!(left, AckResult::Held(Some(Duration::ZERO)));
    assert_eq!(dead_letters(bench).await.len(), 13);
}

pub(crate) async fn many_deaths_of_one_call_all_leave_entries(bench: &Workbench) {
    let jobs: Vec<_> = (0..250).map(|n| with_on_dead(bench.job(&format!("job-{n}")))).collect();
    bench.submit(&jobs).await;
    let leases = bench.take(250).await;
    bench.settle_all(leases.into_iter().map(|lease| (lease, bury())).collect()).await;
    let mut seen = 0;
    loop {
        let found: Vec<_> = outbox(bench).await.pending.into_iter().map(|notice| notice.id).collect();
        seen += found.len();
        if acknowledge(bench, &OutboxAck { done: found, later: Vec::new() }).await == AckResult::Held(None) {
            break;
        }
    }
    assert_eq!(seen, 250);
}

pub(crate) async fn a_postponed_entry_blocks_no_other_and_comes_again(bench: &Workbench) {
    let (first, second) =
        (dead(bench, with_on_dead(bench.job("a"))).await, dead(bench, with_on_dead(bench.job("b"))).await);
    let pending = outbox(bench).await.pending;
    let later: Vec<_> = pending
        .into_iter()
        .filter(|notice| notice.ended.as_ref().is_some_and(|death| death.job.key == first.key))
        .map(|notice| (notice.id, ms(2_000)))
        .collect();
    assert_eq!(
        acknowledge(bench, &OutboxAck { done: Vec::new(), later }).await,
        AckResult::Held(Some(Duration::ZERO)),
        "the other one is due now"
    );
    let left = dead_letters(bench).await;
    assert_eq!((left.len(), &left[0].job.key), (1, &second.key));
    let done = outbox(bench).await.pending.into_iter().map(|notice| notice.id).collect();
    let AckResult::Held(Some(wait)) = acknowledge(bench, &OutboxAck { done, later: Vec::new() }).await else {
        panic!("one is deferred")
    };
    assert!(wait > Duration::ZERO && wait <= ms(2_002), "{wait:?}");
    let pass = bench.promote(10).await;
    assert!(pass.next_notice.is_some_and(|wait| wait <= ms(2_002)), "{pass:?}");
    eventually(SOON, "it is due again", async || dead_letters(bench).await.pop().ok_or("not yet")).await;
    is_of(&dead_letters(bench).await[0], &first);
    tell_all(bench).await;
}

pub(crate) async fn a_fenced_acknowledgement_changes_nothing(bench: &Workbench) {
    dead(bench, with_on_dead(bench.job("a"))).await;
    let place = outbox(bench).await.pending.remove(0).id;
    let (store, shard) = (bench.store(), bench.shard());
    let epoch = store.take_shard(shard, "another").await.expect("claim");
    let ack = OutboxAck { done: vec![place], later: Vec::new() };
    assert_eq!(acknowledge(bench, &ack).await, AckResult::Fenced);
    assert_eq!(dead_letters(bench).await.len(), 1);
    assert_eq!(store.acknowledge(shard, &epoch, &ack).await.expect("acknowledge"), AckResult::Held(None));
    assert_eq!(
        store.acknowledge(shard, &epoch, &ack).await.expect("acknowledge"),
        AckResult::Held(None),
        "again"
    );
}

pub(crate) async fn a_dead_letter_wakes_the_carrier_and_a_pass_returns_when_its_notice_is_due(
    bench: &Workbench,
) {
    let lease = bench.reserved(with_on_dead(bench.job("a"))).await;
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    // In a cluster, the wake-up of the lease may come late.
    while next(&mut wakes).await != Wake::Due(bench.shard(), Duration::ZERO) {}
    assert_eq!(bench.promote(10).await.next_notice, Some(Duration::ZERO));
    assert_eq!(bench.evict(10).await.next_notice, Some(Duration::ZERO));
    assert_eq!(bench.recover(10).await.next_notice, Some(Duration::ZERO));
    tell_all(bench).await;
    assert_eq!(bench.promote(10).await.next_notice, None);
}

pub(crate) async fn a_job_done_after_its_death_has_a_notice_of_that_death(bench: &Workbench) {
    let key = bench.accept(with_on_dead(bench.job("a")).timeout(BRIEF)).await.key;
    let last = last_lease(bench, &key).await;
    bench.recover_until(&key, State::Dead).await;
    let job = bench.get(&key).await;
    assert_eq!(bench.settle(last, Outcome::Complete).await, SettleResult::Late);
    is_of(&dead_letters(bench).await[0], &job);
}
