//! Cases of `import`: jobs come in delayed, ready or dead with their history; repetitions are recognised; and an export
//! of one installation is imported by another unchanged.

use ringback_core::clock::Timestamp;
use ringback_core::job::{Due, History, IfExists, ImportJob, Job, NewJob};
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{Cancelled, SettleResult, StoredJob, SubmitResult, Submitted, Wake};

use super::job_builders::{LONG, STATES, With, bury, ms, retry, seen};
use super::list::{all_kept, rich};
use super::workbench::{SOON, Workbench, next, now};
use crate::prelude::*;

fn long_ago() -> Timestamp {
    Timestamp::from_millis(now().as_millis() - 3_600_000)
}

/// The history of a job with two failures and a lost lease.
fn tried() -> History {
    History { dead: None, created: Some(long_ago()), attempts: 3, failures: 2, last: Some(seen()) }
}

fn dead() -> History {
    let last = LastAttempt { status: None, error: Some("timeout".to_owned()), ..seen() };
    History { dead: Some("gone".to_owned()), last: Some(last), ..tried() }
}

fn with(job: NewJob, history: History) -> ImportJob {
    ImportJob { job, history: Some(history) }
}

async fn import(bench: &Workbench, jobs: &[ImportJob]) -> Vec<Submitted> {
    let answers = bench.store().import(bench.shard(), jobs).await.expect("import");
    assert_eq!(answers.len(), jobs.len());
    answers
}

async fn taken_in(bench: &Workbench, job: ImportJob) -> Job {
    let answer = import(bench, &[job]).await.remove(0);
    assert_eq!(answer.answer, SubmitResult::Created, "{}", answer.job.key);
    assert_eq!(bench.get(&answer.job.key).await, answer.job);
    answer.job
}

pub(crate) async fn a_job_with_nothing_behind_it_is_as_one_that_is_submitted(bench: &Workbench) {
    let before = now();
    let due = taken_in(bench, ImportJob { job: bench.job("a"), history: None }).await;
    let later = taken_in(bench, ImportJob { job: bench.job("b").after(LONG), history: None }).await;
    assert_eq!((due.state, later.state), (State::Ready, State::Delayed));
    for job in [due, later] {
        assert!(job.created >= before && job.created <= now());
        assert_eq!((job.attempts, job.failures, job.last, job.reason), (0, 0, None, None));
    }
}

pub(crate) async fn a_pending_job_keeps_what_it_has_behind_it(bench: &Workbench) {
    let time = now().plus(LONG);
    let history = tried();
    let job = taken_in(bench, with(bench.job("a").at(time), history.clone())).await;
    let kept = (job.created, job.attempts, job.failures, job.last, job.reason);
    assert_eq!((job.state, job.due), (State::Delayed, time));
    assert_eq!(kept, (long_ago_of(&history), 3, 2, Some(seen()), None));

    let before = now();
    let job = taken_in(bench, with(bench.job("b").at(long_ago()), history)).await;
    assert_eq!(job.state, State::Ready);
    assert!(job.due >= before && job.due <= now(), "lateness counts from the import");
    assert_eq!((job.attempts, job.failures), (3, 2));
}

pub(crate) async fn a_job_that_is_cancelled_is_remembered_with_what_it_had_behind_it(bench: &Workbench) {
    let before = taken_in(bench, with(bench.job("a").after(LONG), tried())).await;
    bench.cancel(&before.key).await;
    let after = bench.get(&before.key).await;
    let kept = (after.state, after.due, after.created, after.attempts, after.failures);
    assert_eq!(kept, (State::Cancelled, before.due, before.created, 3, 2));
}

fn long_ago_of(history: &History) -> Timestamp {
    history.created.expect("it was created")
}

pub(crate) async fn a_dead_job_is_dead_and_keeps_all_of_its_past(bench: &Workbench) {
    let (due, history) = (long_ago(), dead());
    let job = taken_in(bench, with(bench.job("a").at(due), history.clone())).await;
    let wanted = Job {
        key: job.key.clone(),
        state: State::Dead,
        due,
        created: long_ago_of(&history),
        attempts: 3,
        failures: 2,
        last: history.last,
        reason: history.dead,
        tags: job.tags.clone(),
    };
    assert_eq!(job, wanted);
    let before = now();
    let unknown = taken_in(bench, with(bench.job("b"), dead())).await;
    assert!(unknown.due >= before && unknown.due <= now());
    let stats = bench.stats().await;
    assert_eq!((stats.accepted, stats.states.dead), (2, 2));
    assert!(bench.take(10).await.is_empty());
}

pub(crate) async fn a_dead_job_is_due_as_it_is_given_to_be(bench: &Workbench) {
    let before = now();
    let later = taken_in(bench, with(bench.job("later").after(LONG), dead())).await;
    assert!(later.due >= before.plus(LONG) && later.due <= now().plus(LONG).plus(ms(1)), "{later:?}");
    let at_once = taken_in(bench, with(bench.job("at-once"), dead())).await;
    assert!(at_once.due >= before && at_once.due <= now(), "{at_once:?}");
}

pub(crate) async fn the_longest_words_and_numbers_fit(bench: &Workbench) {
    let last = LastAttempt { error: Some("e".repeat(128)), status: Some(999), ..seen() };
    let reason = Some("r".repeat(64));
    let history = History { dead: reason.clone(), last: Some(last.clone()), ..tried() };
    let job = taken_in(bench, with(bench.job("a"), history)).await;
    assert_eq!((job.last, job.reason), (Some(last.clone()), reason));

    // A count past the largest number would begin again at 0.
    let history = History { attempts: u32::MAX, failures: u32::MAX, last: Some(last), ..tried() };
    taken_in(bench, with(bench.job("b"), history)).await;
    let lease = bench.take(1).await.remove(0);
    assert!(lease.attempt > 1_000_000 && lease.failures > 1_000_000);
    let key = lease.key.clone();
    bench.settle(lease, bury()).await;
    let job = bench.get(&key).await;
    assert!(job.attempts > 1_000_000 && job.failures > 1_000_000, "{job:?}");
}

pub(crate) async fn a_job_is_never_created_later_than_now(bench: &Workbench) {
    for (name, created) in
        [("a", Some(now().plus(LONG))), ("b", Some(Timestamp::from_millis(253_402_300_799_999))), ("c", None)]
    {
        let before = now();
        let job = taken_in(bench, with(bench.job(name), History { created, ..tried() })).await;
        assert!(job.created >= before && job.created <= now(), "created at {created:?}: {job:?}");
    }
}

pub(crate) async fn attempts_and_failures_go_on_from_where_they_were(bench: &Workbench) {
    let history = tried();
    let ready = taken_in(bench, with(rich(bench.job("a")), history.clone())).await;
    let lease = bench.take_one(&ready.key).await;
    assert_eq!((lease.attempt, lease.failures, lease.created), (4, 2, long_ago_of(&history)));
    assert_eq!(lease.delivery, rich(bench.job("a")).delivery);
    assert_eq!(bench.settle(lease, retry(LONG)).await, SettleResult::Applied);
    let job = bench.get(&ready.key).await;
    assert_eq!((job.state, job.attempts, job.failures), (State::Delayed, 4, 3));

    let delayed = taken_in(bench, with(bench.job("b").after(ms(20)), history)).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&delayed.key).await;
    assert_eq!((lease.attempt, lease.failures), (4, 2));
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    let job = bench.get(&delayed.key).await;
    assert_eq!((job.state, job.attempts, job.failures), (State::Done, 4, 2));
}

pub(crate) async fn an_import_and_a_submit_are_each_others_repetition(bench: &Workbench) {
    for state in STATES {
        let job = bench.job(&format!("submitted-{state}"));
        let known = bench.job_in(state, job.clone()).await;
        let again = [with(job.clone(), dead()), with(job.clone().after(LONG), tried())];
        for answer in import(bench, &again).await {
            let wanted =
                if state == State::Cancelled { SubmitResult::Cancelled } else { SubmitResult::Repeated };
            assert_eq!((answer.answer, answer.job), (wanted, known.clone()), "{state}");
        }
        let other = import(bench, &[with(job.content(9), dead())]).await.remove(0);
        assert_eq!((other.answer, other.job), (SubmitResult::Conflict, known), "{state}");
    }
    for (name, history) in [("pending", tried()), ("dead", dead())] {
        let job = bench.job(name).after(LONG);
        let known = taken_in(bench, with(job.clone(), history.clone())).await;
        let again = import(bench, &[with(job.clone(), history)]).await.remove(0);
        assert_eq!((again.answer, &again.job), (SubmitResult::Repeated, &known));
        let again = bench.submit(&[job.clone(), job.content(9)]).await;
        assert_eq!((again[0].answer, &again[0].job), (SubmitResult::Repeated, &known));
        assert_eq!((again[1].answer, &again[1].job), (SubmitResult::Conflict, &known));
        assert_eq!(bench.get(&known.key).await, known);
    }
    assert_eq!(bench.stats().await.accepted, STATES.len() as u64 + 2);
}

pub(crate) async fn a_name_twice_in_one_import_is_imported_once(bench: &Workbench) {
    let job = bench.job("a");
    let batch = [
        with(job.clone(), dead()),
        with(job.clone(), dead()),
        ImportJob { job: job.content(9), history: None },
        with(bench.job("b").body(noise(7, 5000).into()).after(LONG), tried()),
    ];
    let answers = import(bench, &batch).await;
    let words: Vec<_> = answers.iter().map(|answer| answer.answer).collect();
    assert_eq!(
        words,
        [SubmitResult::Created, SubmitResult::Repeated, SubmitResult::Conflict, SubmitResult::Created]
    );
    assert_eq!(answers[1].job, answers[0].job);
    assert_eq!(answers[1].job.reason.as_deref(), Some("gone"));
    assert_eq!(bench.stats().await.accepted, 2);
}

pub(crate) async fn a_dead_job_is_kept_from_its_import_on_and_then_gone(bench: &Workbench) {
    let kept = taken_in(bench, with(bench.job("a").at(long_ago()), dead())).await;
    let pass = bench.evict(10).await;
    let keep = bench.options().keep_dead;
    assert_eq!(pass.moved, 0);
    assert!(pass.next_dead.is_some_and(|next| next <= keep && next > keep / 2), "{pass:?}");
    assert_eq!(bench.cancel(&kept.key).await, Cancelled::Cancelled { in_flight_unknown: false });

    let brief = bench.with(|options| options.keep_dead = ms(60)).await;
    let came = now();
    let job = taken_in(&brief, with(brief.job("a").body(noise(7, 5000).into()).at(long_ago()), dead())).await;
    eventually(SOON, "the dead job is gone", async || match brief.evict(10).await {
        pass if pass.moved == 0 => Err("it is still there"),
        _ => Ok(()),
    })
    .await;
    assert!(now() >= came.plus(ms(60)), "it was kept for too short a time");
    assert_eq!(brief.state(&job.key).await, None);
    brief.check().await;
}

pub(crate) async fn a_lease_of_an_earlier_life_does_not_complete_an_imported_job(bench: &Workbench) {
    let brief = bench.with(|options| options.keep_dead = ms(0)).await;
    let stale = brief.stale_lease(brief.job("a")).await;
    let current = brief.take_one(&stale.key).await;
    brief.settle(current, bury()).await;
    let gone = brief.evict(10).await;
    assert_eq!(gone.moved, 1);
    // The job was created before the lease was given, but in another installation.
    let job = taken_in(&brief, with(brief.job("a").content(2).after(LONG), tried())).await;
    assert!(job.created < now());
    assert_eq!(brief.settle(stale, Outcome::Complete).await, SettleResult::Stale);
    assert_eq!(brief.get(&job.key).await, job);
    brief.check().await;
}

pub(crate) async fn a_late_success_completes_an_imported_job(bench: &Workbench) {
    let job = taken_in(bench, with(bench.job("a").timeout(super::job_builders::BRIEF), tried())).await;
    let lease = bench.take_one(&job.key).await;
    bench.recover_until(&job.key, State::Ready).await;
    let another = bench.take_one(&job.key).await;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Late);
    assert_eq!(bench.settle(another, Outcome::Complete).await, SettleResult::Stale);
    assert_eq!(bench.state(&job.key).await, Some(State::Done));
}

pub(crate) async fn an_import_wakes_as_a_submit_does(bench: &Workbench) {
    let mut wakes = bench.wakes().await;
    taken_in(bench, with(bench.job("dead"), dead())).await;
    taken_in(bench, with(bench.job("a"), tried())).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
    bench.promote(10).await;
    taken_in(bench, with(bench.job("b").after(LONG), tried())).await;
    let wake = next(&mut wakes).await;
    assert!(matches!(wake, Wake::Due(shard, _) if shard == bench.shard()), "{wake:?}");
}

/// The import of a stored job, as from an export.
fn exported(kept: StoredJob) -> ImportJob {
    let StoredJob { job, delivery, content } = kept;
    let history = History {
        dead: job.reason,
        created: Some(job.created),
        attempts: job.attempts,
        failures: job.failures,
        last: job.last,
    };
    ImportJob {
        job: NewJob {
            key: job.key,
            due: Due::At(job.due),
            delivery,
            content,
            if_exists: IfExists::Refuse,
            limits: None,
        },
        history: Some(history),
    }
}

pub(crate) async fn what_one_installation_has_another_takes_over_as_it_is(bench: &Workbench) {
    bench.job_in(State::Reserved, rich(bench.job("reserved"))).await;
    bench.job_in(State::Dead, rich(bench.job("dead").body(noise(1, 9000).into()))).await;
    bench.job_in(State::Delayed, rich(bench.job("delayed"))).await;
    let lease = bench.reserved(bench.job_of("other", "retried")).await;
    bench.settle(lease, retry(LONG)).await;
    bench.job_in(State::Done, bench.job("done")).await;
    let revived = bench.job_in(State::Dead, rich(bench.job("revived"))).await.key;
    bench.job_in(State::Ready, bench.job("ready")).await;

    let moved = bench.job_in(State::Delayed, bench.job("moved")).await.key;
    bench.store().reschedule(&moved, Due::In(2 * LONG), bench.token()).await.expect("reschedule");
    let run = bench.job_in(State::Delayed, bench.job("run")).await.key;
    bench.store().run(&run, bench.token()).await.expect("run");
    bench.store().revive(&revived, bench.token()).await.expect("revive");

    let from = all_kept(bench).await;
    assert_eq!(from.len(), 8);
    let other = bench.with(|_| {}).await;
    let jobs: Vec<ImportJob> = from.values().cloned().map(exported).collect();
    let answers = import(&other, &jobs).await;
    assert!(answers.iter().all(|answer| answer.answer == SubmitResult::Created));
    let mut to = all_kept(&other).await;
    for (name, mut kept) in from {
        let copy = to.remove(&name).unwrap_or_else(|| panic!("{name} was not taken over"));
        // Jobs that are due are due at the import.
        if matches!(kept.job.state, State::Ready | State::Reserved) {
            assert!(copy.job.due >= kept.job.due);
            (kept.job.due, kept.job.state) = (copy.job.due, State::Ready);
        }
        assert_eq!(copy, kept);
    }
    other.check().await;
}
