//! Cases of dead jobs: pages of a topic in order of death, while jobs die, are revived and purged; and purges of many.

use std::collections::BTreeSet;

use ringback_core::clock::Timestamp;
use ringback_core::job::{History, ImportJob, Job, JobKey, NewJob};
use ringback_core::outcome::{Outcome, Reason};
use ringback_core::state::State;
use ringback_core::store_types::{Bulk, BulkTarget, DeadCursor, DeadFilter, DeadJob, DeadPage, MoveResult};

use super::job_builders::{TOPIC, With, bury, ms, new_job, seen};
use super::workbench::{Workbench, now, until};
use crate::sample_jobs::noise;

/// A limit of pages that no case reaches, so that reading always ends.
const MAX_PAGES: usize = 500;

/// The filter of dead jobs of a bulk revive. Panics for other bulk operations.
pub(crate) fn wanted(bulk: &Bulk) -> DeadFilter {
    match bulk.wanted() {
        BulkTarget::Dead(filter) => filter,
        other @ BulkTarget::Jobs(..) => panic!("{other:?}"),
    }
}

pub(crate) fn of_topic(topic: &str) -> DeadFilter {
    DeadFilter { topic: topic.parse().expect("a topic"), reason: None, after: None, before: None }
}

async fn pages(bench: &Workbench, filter: &DeadFilter, limit: usize) -> Vec<DeadPage<DeadJob>> {
    let mut pages = vec![bench.store().dead(filter, None, limit).await.expect("a page")];
    while let Some(from) = pages.last().and_then(|page| page.next) {
        assert!(pages.len() < MAX_PAGES, "the pages do not end");
        pages.push(bench.store().dead(filter, Some(from), limit).await.expect("a page"));
    }
    pages
}

/// All dead jobs of a filter, in order of death.
pub(crate) async fn all(bench: &Workbench, filter: &DeadFilter) -> Vec<DeadJob> {
    pages(bench, filter, 7).await.into_iter().flat_map(|page| page.items).collect()
}

/// The cursors of all dead jobs of a filter in the bench's shard.
pub(crate) async fn cursors(bench: &Workbench, filter: &DeadFilter) -> Vec<DeadCursor> {
    let (mut cursors, mut from) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = bench.store().dead_cursors(bench.shard(), filter, from, 7).await.expect("a page");
        cursors.extend(page.items);
        from = page.next;
        if from.is_none() {
            return cursors;
        }
    }
    panic!("the pages do not end");
}

/// Submits and buries jobs, each in a millisecond of its own. Returns each with the times before and after its death.
async fn one_by_one(bench: &Workbench, jobs: Vec<NewJob>) -> Vec<(Job, Timestamp, Timestamp)> {
    let mut dead = Vec::new();
    for job in jobs {
        until(now().plus(ms(2))).await;
        let lease = bench.reserved(job).await;
        let (key, began) = (lease.key.clone(), now());
        bench.settle(lease, bury()).await;
        dead.push((bench.get(&key).await, began, now()));
    }
    dead
}

/// Imports dead jobs in calls of 500.
pub(crate) async fn bring(bench: &Workbench, jobs: &[NewJob], reason: &str) {
    let history =
        History { dead: Some(reason.to_owned()), attempts: 2, last: Some(seen()), ..History::default() };
    let jobs: Vec<_> =
        jobs.iter().map(|job| ImportJob { job: job.clone(), history: Some(history.clone()) }).collect();
    for jobs in jobs.chunks(500) {
        bench.store().import(bench.shard(), jobs).await.expect("import");
    }
}

/// `count` jobs of the bench's shard, with names that begin with `name`.
pub(crate) fn jobs(bench: &Workbench, topic: &str, name: &str, count: usize) -> Vec<NewJob> {
    let names = (0..).map(|n| JobKey {
        topic: topic.parse().expect("a topic"),
        id: format!("{name}-{n}").parse().expect("an id"),
    });
    names.filter(|key| bench.store().shard_of(key) == bench.shard()).take(count).map(new_job).collect()
}

fn names<'a>(keys: impl Iterator<Item = &'a JobKey>) -> Vec<String> {
    keys.map(ToString::to_string).collect()
}

pub(crate) async fn the_pages_have_the_dead_jobs_of_a_topic_in_order_of_death(bench: &Workbench) {
    let origin = |n: usize| format!("http://receiver-{}.example", n % 3);
    let mine = (0..12).map(|n| bench.job(&format!("job-{n}")).to(&origin(n)));
    let others = (0..12).map(|n| bench.job_of("other", &format!("job-{n}")));
    let mixed = mine.zip(others).flat_map(|(one, other)| [one, other]).collect();
    let dead = one_by_one(bench, mixed).await;
    for state in [State::Delayed, State::Reserved, State::Ready] {
        bench.job_in(state, bench.job(state.into())).await;
    }
    let dead_jobs = all(bench, &of_topic(TOPIC)).await;
    let mine: Vec<_> = dead.iter().filter(|(job, ..)| job.key.topic.as_str() == TOPIC).collect();
    assert_eq!(dead_jobs.len(), mine.len());
    for (listed, (job, began, ended)) in dead_jobs.iter().zip(mine) {
        assert_eq!(listed.job, *job);
        assert_eq!((listed.job.reason.as_deref(), &listed.job.last), (Some("exhausted"), &Some(seen())));
        assert!(listed.died >= *began && listed.died <= *ended, "{listed:?}");
    }
    assert_eq!(all(bench, &of_topic("other")).await.len(), 12);
    assert_eq!(all(bench, &of_topic("othe")).await, []);
}

pub(crate) async fn those_of_one_millisecond_are_on_one_page_each(bench: &Workbench) {
    let jobs: Vec<_> = (0..100).map(|n| bench.job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let leases = bench.take(100).await;
    bench.settle_all(leases.into_iter().map(|lease| (lease, bury())).collect()).await;
    for limit in [1, 7, 100, 1000] {
        let pages = pages(bench, &of_topic(TOPIC), limit).await;
        assert!(pages.iter().all(|page| page.items.len() <= limit));
        let met: Vec<_> = pages.iter().flat_map(|page| &page.items).map(|dead| &dead.job.key).collect();
        let distinct: BTreeSet<_> = met.iter().map(ToString::to_string).collect();
        assert_eq!((met.len(), distinct.len()), (100, 100), "with a limit of {limit}");
    }
}

pub(crate) async fn a_page_begins_after_the_position_of_any_dead_job(bench: &Workbench) {
    let brought = jobs(bench, TOPIC, "job", 9);
    bring(bench, &brought, "lost").await;
    let all = all(bench, &of_topic(TOPIC)).await;
    assert_eq!(all.len(), brought.len());
    for (n, dead) in all.iter().enumerate() {
        assert_eq!(dead.cursor.died(), dead.died);
        let page = bench.store().dead(&of_topic(TOPIC), Some(dead.cursor), 500).await.expect("a page");
        assert_eq!(page.items, all[n + 1..], "after number {n}");
    }
}

pub(crate) async fn the_pages_of_a_filter_have_what_died_so_and_then(bench: &Workbench) {
    let mut dead = Vec::new();
    for n in 0..12 {
        until(now().plus(ms(2))).await;
        let lease = bench.reserved(bench.job(&format!("job-{n}"))).await;
        let reason = if n % 3 == 0 { Reason::Gone } else { Reason::Exhausted };
        dead.push(lease.key.clone());
        bench.settle(lease, Outcome::Bury { reason, last: seen() }).await;
    }
    let dead_jobs = all(bench, &of_topic(TOPIC)).await;
    assert_eq!(names(dead_jobs.iter().map(|dead| &dead.job.key)), names(dead.iter()));
    for (after, before) in
        [(None, None), (Some(3), None), (None, Some(9)), (Some(3), Some(9)), (Some(9), Some(3))]
    {
        for reason in [None, Some("gone"), Some("exhausted"), Some("lost")] {
            let filter = DeadFilter {
                reason: reason.map(str::to_owned),
                after: after.map(|n: usize| dead_jobs[n].died),
                before: before.map(|n: usize| dead_jobs[n].died),
                ..of_topic(TOPIC)
            };
            let wanted: Vec<_> = dead_jobs
                .iter()
                .enumerate()
                .filter(|(n, dead)| {
                    after.is_none_or(|after| *n >= after)
                        && before.is_none_or(|before| *n < before)
                        && reason.is_none_or(|reason| dead.job.reason.as_deref() == Some(reason))
                })
                .map(|(_, dead)| dead.clone())
                .collect();
            assert_eq!(all(bench, &filter).await, wanted, "{filter:?}");
        }
    }
}

pub(crate) async fn the_pages_of_all_shards_are_one_list_in_order_of_death(bench: &Workbench) {
    let dead = Some(History { dead: Some("gone".to_owned()), ..History::default() });
    let mut wanted = Vec::new();
    for n in 0..30 {
        let id = format!("job-{n}").parse().expect("an id");
        let job = new_job(JobKey { topic: TOPIC.parse().expect("a topic"), id });
        wanted.push(job.key.to_string());
        until(now().plus(ms(2))).await;
        let shard = bench.store().shard_of(&job.key);
        bench.store().import(shard, &[ImportJob { job, history: dead.clone() }]).await.expect("import");
    }
    let dead_jobs = all(bench, &of_topic(TOPIC)).await;
    assert!(dead_jobs.is_sorted_by_key(|dead| dead.died), "{dead_jobs:?}");
    assert_eq!(names(dead_jobs.iter().map(|dead| &dead.job.key)), wanted);
}

pub(crate) async fn many_dead_jobs_of_another_topic_are_passed_over_step_by_step(bench: &Workbench) {
    let crowd = jobs(bench, "crowd", "job", 9000);
    bring(bench, &crowd, "gone").await;
    let job = bench.job_in(State::Dead, bench.job("rare")).await;
    let pages = pages(bench, &of_topic(TOPIC), 100).await;
    let empty = pages.iter().filter(|page| page.items.is_empty()).count();
    assert!((2..6).contains(&empty), "{empty} empty pages");
    // The cursors of pages do not reveal ids of the other topic.
    let locators: BTreeSet<_> = crowd.iter().map(|job| job.key.locator().0).collect();
    assert!(pages.iter().filter_map(|page| page.next).all(|next| !locators.contains(&next.tie)));
    let dead_jobs: Vec<_> = pages.into_iter().flat_map(|page| page.items).collect();
    assert_eq!(dead_jobs.iter().map(|dead| &dead.job).collect::<Vec<_>>(), [&job]);
    let lost = DeadFilter { reason: Some("lost".to_owned()), ..of_topic("crowd") };
    assert_eq!(all(bench, &lost).await, []);
}

pub(crate) async fn what_stays_dead_is_met_once_while_others_die_are_revived_and_purged(bench: &Workbench) {
    let jobs = jobs(bench, TOPIC, "job", 90);
    bring(bench, &jobs, "gone").await;
    let (mut met, mut from, mut round) = (Vec::new(), None, 0);
    loop {
        let page = bench.store().dead(&of_topic(TOPIC), from, 7).await.expect("a page");
        met.extend(page.items.into_iter().map(|dead| dead.job.key.to_string()));
        from = page.next;
        if from.is_none() {
            break;
        }
        let key = |n: usize| &jobs[(round * 3 + n) % 90].key;
        if round < 9 {
            bench.store().revive(key(0), bench.token()).await.expect("revive");
            bench.store().purge(key(1)).await.expect("purge");
            let new = bench.job(&format!("new-{round}")).to("http://new.example");
            bring(bench, &[new], "gone").await;
        }
        round += 1;
    }
    assert!(round > 9, "{round} pages");
    let (touched, kept): (Vec<_>, Vec<_>) =
        jobs.iter().enumerate().partition(|(n, _)| n / 3 < 9 && n % 3 < 2);
    for (_, job) in kept {
        let times = met.iter().filter(|name| **name == job.key.to_string()).count();
        assert_eq!(times, 1, "{}", job.key);
    }
    assert_eq!(touched.len(), 18);
}

pub(crate) async fn a_job_that_dies_again_has_the_time_of_its_last_death(bench: &Workbench) {
    let job = bench.job_in(State::Dead, bench.job("a")).await;
    let first = all(bench, &of_topic(TOPIC)).await.remove(0);
    bench.store().revive(&job.key, bench.token()).await.expect("revive");
    assert_eq!(all(bench, &of_topic(TOPIC)).await, []);
    until(first.died.plus(ms(2))).await;
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, bury()).await;
    let again = all(bench, &of_topic(TOPIC)).await.remove(0);
    assert!(again.died > first.died && again.job.attempts == 2, "{again:?}");
}

pub(crate) async fn what_was_dead_since_then_is_purged_and_nothing_else(bench: &Workbench) {
    let jobs = jobs(bench, TOPIC, "job", 20);
    bring(bench, &jobs, "gone").await;
    let cursors = cursors(bench, &of_topic(TOPIC)).await;
    assert_eq!(cursors.len(), 20);
    let dead_jobs = all(bench, &of_topic(TOPIC)).await;
    // One job is alive again, one is gone, and one has died a second time.
    let keys: Vec<_> = dead_jobs.iter().map(|dead| dead.job.key.clone()).collect();
    bench.store().purge(&keys[0]).await.expect("purge");
    bench.store().revive(&keys[2], bench.token()).await.expect("revive");
    until(dead_jobs[2].died.plus(ms(2))).await;
    let lease = bench.take_one(&keys[2]).await;
    bench.settle(lease, bury()).await;
    bench.store().revive(&keys[1], bench.token()).await.expect("revive");

    // Each job twice in one call, and the whole call again.
    let twice: Vec<_> = cursors.iter().chain(&cursors).copied().collect();
    assert_eq!(bench.store().purge_many(bench.shard(), &twice).await.expect("purge"), 17);
    assert_eq!(bench.store().purge_many(bench.shard(), &cursors).await.expect("purge"), 0);
    assert_eq!(bench.store().purge_many(bench.shard(), &[]).await.expect("purge"), 0);
    let states = [bench.state(&keys[0]).await, bench.state(&keys[1]).await, bench.state(&keys[2]).await];
    assert_eq!(states, [None, Some(State::Ready), Some(State::Dead)]);
    assert!(matches!(bench.store().purge(&keys[19]).await, Ok(MoveResult::Unknown)));
    let stats = bench.stats().await;
    assert_eq!((stats.states.purged, stats.states.dead, stats.states.ready), (18, 1, 1));
    // Nothing is remembered of purged jobs, so their ids are free.
    bench.accept(new_job(keys[5].clone()).content(9)).await;
}

pub(crate) async fn large_jobs_are_purged_whole(bench: &Workbench) {
    let jobs: Vec<_> =
        jobs(bench, TOPIC, "job", 5).into_iter().map(|job| job.body(noise(7, 9000).into())).collect();
    bring(bench, &jobs, "gone").await;
    let cursors = cursors(bench, &of_topic(TOPIC)).await;
    assert_eq!(bench.store().purge_many(bench.shard(), &cursors).await.expect("purge"), 5);
    assert_eq!(all(bench, &of_topic(TOPIC)).await, []);
    assert_eq!(bench.evict(10).await.next_dead, None);
}
