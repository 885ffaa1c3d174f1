//! Cases of stored schedules: read, listed, limited, changed by version, and fired together with their jobs.

use std::slice;

use ringback_core::clock::Timestamp;
use ringback_core::job::{TenantLimits, TenantScope, Topic};
use ringback_core::schedule::{
    DEFAULT_CATCHUP, Firing, MAX_TENANT_SCHEDULES, Missed, Overlap, Progress, Rule, Schedule, ScheduleKey,
    ScheduleState, ScheduledJob,
};
use ringback_core::store_types::{
    DueSchedule, Limit, ScheduleAdded, ScheduleChange, ScheduleChanged, ScheduleRow, SubmitResult, Wake,
};

use super::job_builders::{LONG, TOPIC, ms, new_job, topic};
use super::workbench::{Workbench, ago, next};
use crate::prelude::*;

/// A schedule whose jobs are in the bench's shard, and that fires next at `next`.
pub(crate) fn schedule_at(bench: &Workbench, of: &str, name: &str, next: Option<Timestamp>) -> ScheduleRow {
    let job = new_job(bench.key(of, name));
    let key = ScheduleKey { tenant: job.key.topic.tenant(), id: job.key.id.as_str().parse().expect("an id") };
    let schedule = Schedule {
        rule: Rule::Every { period: Duration::from_secs(60), anchor: Timestamp::from_millis(0) },
        job: ScheduledJob { topic: job.key.topic, delivery: job.delivery, to_url_of_topic: false },
        missed: Missed::One,
        catchup: DEFAULT_CATCHUP,
        overlap: Overlap::Allow,
        jitter: Duration::ZERO,
        from: None,
        until: None,
    };
    let progress = Progress { next, ..Progress::default() };
    ScheduleRow::new(key, 1, &ScheduleState { schedule, progress })
}

fn schedule(bench: &Workbench, name: &str, next: Option<Timestamp>) -> ScheduleRow {
    schedule_at(bench, TOPIC, name, next)
}

pub(crate) async fn add(bench: &Workbench, row: &ScheduleRow) {
    assert_eq!(bench.store().add_schedule(row, None).await.expect("add"), ScheduleAdded::Added);
}

async fn find(bench: &Workbench, row: &ScheduleRow) -> Option<ScheduleRow> {
    bench.store().schedule(&row.key).await.expect("find")
}

/// The change that fires a schedule for `time`, with `next` as its following time.
fn firing(row: &ScheduleRow, time: Timestamp, next: Option<Timestamp>) -> ScheduleChange {
    let mut state = row.state().expect("readable");
    let limits = row.key.tenant.as_ref().map(|_| TenantLimits::default());
    let job = state.schedule.firing(&row.key.id, time, None, limits);
    state.progress.last = Some(Firing { time, id: job.key.id.clone() });
    state.progress.next = next;
    let after = ScheduleRow::new(row.key.clone(), row.version + 1, &state);
    ScheduleChange { expected: Some(row.version), row: after, jobs: vec![job] }
}

async fn fire(bench: &Workbench, changes: &[ScheduleChange]) -> Vec<ScheduleChanged> {
    bench.store().fire(bench.shard(), changes).await.expect("fire")
}

async fn change(bench: &Workbench, expected: Option<u64>, row: &ScheduleRow) -> ScheduleChanged {
    let change = ScheduleChange { expected, row: row.clone(), jobs: Vec::new() };
    bench.store().change_schedules(bench.shard(), &[change]).await.expect("change").remove(0)
}

async fn due(bench: &Workbench, limit: usize) -> Vec<DueSchedule> {
    bench.store().due_schedules(bench.shard(), limit).await.expect("due").due
}

async fn next_firing(bench: &Workbench) -> Option<Duration> {
    bench.promote(10).await.next_firing
}

pub(crate) async fn a_schedule_is_found_as_it_was_added(bench: &Workbench) {
    let row = schedule(bench, "daily", Some(ago(ms(0)).plus(LONG)));
    assert_eq!(find(bench, &row).await, None);
    add(bench, &row).await;
    assert_eq!(find(bench, &row).await.as_ref(), Some(&row));
    assert_eq!(bench.store().add_schedule(&row, None).await.expect("add"), ScheduleAdded::Exists);
    assert!(bench.store().remove_schedule(&row).await.expect("remove"));
    assert_eq!(find(bench, &row).await, None);
    assert!(!bench.store().remove_schedule(&row).await.expect("remove"), "it is gone");
    add(bench, &row).await;
}

pub(crate) async fn a_schedule_keeps_its_topic_until_it_is_removed(bench: &Workbench) {
    let row = schedule(bench, "daily", None);
    add(bench, &row).await;
    let mut state = row.state().expect("readable");
    state.schedule.job.topic = topic("other");
    let other = ScheduleRow::new(row.key.clone(), 7, &state);
    let added = bench.store().add_schedule(&other, None).await.expect("add");
    assert_eq!(added, ScheduleAdded::OtherTopic(topic(TOPIC)));
    assert_eq!(find(bench, &row).await.as_ref(), Some(&row));
    assert!(bench.store().remove_schedule(&row).await.expect("remove"));
    add(bench, &other).await;
    assert_eq!(find(bench, &row).await, Some(other));
}

pub(crate) async fn a_change_of_another_version_changes_nothing(bench: &Workbench) {
    let row = schedule(bench, "daily", None);
    assert_eq!(change(bench, Some(1), &row).await, ScheduleChanged::Outdated, "there is none");
    add(bench, &row).await;
    let second = ScheduleRow { version: 2, next: Some(ago(ms(0)).plus(LONG)), ..row.clone() };
    for wrong in [None, Some(2), Some(0)] {
        assert_eq!(change(bench, wrong, &second).await, ScheduleChanged::Outdated, "{wrong:?}");
        assert_eq!(find(bench, &row).await.as_ref(), Some(&row));
    }
    assert_eq!(change(bench, Some(1), &second).await, ScheduleChanged::Changed);
    assert_eq!(find(bench, &row).await.as_ref(), Some(&second));
    assert!(!bench.store().remove_schedule(&row).await.expect("remove"), "of another version");
    assert!(bench.store().remove_schedule(&second).await.expect("remove"));
}

pub(crate) async fn a_time_fires_once_and_its_job_is_an_ordinary_one(bench: &Workbench) {
    let (time, next) = (ago(ms(5)), ago(ms(0)).plus(LONG));
    let row = schedule(bench, "daily", Some(time));
    add(bench, &row).await;
    let found = due(bench, 10).await;
    assert_eq!(found, [DueSchedule { row: row.clone(), is_overlapped: false }]);
    let change = firing(&row, time, Some(next));
    let job = change.jobs[0].key.clone();
    assert_eq!(fire(bench, slice::from_ref(&change)).await, [ScheduleChanged::Changed]);
    assert_eq!(fire(bench, slice::from_ref(&change)).await, [ScheduleChanged::Outdated], "again");
    assert_eq!(find(bench, &row).await, Some(change.row));
    assert_eq!(due(bench, 10).await, []);
    assert_eq!(bench.stats().await.accepted, 1);
    let lease = bench.take_one(&job).await;
    assert_eq!((lease.attempt, &*lease.delivery.body.bytes), (1, &br#"{"status":"PAID"}"#[..]));
}

pub(crate) async fn many_schedules_fire_in_one_call_each_with_many_jobs(bench: &Workbench) {
    let time = ago(ms(5000));
    let mut changes = Vec::new();
    for n in 0..20 {
        let row = schedule(bench, &format!("many-{n}-"), Some(time));
        add(bench, &row).await;
        let mut change = firing(&row, time, None);
        let more = (1..5).map(|n| firing(&row, time.plus(Duration::from_secs(n)), None).jobs.remove(0));
        change.jobs.extend(more);
        changes.push(change);
    }
    changes[7].expected = Some(9);
    let answers = fire(bench, &changes).await;
    for (n, answer) in answers.iter().enumerate() {
        let expected = if n == 7 { ScheduleChanged::Outdated } else { ScheduleChanged::Changed };
        assert_eq!(*answer, expected, "{n}");
    }
    assert_eq!(bench.stats().await.accepted, 19 * 5);
    assert_eq!(bench.take(500).await.len(), 19 * 5);
}

pub(crate) async fn a_job_whose_id_is_taken_is_not_submitted_again(bench: &Workbench) {
    let time = ago(ms(5));
    let row = schedule(bench, "daily", Some(time));
    add(bench, &row).await;
    let change = firing(&row, time, None);
    let mut own = change.jobs[0].clone();
    own.delivery.body.bytes = "mine".into();
    own.content.0 = [9; 8];
    bench.accept(own).await;
    assert_eq!(fire(bench, &[change]).await, [ScheduleChanged::Changed]);
    assert_eq!(bench.stats().await.accepted, 1);
    assert_eq!(&*bench.take(5).await[0].delivery.body.bytes, b"mine");
}

pub(crate) async fn a_firing_beyond_the_limits_of_a_tenant_changes_nothing(bench: &Workbench) {
    let time = ago(ms(5));
    let row = schedule_at(bench, "~acme/a", "daily", Some(time));
    add(bench, &row).await;
    let mut change = firing(&row, time, None);
    change.jobs[0].limits = Some(TenantLimits { topics: 0, lanes: 5 });
    assert_eq!(fire(bench, slice::from_ref(&change)).await, [ScheduleChanged::Full(Limit::TenantTopics)]);
    change.jobs[0].limits = Some(TenantLimits { topics: 5, lanes: 0 });
    assert_eq!(fire(bench, slice::from_ref(&change)).await, [ScheduleChanged::Full(Limit::TenantLanes)]);
    assert_eq!(find(bench, &row).await.as_ref(), Some(&row));
    assert_eq!(bench.stats().await.accepted, 0);
    change.jobs[0].limits = Some(TenantLimits::default());
    assert_eq!(fire(bench, &[change]).await, [ScheduleChanged::Changed]);
}

pub(crate) async fn a_schedule_that_waits_for_its_last_job_knows_when_that_has_ended(bench: &Workbench) {
    let time = ago(ms(120_000));
    let row = schedule(bench, "daily", Some(time));
    let mut state = row.state().expect("readable");
    state.schedule.overlap = Overlap::Skip;
    let row = ScheduleRow::new(row.key, 1, &state);
    add(bench, &row).await;
    let mut change = firing(&row, time, Some(ago(ms(5))));
    let job = change.jobs[0].clone();
    change.jobs[0].due = ringback_core::job::Due::At(ago(ms(0)).plus(LONG));
    assert_eq!(fire(bench, &[change]).await, [ScheduleChanged::Changed]);
    let is_overlapped = async || due(bench, 10).await[0].is_overlapped;
    assert!(is_overlapped().await, "delayed");
    bench.store().run(&job.key, bench.token()).await.expect("run");
    assert!(is_overlapped().await, "ready");
    let lease = bench.take_one(&job.key).await;
    assert!(is_overlapped().await, "reserved");
    bench.settle(lease, super::job_builders::bury()).await;
    assert!(!is_overlapped().await, "dead");
    bench.store().revive(&job.key, bench.token()).await.expect("revive");
    assert!(is_overlapped().await, "revived");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, ringback_core::outcome::Outcome::Complete).await;
    assert!(!is_overlapped().await, "done");
    assert_eq!(bench.state(&job.key).await, Some(State::Done));
}

pub(crate) async fn those_whose_time_has_come_are_found_in_its_order(bench: &Workbench) {
    let now = ago(ms(0));
    let ages = [300, 100, 500, 200, 400];
    for age in ages {
        let at = Timestamp::from_millis(now.as_millis() - age);
        add(bench, &schedule(bench, &format!("s{age}-"), Some(at))).await;
    }
    add(bench, &schedule(bench, "later", Some(now.plus(LONG)))).await;
    add(bench, &schedule(bench, "never", None)).await;
    let found = due(bench, 3).await;
    let names: Vec<_> = found.iter().map(|due| &due.row.key.id.as_str()[..4]).collect();
    assert_eq!(names, ["s500", "s400", "s300"]);
    assert_eq!(due(bench, 100).await.len(), ages.len());
}

pub(crate) async fn a_pass_says_when_the_first_schedule_fires(bench: &Workbench) {
    assert_eq!(next_firing(bench).await, None);
    let now = ago(ms(0));
    let late = schedule(bench, "late", Some(now.plus(LONG)));
    add(bench, &late).await;
    let wait = next_firing(bench).await.expect("one");
    assert!(wait > LONG / 2 && wait <= LONG, "{wait:?}");
    let early = schedule(bench, "early", Some(now.plus(LONG / 4)));
    add(bench, &early).await;
    assert!(next_firing(bench).await.expect("two") <= LONG / 4);
    assert_eq!(
        bench.store().due_schedules(bench.shard(), 5).await.expect("due").next.map(|w| w <= LONG / 4),
        Some(true)
    );
    assert!(bench.store().remove_schedule(&early).await.expect("remove"));
    assert!(next_firing(bench).await.expect("one") > LONG / 2);
    let paused = ScheduleRow { version: 2, next: None, ..late };
    assert_eq!(change(bench, Some(1), &paused).await, ScheduleChanged::Changed);
    assert_eq!(next_firing(bench).await, None);
}

pub(crate) async fn an_earlier_schedule_wakes_the_carrier(bench: &Workbench) {
    let now = ago(ms(0));
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    add(bench, &schedule(bench, "first", Some(now.plus(LONG)))).await;
    let shard = bench.shard();
    match next(&mut wakes).await {
        Wake::Due(of, wait) if of == shard => assert!(wait < LONG / 2, "{wait:?}"),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn schedules_are_listed_by_scope_in_the_order_of_their_names(bench: &Workbench) {
    let of = |topic: &str, name: &str| schedule_at(bench, topic, name, None);
    let rows = [
        of("a", "one"),
        of("b", "three"),
        of("a", "two"),
        of("~acme/a", "one"),
        of("~acme/a", "x"),
        of("~bcme/a", "one"),
    ];
    for row in &rows {
        add(bench, row).await;
    }
    let list = async |scope: TenantScope, limit| {
        let (mut all, mut after, mut calls) = (Vec::new(), None, 0);
        loop {
            let (page, next): (Vec<ScheduleRow>, Option<(ScheduleKey, Topic)>) =
                bench.store().schedules(&scope, after, limit).await.expect("list");
            assert!(page.len() <= limit);
            all.extend(page.into_iter().map(|row| row.key.to_string()));
            calls += 1;
            after = next;
            if after.is_none() {
                return (all, calls);
            }
        }
    };
    let mut expected: Vec<_> = rows.iter().map(|row| row.key.to_string()).collect();
    expected.sort_unstable();
    for limit in [1, 2, 100] {
        let (all, calls) = list(TenantScope::All, limit).await;
        assert_eq!(all, expected, "{limit}");
        assert!(calls <= 7);
    }
    let acme = || TenantScope::One(Some("acme".parse().expect("a tenant")));
    assert_eq!(list(acme(), 1).await.0, expected[3..5]);
    assert_eq!(list(TenantScope::One(None), 2).await.0, expected[..3]);
}

pub(crate) async fn a_tenant_has_no_more_schedules_than_it_may(bench: &Workbench) {
    let row = |n: usize| schedule_at(bench, "~acme/a", &format!("s{n}-"), None);
    for n in 0..3 {
        let added = bench.store().add_schedule(&row(n), Some(3)).await.expect("add");
        assert_eq!(added, ScheduleAdded::Added, "{n}");
    }
    let add = async |row: &ScheduleRow, most| bench.store().add_schedule(row, Some(most)).await.expect("add");
    assert_eq!(add(&row(3), 3).await, ScheduleAdded::TooMany);
    assert_eq!(find(bench, &row(3)).await, None);
    assert_eq!(add(&row(2), 3).await, ScheduleAdded::Exists, "it has that one");
    let other = schedule_at(bench, "~bcme/a", "other", None);
    assert_eq!(add(&other, 1).await, ScheduleAdded::Added, "another tenant");
    assert_eq!(add(&row(3), MAX_TENANT_SCHEDULES).await, ScheduleAdded::Added);
}

pub(crate) async fn a_large_schedule_is_kept_whole(bench: &Workbench) {
    let time = ago(ms(5));
    let row = schedule(bench, "large", Some(time));
    let mut state = row.state().expect("readable");
    state.schedule.job.delivery.body.bytes = vec![b'x'; 200_000].into();
    let row = ScheduleRow::new(row.key, 1, &state);
    add(bench, &row).await;
    let found = due(bench, 10).await.remove(0).row;
    assert_eq!(found.state(), Ok(state));
    let change = firing(&found, time, None);
    let job = change.jobs[0].key.clone();
    assert_eq!(fire(bench, &[change]).await, [ScheduleChanged::Changed]);
    assert_eq!(bench.take_one(&job).await.delivery.body.bytes.len(), 200_000);
    let again = bench.submit(&[new_job(job)]).await.remove(0).answer;
    assert_eq!(again, SubmitResult::Conflict);
}
