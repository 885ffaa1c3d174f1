//! Cases of ordered topics: jobs of one key are delivered one at a time, in the order of their due times.

use ringback_core::job::{Due, IfExists, ImportJob, JobId, JobKey, NewJob, OrderKey};
use ringback_core::store_types::{
    Lease, OrderWait, ScheduleChange, ScheduleChanged, ScheduleRow, SubmitResult,
};
use ringback_core::topic_policy::OrderOnDead;

use super::dead_letters::of_topic;
use super::job_builders::{BRIEF, LONG, TOPIC, With, bury, ms, release, retry, topic};
use super::schedules::{self, schedule_at};
use super::workbench::{SOON, Workbench, ago, now, until};
use crate::prelude::*;

async fn order(bench: &Workbench, on_dead: OrderOnDead) {
    bench.store().order_topic(&topic(TOPIC), Some(on_dead)).await.expect("order");
}

/// A key whose jobs are in the bench's shard.
fn key(bench: &Workbench, name: &str) -> OrderKey {
    bench.key(TOPIC, name).id.as_str().parse().expect("a key")
}

/// A job of a key that is due now.
fn job(bench: &Workbench, key: &OrderKey, name: &str) -> NewJob {
    NewJob { key: key_of(key, name), ..bench.job("any") }
}

fn key_of(key: &OrderKey, name: &str) -> JobKey {
    JobKey { topic: topic(TOPIC), id: key.id(name).expect("an id") }
}

/// The ends of the ids of leases.
fn names(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.key.id.as_str().split_once('~').map_or("", |(_, name)| name)).collect()
}

/// Reserves what may be delivered, which must be these jobs, in any order.
async fn take(bench: &Workbench, expected: &[&str]) -> Vec<Lease> {
    let mut leases = bench.take(100).await;
    leases.sort_by(|a, b| a.key.id.cmp(&b.key.id));
    assert_eq!(names(&leases), expected);
    leases
}

async fn take_and_finish(bench: &Workbench, name: &str) {
    let lease = take(bench, &[name]).await.remove(0);
    bench.settle(lease, Outcome::Complete).await;
}

pub(crate) async fn jobs_of_a_key_go_one_at_a_time_and_those_of_others_beside_them(bench: &Workbench) {
    order(bench, OrderOnDead::Next).await;
    let (a, b) = (key(bench, "a"), key(bench, "b"));
    let jobs = [
        job(bench, &a, "1"),
        job(bench, &a, "2").to("http://other.example"),
        job(bench, &b, "1"),
        job(bench, &a, "3"),
        bench.job_of("another", "c"),
    ];
    bench.submit(&jobs).await;
    let mut leases = bench.take(100).await;
    leases.sort_by_key(|lease| lease.key.to_string());
    let c = leases.remove(0);
    assert_eq!(names(&leases), ["1", "1"]);
    bench.settle(c, Outcome::Complete).await;
    take(bench, &[]).await;
    for lease in leases {
        bench.settle(lease, Outcome::Complete).await;
    }
    take_and_finish(bench, "2").await;
    take_and_finish(bench, "3").await;
    take(bench, &[]).await;
    assert_eq!(bench.stats().await.states.done, 5);
}

pub(crate) async fn jobs_of_a_key_that_are_due_at_once_keep_the_order_of_their_submits(bench: &Workbench) {
    order(bench, OrderOnDead::Next).await;
    let a = key(bench, "a");
    let at = now().plus(ms(80));
    let origins = ["http://one.example", "http://two.example"];
    let later: Vec<_> =
        (0..6).map(|n| job(bench, &a, &format!("later-{n}")).at(at).to(origins[n % 2])).collect();
    bench.submit(&later).await;
    let at_once: Vec<_> = (0..6).map(|n| job(bench, &a, &n.to_string()).to(origins[n / 3])).collect();
    for half in at_once.chunks(3) {
        bench.submit(half).await;
    }
    for n in 0..3 {
        take_and_finish(bench, &n.to_string()).await;
    }
    bench.promote_until(6).await;
    for n in 3..6 {
        take_and_finish(bench, &n.to_string()).await;
    }
    for n in 0..6 {
        take_and_finish(bench, &format!("later-{n}")).await;
    }
}

pub(crate) async fn an_attempted_job_stays_first_until_it_has_ended(bench: &Workbench) {
    order(bench, OrderOnDead::Next).await;
    let a = key(bench, "a");
    bench.submit(&[job(bench, &a, "1").timeout(BRIEF), job(bench, &a, "2")]).await;
    let lease = take(bench, &["1"]).await.remove(0);
    bench.settle(lease, retry(LONG)).await;
    bench.accept(job(bench, &a, "3")).await;
    take(bench, &[]).await;
    bench.store().run(&key_of(&a, "1"), bench.token()).await.expect("run");
    let lease = take(bench, &["1"]).await.remove(0);
    bench.settle(lease, release(ms(1))).await;
    bench.promote_until(1).await;
    take(bench, &["1"]).await;
    bench.recover_until(&key_of(&a, "1"), State::Ready).await;
    for name in ["1", "2", "3"] {
        take_and_finish(bench, name).await;
    }
}

pub(crate) async fn a_job_goes_after_those_that_were_due_before_it_came(bench: &Workbench) {
    order(bench, OrderOnDead::Next).await;
    let a = key(bench, "a");
    let due = now().plus(ms(30));
    bench.accept(job(bench, &a, "1").at(due)).await;
    until(due).await;
    bench.accept(job(bench, &a, "2")).await;
    bench.promote(500).await;
    take_and_finish(bench, "1").await;
    take_and_finish(bench, "2").await;
}

pub(crate) async fn a_job_that_is_not_due_blocks_nobody(bench: &Workbench) {
    order(bench, OrderOnDead::Hold).await;
    let a = key(bench, "a");
    bench
        .submit(&[job(bench, &a, "1").after(LONG), job(bench, &a, "2").after(2 * LONG), job(bench, &a, "3")])
        .await;
    take_and_finish(bench, "3").await;
    bench.store().run(&key_of(&a, "2"), bench.token()).await.expect("run");
    take_and_finish(bench, "2").await;
    take(bench, &[]).await;
}

pub(crate) async fn the_next_job_goes_when_the_first_dies_is_cancelled_or_replaced(bench: &Workbench) {
    order(bench, OrderOnDead::Next).await;
    let a = key(bench, "a");
    bench.submit(&["1", "2", "3", "4", "5", "6"].map(|name| job(bench, &a, name))).await;
    let lease = take(bench, &["1"]).await.remove(0);
    bench.settle(lease, bury()).await;
    bench.cancel(&key_of(&a, "2")).await;
    bench.cancel(&key_of(&a, "4")).await;
    let replaced = bench.replacing(job(bench, &a, "3").content(2));
    assert_eq!(bench.submit(&[replaced]).await[0].answer, SubmitResult::Replaced);
    let lease = take(bench, &["5"]).await.remove(0);
    bench.cancel(&key_of(&a, "5")).await;
    take(bench, &[]).await;
    bench.settle(lease, retry(ms(1))).await;
    take_and_finish(bench, "6").await;
    bench.store().revive(&key_of(&a, "1"), bench.token()).await.expect("revive");
    take_and_finish(bench, "3").await;
    take_and_finish(bench, "1").await;
    take(bench, &[]).await;
}

pub(crate) async fn a_dead_job_holds_its_key_until_it_is_revived_purged_or_the_key_is_unblocked(
    bench: &Workbench,
) {
    order(bench, OrderOnDead::Hold).await;
    let keys = ["revived", "purged", "unblocked", "cancelled"].map(|name| key(bench, name));
    for key in &keys {
        bench.submit(&[job(bench, key, "1"), job(bench, key, "2")]).await;
    }
    for lease in take(bench, &["1"; 4]).await {
        bench.settle(lease, bury()).await;
    }
    take(bench, &[]).await;
    let [revived, purged, unblocked, cancelled] = &keys;
    bench.store().revive(&key_of(revived, "1"), bench.token()).await.expect("revive");
    take_and_finish(bench, "1").await;
    take_and_finish(bench, "2").await;
    bench.store().purge(&key_of(purged, "1")).await.expect("purge");
    take_and_finish(bench, "2").await;
    let unblock = async || bench.store().unblock(&topic(TOPIC), unblocked).await.expect("unblock");
    assert!(unblock().await);
    assert!(!unblock().await, "it is held no more");
    take_and_finish(bench, "2").await;
    bench.cancel(&key_of(cancelled, "1")).await;
    take_and_finish(bench, "2").await;
    assert_eq!(bench.stats().await.states.dead, 1, "the one that was passed over stays");
}

pub(crate) async fn what_a_job_of_an_ordered_topic_waits_for_is_known(bench: &Workbench) {
    order(bench, OrderOnDead::Hold).await;
    let a = key(bench, "a");
    bench.submit(&["1", "2", "3"].map(|name| job(bench, &a, name))).await;
    let waits = async |name: &str| bench.store().waits(&key_of(&a, name)).await.expect("waits").order;
    let head: JobId = a.id("1").expect("an id");
    let behind = |before, is_held| Some(OrderWait { before, head: head.clone(), is_held });
    assert_eq!(waits("1").await, None);
    assert_eq!(waits("2").await, behind(1, false));
    assert_eq!(waits("3").await, behind(2, false));
    let lease = take(bench, &["1"]).await.remove(0);
    bench.settle(lease, bury()).await;
    assert_eq!(waits("3").await, behind(2, true));
    assert_eq!(waits("1").await, None);
}

pub(crate) async fn jobs_that_wait_go_when_their_topic_is_no_longer_ordered(bench: &Workbench) {
    let since = async || bench.store().topic_order(&topic(TOPIC)).await.expect("order");
    assert_eq!(since().await, None);
    order(bench, OrderOnDead::Hold).await;
    let found = since().await.expect("it is ordered");
    assert_eq!(found.on_dead, OrderOnDead::Hold);
    assert!(found.since.is_some());
    let a = key(bench, "a");
    bench.submit(&["1", "2", "3"].map(|name| job(bench, &a, name))).await;
    take(bench, &["1"]).await;
    bench.store().order_topic(&topic(TOPIC), None).await.expect("no order");
    assert_eq!(since().await, None);
    take(bench, &["2", "3"]).await;
}

pub(crate) async fn an_order_holds_for_jobs_that_wait_already(bench: &Workbench) {
    let (a, b) = (key(bench, "a"), key(bench, "b"));
    // Jobs of one millisecond that came before the order have none among themselves.
    for (key, name) in [(&a, "1"), (&a, "2"), (&b, "1"), (&b, "2"), (&b, "3")] {
        bench.accept(job(bench, key, name)).await;
        until(now().plus(ms(2))).await;
    }
    let mut leases = bench.take(3).await;
    let names_before = names(&leases).join(" ");
    let retried = leases.remove(0);
    let retried_key = retried.key.clone();
    bench.settle(retried, retry(LONG)).await;
    order(bench, OrderOnDead::Next).await;
    // Of `a`, job 1 waits for its retry and job 2 is being delivered. Of `b`, job 1 is being delivered.
    take(bench, &[]).await;
    for lease in leases {
        bench.settle(lease, Outcome::Complete).await;
    }
    let lease = take(bench, &["2"]).await.remove(0);
    assert!(b.is_of(&lease.key.id), "{names_before}");
    bench.settle(lease, Outcome::Complete).await;
    take_and_finish(bench, "3").await;
    bench.store().run(&retried_key, bench.token()).await.expect("run");
    take_and_finish(bench, "1").await;
}

pub(crate) async fn consumers_get_the_jobs_of_a_key_one_at_a_time_too(bench: &Workbench) {
    order(bench, OrderOnDead::Next).await;
    let a = key(bench, "a");
    let pull = |name: &str| NewJob { key: key_of(&a, name), ..bench.pull_job("any") };
    bench.submit(&[pull("1"), pull("2"), job(bench, &a, "3")]).await;
    let pulled = bench.pull(10, LONG).await.jobs;
    assert_eq!(pulled.len(), 1);
    assert_eq!(pulled[0].key, key_of(&a, "1"));
    assert!(bench.pull(10, LONG).await.jobs.is_empty());
    bench.settle_receipt(pulled[0].receipt, Outcome::Complete).await;
    take(bench, &[]).await;
    let second = bench.pull_one(&key_of(&a, "2"), LONG).await;
    bench.settle_receipt(second.receipt, Outcome::Complete).await;
    take_and_finish(bench, "3").await;
}

pub(crate) async fn bulk_changes_and_imports_keep_the_order(bench: &Workbench) {
    order(bench, OrderOnDead::Hold).await;
    let a = key(bench, "a");
    let import =
        |name: &str| ImportJob { job: NewJob { due: Due::At(now()), ..job(bench, &a, name) }, history: None };
    let jobs = ["1", "2", "3"].map(import);
    bench.store().import(bench.shard(), &jobs).await.expect("import");
    let lease = take(bench, &["1"]).await.remove(0);
    bench.settle(lease, bury()).await;
    let dead = bench.store().dead_cursors(bench.shard(), &of_topic(TOPIC), None, 10).await.expect("dead");
    assert_eq!(bench.store().purge_many(bench.shard(), &dead.items).await.expect("purge"), 1);
    take_and_finish(bench, "2").await;
    let mut postponed = job(bench, &a, "3").after(LONG);
    postponed.if_exists = IfExists::Postpone { token: bench.token(), max_delay: None };
    assert_eq!(bench.submit(&[postponed]).await[0].answer, SubmitResult::Postponed);
    bench.accept(job(bench, &a, "4")).await;
    take_and_finish(bench, "4").await;
    take(bench, &[]).await;
}

pub(crate) async fn firings_of_a_schedule_do_not_wait_for_each_other(bench: &Workbench) {
    order(bench, OrderOnDead::Hold).await;
    let time = ago(ms(5000));
    let row = schedule_at(bench, TOPIC, "daily", Some(time));
    schedules::add(bench, &row).await;
    let state = row.state().expect("readable");
    let firing = |n| state.schedule.firing(&row.key.id, time.plus(n * Duration::from_secs(1)), None, None);
    let after = ScheduleRow { version: row.version + 1, next: None, ..row.clone() };
    let change = ScheduleChange {
        expected: Some(row.version),
        row: after,
        jobs: vec![firing(0), firing(1), firing(2)],
    };
    let fired = bench.store().fire(bench.shard(), &[change]).await.expect("fire");
    assert_eq!(fired, [ScheduleChanged::Changed]);
    let mut leases = bench.take(100).await;
    assert_eq!(leases.len(), 3);
    bench.settle(leases.remove(0), bury()).await;
    bench.settle(leases.remove(0), Outcome::Complete).await;
    // A job of the key that their ids begin with goes beside them.
    let key: OrderKey = row.key.id.as_str().parse().expect("a key");
    bench.accept(job(bench, &key, "own")).await;
    take_and_finish(bench, "own").await;
}

pub(crate) async fn a_dead_job_is_kept_while_it_holds_its_key(bench: &Workbench) {
    let bench = &bench.with(|options| options.keep_dead = ms(0)).await;
    order(bench, OrderOnDead::Hold).await;
    let a = key(bench, "a");
    bench.submit(&[job(bench, &a, "1"), job(bench, &a, "2"), bench.job_of("another", "b")]).await;
    for lease in bench.take(100).await {
        bench.settle(lease, bury()).await;
    }
    let evict_until = async |left: u64| {
        eventually(SOON, "what holds no key is evicted", async || {
            bench.evict(1).await;
            let dead = bench.stats().await.states.dead;
            if dead > left { Err(dead) } else { Ok(()) }
        })
        .await;
    };
    evict_until(1).await;
    assert_eq!(bench.evict(1).await.moved, 0);
    assert_eq!(bench.state(&key_of(&a, "1")).await, Some(State::Dead));
    assert!(bench.store().unblock(&topic(TOPIC), &a).await.expect("unblock"));
    evict_until(0).await;
    take_and_finish(bench, "2").await;
    bench.check().await;
}
