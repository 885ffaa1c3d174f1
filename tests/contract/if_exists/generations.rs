//! Cases of `if_exists` that begin a new generation of a job, which keeps only the number of attempts of the former one.

use bytes::Bytes;
use ringback_core::job::{Callback, History, ImportJob, Job, NewJob};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::state::State;
use ringback_core::store_types::{
    Attempt, AttemptLogEntry, BulkStart, BulkTarget, Cancelled, Lease, Renewed, SettleResult, Stats,
    SubmitResult, Submitted,
};

use super::{OTHER, answered, changing, run, submit};
use crate::contract::dead_letters::{cursors, of_topic};
use crate::contract::job_builders::{BRIEF, LONG, TOPIC, With, bury, ms, release, retry};
use crate::contract::workbench::{Workbench, now};

const CANCELLED: Cancelled = Cancelled::Cancelled { in_flight_unknown: false };

/// Asserts that `job` is a new generation after `former`, with its number of attempts and nothing else of it.
fn is_new_life(job: &Job, former: &Job) {
    assert!(job.created > former.created, "{job:?} after {former:?}");
    assert!(job.created <= now().plus(ms(1)), "{job:?}");
    assert_eq!((job.attempts, job.failures), (former.attempts, 0));
    assert_eq!((&job.last, &job.reason), (&None, &None));
}

pub(crate) async fn an_ended_job_begins_a_new_life_and_counts_as_another_one(bench: &Workbench) {
    for (state, mode) in [(State::Done, 0), (State::Done, 1), (State::Cancelled, 0), (State::Cancelled, 1)] {
        let name = format!("{state}-{mode}");
        let former = bench.job_in(state, bench.job(&name)).await;
        let before = bench.stats().await;
        let (new, _) = changing(bench, &bench.job(&name).content(2).to(OTHER).after(LONG))[mode].clone();
        let job = answered(bench, &new, SubmitResult::Created).await;
        is_new_life(&job, &former);
        let after = bench.stats().await;
        assert_eq!((after.accepted, after.states.delayed), (before.accepted + 1, before.states.delayed + 1));
        let ended = |stats: &Stats| (stats.states.done, stats.states.cancelled);
        assert_eq!(ended(&after), ended(&before), "the former life stays counted");
        run(bench, &new).await;
        let lease = bench.take_one(&new.key).await;
        assert_eq!((lease.attempt, lease.failures), (former.attempts + 1, 0));
        assert_eq!((&lease.delivery, lease.created), (&new.delivery, job.created));
        bench.settle(lease, Outcome::Complete).await;
        assert_eq!(bench.get(&new.key).await.attempts, former.attempts + 1);
    }
}

pub(crate) async fn an_ended_job_of_the_same_content_begins_again_too(bench: &Workbench) {
    for (n, state) in [State::Done, State::Cancelled, State::Dead].into_iter().enumerate() {
        let former = bench.job_in(state, bench.job(state.into())).await;
        let (new, changed) = changing(bench, &bench.job(state.into()))[n % 2].clone();
        let wanted = if state == State::Dead { changed } else { SubmitResult::Created };
        is_new_life(&answered(bench, &new, wanted).await, &former);
        bench.take_one(&new.key).await;
    }
}

pub(crate) async fn a_dead_job_begins_a_new_life_in_its_place(bench: &Workbench) {
    for mode in [0, 1] {
        let name = format!("job-{mode}");
        let former = bench.job_in(State::Dead, bench.job(&name)).await;
        let before = bench.stats().await;
        let (new, wanted) = changing(bench, &bench.job(&name).content(2).to(OTHER).after(LONG))[mode].clone();
        let job = answered(bench, &new, wanted).await;
        is_new_life(&job, &former);
        let after = bench.stats().await;
        assert_eq!((after.accepted, after.states.dead), (before.accepted, before.states.dead - 1));
        run(bench, &new).await;
        let lease = bench.take_one(&new.key).await;
        assert_eq!((lease.attempt, lease.failures, &lease.delivery), (2, 0, &new.delivery));
    }
    assert_eq!(bench.evict(10).await.next_dead, None, "no entry is left among the dead");
}

pub(crate) async fn a_dead_job_that_was_never_tried_begins_a_new_life_too(bench: &Workbench) {
    let history = History { dead: Some("gone".to_owned()), ..History::default() };
    let import = ImportJob { job: bench.job("a").after(LONG), history: Some(history) };
    let Submitted { answer, job: former } =
        bench.store().import(bench.shard(), &[import]).await.expect("import").remove(0);
    assert_eq!((answer, former.state, former.attempts), (SubmitResult::Created, State::Dead, 0));
    let job = answered(bench, &bench.replacing(bench.job("a").after(LONG)), SubmitResult::Replaced).await;
    is_new_life(&job, &former);
}

pub(crate) async fn an_imported_job_with_attempts_begins_a_new_life(bench: &Workbench) {
    let last = Some(LastAttempt { at: now(), status: Some(500), ..LastAttempt::default() });
    let history = History { attempts: 3, failures: 2, last, ..History::default() };
    let import = ImportJob { job: bench.job("a").after(LONG), history: Some(history) };
    let former = bench.store().import(bench.shard(), &[import]).await.expect("import").remove(0).job;
    let job = answered(bench, &bench.replacing(bench.job("a").after(LONG)), SubmitResult::Replaced).await;
    is_new_life(&job, &former);
    assert_eq!(job.attempts, 3);
}

pub(crate) async fn a_job_that_was_tried_begins_one_new_life_and_not_more(bench: &Workbench) {
    for (n, outcome) in [retry(LONG), retry(ms(0)), release(ms(0)), release(LONG)].into_iter().enumerate() {
        let name = format!("job-{n}");
        let lease = bench.reserved(bench.job(&name)).await;
        bench.settle(lease, outcome).await;
        let mut former = bench.get(&bench.job(&name).key).await;
        let mut tried = true;
        for round in 0..6 {
            let (new, wanted) = changing(bench, &bench.job(&name).after(LONG))[round % 2].clone();
            let job = answered(bench, &new, wanted).await;
            if tried {
                is_new_life(&job, &former);
            } else {
                assert_eq!((job.created, job.attempts), (former.created, former.attempts), "round {round}");
            }
            tried = round == 2;
            if tried {
                run(bench, &new).await;
                let lease = bench.take_one(&new.key).await;
                assert_eq!((lease.attempt, lease.failures), (2, 0));
                bench.settle(lease, retry(LONG)).await;
            }
            former = bench.get(&new.key).await;
        }
        assert_eq!((former.attempts, former.failures), (2, 0));
    }
}

pub(crate) async fn a_revived_job_goes_on_with_its_life(bench: &Workbench) {
    let former = bench.job_in(State::Dead, bench.job("a")).await;
    let new = bench.replacing(bench.job("a").after(LONG));
    let job = answered(bench, &new, SubmitResult::Replaced).await;
    run(bench, &new).await;
    let lease = bench.take_one(&new.key).await;
    bench.settle(lease, bury()).await;
    bench.store().revive(&new.key, bench.token()).await.expect("revive");
    answered(bench, &new, SubmitResult::Repeated).await;
    let lease = bench.take_one(&new.key).await;
    assert_eq!((lease.attempt, lease.created), (former.attempts + 2, job.created));
}

pub(crate) async fn a_lease_of_a_former_life_settles_nothing(bench: &Workbench) {
    for (n, outcome) in [Outcome::Complete, retry(ms(0)), bury(), release(ms(0))].into_iter().enumerate() {
        let stale = bench.stale_lease(bench.job(&format!("job-{n}"))).await;
        let key = stale.key.clone();
        let new = bench.replacing(bench.job(&format!("job-{n}")).content(2));
        answered(bench, &new, SubmitResult::Replaced).await;
        let before = (bench.get(&key).await, bench.stats().await);
        assert_eq!(bench.settle(stale, outcome).await, SettleResult::Stale);
        assert_eq!((bench.get(&key).await, bench.stats().await), before);
        let lease = bench.take_one(&key).await;
        assert_eq!(lease.delivery, new.delivery);
        bench.settle(lease, Outcome::Complete).await;
    }
}

pub(crate) async fn a_settle_of_a_former_life_is_no_repetition(bench: &Workbench) {
    for (n, outcome) in [Outcome::Complete, retry(ms(0)), bury()].into_iter().enumerate() {
        let key = bench.accept(bench.job(&format!("job-{n}"))).await.key;
        let [lease, mut same] = bench.take_twice(&key).await;
        assert_eq!(bench.settle(lease, outcome.clone()).await, SettleResult::Applied);
        let new = bench.replacing(bench.job(&format!("job-{n}")).content(2).after(LONG));
        let job = submit(bench, &new).await.job;
        let renewed = bench.store().renew(&mut same, LONG).await.expect("renew");
        assert_eq!(renewed, Renewed::Stale);
        assert_eq!(bench.settle(same, outcome).await, SettleResult::Stale);
        assert_eq!(bench.get(&key).await, job);
    }
    for (n, outcome) in [Outcome::Complete, retry(ms(0))].into_iter().enumerate() {
        let pulled = bench.pulled(&format!("pull-{n}")).await;
        assert_eq!(bench.settle_receipt(pulled.receipt, outcome.clone()).await, SettleResult::Applied);
        let new = bench.replacing(bench.pull_job(&format!("pull-{n}")).content(2).after(LONG));
        let job = submit(bench, &new).await.job;
        for outcome in [outcome, Outcome::Complete, release(ms(0))] {
            assert_eq!(bench.settle_receipt(pulled.receipt, outcome).await, SettleResult::Stale);
        }
        assert_eq!(bench.get(&pulled.key).await, job);
    }
}

pub(crate) async fn the_first_lease_of_a_new_life_settles_it(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    let new = bench.replacing(bench.job("a").content(2).timeout(BRIEF));
    answered(bench, &new, SubmitResult::Replaced).await;
    let lease = bench.take_one(&new.key).await;
    bench.recover_until(&new.key, State::Ready).await;
    assert_eq!(bench.settle(stale, Outcome::Complete).await, SettleResult::Stale);
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Late);
    assert_eq!(bench.state(&new.key).await, Some(State::Done));
}

pub(crate) async fn a_cancel_of_a_new_life_does_not_ask_about_the_former_one(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    answered(bench, &bench.replacing(bench.job("a").after(LONG)), SubmitResult::Replaced).await;
    assert_eq!(bench.cancel(&stale.key).await, CANCELLED);
}

pub(crate) async fn a_new_life_has_an_attempt_log_of_its_own(bench: &Workbench) {
    let (store, shard) = (bench.store(), bench.shard());
    let note = |lease: &Lease, answer: &'static [u8]| {
        let answer = Bytes::from_static(answer);
        AttemptLogEntry::of(lease, Attempt { at: now(), answer, ..Attempt::default() })
    };
    let lease = bench.reserved(bench.job("a")).await;
    let (early, late) = (note(&lease, b"early"), note(&lease, b"late"));
    store.log_attempts(shard, &[early]).await.expect("note");
    bench.settle(lease, retry(LONG)).await;
    let new = bench.replacing(bench.job("a"));
    answered(bench, &new, SubmitResult::Replaced).await;
    let attempts = async || store.attempts(&new.key).await.expect("attempts").expect("the job is known");
    assert_eq!(attempts().await, [], "those of the former life are not shown");
    let lease = bench.take_one(&new.key).await;
    store.log_attempts(shard, &[note(&lease, b"new"), late]).await.expect("note");
    let shown: Vec<_> =
        attempts().await.into_iter().map(|attempt| (attempt.number, attempt.answer)).collect();
    assert_eq!(shown, [(2, Bytes::from_static(b"new"))]);
}

pub(crate) async fn a_death_of_a_former_life_keeps_its_notice(bench: &Workbench) {
    let with_notice = |mut job: NewJob| {
        job.delivery.on_dead = Some(Box::new(Callback::parse("https://up.example/dead").expect("a URL")));
        job
    };
    let former = bench.job_in(State::Dead, with_notice(bench.job("a"))).await;
    let new = bench.replacing(bench.job("a"));
    answered(bench, &new, SubmitResult::Replaced).await;
    let lease = bench.take_one(&new.key).await;
    bench.settle(lease, bury()).await;
    let later = bench.get(&new.key).await;
    let outbox = bench.store().outbox(bench.shard(), 100).await.expect("outbox");
    let letters: Vec<_> = outbox.pending.into_iter().filter_map(|notice| notice.ended).collect();
    let jobs: Vec<_> = letters.iter().map(|letter| (&letter.job, letter.url.is_some())).collect();
    assert_eq!(jobs, [(&former, true), (&later, false)]);
}

pub(crate) async fn a_bulk_revive_passes_over_a_dead_job_that_began_again(bench: &Workbench) {
    let job = bench.job_in(State::Dead, bench.job("a")).await;
    let (store, shard, filter) = (bench.store(), bench.shard(), of_topic(TOPIC));
    let cursors = cursors(bench, &filter).await;
    assert_eq!(cursors.len(), 1);
    let begun = store.start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 1).await.expect("begin");
    let BulkStart::Bulk(bulk) = begun else { panic!("too many") };
    let new = bench.postponing(bench.job("a").after(LONG));
    let changed = answered(bench, &new, SubmitResult::Postponed).await;
    store.revive_many(shard, bulk.id, &cursors).await.expect("revive");
    assert_eq!(store.purge_many(shard, &cursors).await.expect("purge"), 0);
    assert_eq!(bench.get(&job.key).await, changed);
}
