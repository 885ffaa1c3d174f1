//! Cases of `if_exists`: submits that replace, postpone or update the job with their key, what they do in each state,
//! how their repetitions are recognised, and limits.

mod generations;
mod times;

use ringback_core::job::{Callback, Due, IfExists, Job, NewJob};
use ringback_core::store_types::{Limit, MoveResult, SettleResult, SubmitResult, Submitted, Token};
use tokio::time::sleep_until;

pub(crate) use self::generations::*;
pub(crate) use self::times::*;
use super::job_builders::{BRIEF, LONG, STATES, With, ms, retry};
use super::workbench::{Workbench, now};
use crate::prelude::*;

const OTHER: &str = "http://other.example";

/// A replacing and a postponing submit of the job, each with a token of its own and with the answer for a pending job.
fn changing(bench: &Workbench, job: &NewJob) -> [(NewJob, SubmitResult); 2] {
    [
        (bench.replacing(job.clone()), SubmitResult::Replaced),
        (bench.postponing(job.clone()), SubmitResult::Postponed),
    ]
}

async fn submit(bench: &Workbench, job: &NewJob) -> Submitted {
    bench.submit(std::slice::from_ref(job)).await.remove(0)
}

/// Submits a job, and asserts the answer and that the stored job is the returned one.
async fn answered(bench: &Workbench, job: &NewJob, wanted: SubmitResult) -> Job {
    let answer = submit(bench, job).await;
    assert_eq!(answer.answer, wanted, "{}", job.key);
    assert_eq!(bench.get(&job.key).await, answer.job);
    answer.job
}

/// The same job as a submit that updates other content.
fn updating(bench: &Workbench, job: NewJob) -> NewJob {
    NewJob { if_exists: IfExists::Update { token: bench.token() }, ..job }
}

/// Makes a delayed job due now.
async fn run(bench: &Workbench, job: &NewJob) {
    bench.store().run(&job.key, bench.token()).await.expect("run");
}

pub(crate) async fn a_submit_for_a_free_id_creates_a_job_whatever_it_may_change(bench: &Workbench) {
    for (n, (new, _)) in changing(bench, &bench.job("a")).into_iter().enumerate() {
        let new = NewJob { key: bench.job(&format!("job-{n}")).key, ..new };
        let job = answered(bench, &new, SubmitResult::Created).await;
        assert_eq!((job.state, job.attempts, bench.stats().await.accepted), (State::Ready, 0, n as u64 + 1));
        assert_eq!(bench.take_one(&new.key).await.delivery, new.delivery);
    }
}

pub(crate) async fn a_pending_job_gets_content_time_and_url_of_the_submit(bench: &Workbench) {
    for (from, wait, mode) in [State::Delayed, State::Ready]
        .into_iter()
        .flat_map(|from| [ms(0), LONG].map(|wait| (from, wait)))
        .flat_map(|(from, wait)| [0, 1].map(|mode| (from, wait, mode)))
    {
        let name = format!("{from}-{}-{mode}", wait.as_secs());
        let first = bench.job_in(from, bench.job(&name)).await;
        let accepted = bench.stats().await.accepted;
        let new = bench.job(&name).content(2).body(noise(5, 5000).into()).to(OTHER).timeout(LONG).after(wait);
        let (new, wanted) = changing(bench, &new)[mode].clone();
        let before = now();
        let job = answered(bench, &new, wanted).await;
        let state = if wait.is_zero() { State::Ready } else { State::Delayed };
        let wanted = (state, first.created, 0, 0);
        assert_eq!((job.state, job.created, job.attempts, job.failures), wanted, "{name}");
        assert!(job.due >= before.plus(wait) && job.due <= now().plus(wait + ms(1)), "{name}: {}", job.due);
        assert_eq!(bench.stats().await.accepted, accepted, "{name}");
        bench.check().await;

        if !wait.is_zero() {
            assert!(bench.take(1).await.is_empty(), "{name}: nothing of the former content is delivered");
            run(bench, &new).await;
        }
        let lease = bench.take_one(&new.key).await;
        assert_eq!((&lease.delivery, lease.attempt), (&new.delivery, 1), "{name}");
        bench.settle(lease, Outcome::Complete).await;
        assert!(bench.take(1).await.is_empty(), "{name}: it is delivered once");
    }
    assert_eq!(bench.promote(100).await.next_due, None);
}

pub(crate) async fn the_same_content_takes_its_own_place_with_a_new_time(bench: &Workbench) {
    for (mode, wait) in [(0, LONG / 2), (1, LONG * 20)] {
        let job = bench.job(&format!("job-{mode}"));
        let first = bench.accept(job.clone().after(LONG)).await;
        let (again, wanted) = changing(bench, &job.after(wait))[mode].clone();
        let changed = answered(bench, &again, wanted).await;
        assert!(changed.due != first.due && changed.created == first.created, "{changed:?}");
    }
}

pub(crate) async fn a_push_job_may_become_a_pull_job_and_back(bench: &Workbench) {
    let (push, pull) = (bench.job("a"), bench.pull_job("a"));
    bench.accept(push.clone()).await;
    answered(bench, &bench.replacing(pull.clone()), SubmitResult::Replaced).await;
    assert!(bench.take(1).await.is_empty());
    answered(bench, &bench.replacing(push.clone()), SubmitResult::Replaced).await;
    assert!(bench.pull(1, LONG).await.jobs.is_empty());
    bench.check().await;
    answered(bench, &bench.postponing(pull.clone()), SubmitResult::Postponed).await;
    let pulled = bench.pull_one(&pull.key, LONG).await;
    assert_eq!(pulled.delivery.callback, Callback::pull());
    assert_eq!(pulled.attempt, 1);
}

pub(crate) async fn a_reserved_job_stays_and_the_answer_says_until_when(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a").timeout(BRIEF)).await;
    let stats = bench.stats().await;
    for (new, _) in changing(bench, &bench.job("a").content(2).after(LONG)) {
        let answer = submit(bench, &new).await;
        let SubmitResult::Reserved { retry_after } = answer.answer else { panic!("{:?}", answer.answer) };
        assert!(retry_after <= BRIEF + ms(1), "{retry_after:?}");
        assert_eq!((answer.job.state, bench.stats().await), (State::Reserved, stats.clone()));
    }
    // The lease was granted later than the call began.
    sleep_until(lease.deadline() + ms(500)).await;
    for (new, _) in changing(bench, &bench.job("a").content(2).after(LONG)) {
        assert_eq!(submit(bench, &new).await.answer, SubmitResult::Reserved { retry_after: ms(0) });
    }
    // A cancel that is requested changes nothing about that.
    bench.cancel(&lease.key).await;
    let new = bench.replacing(bench.job("a").content(2));
    assert_eq!(submit(bench, &new).await.answer, SubmitResult::Reserved { retry_after: ms(0) });
    let key = lease.key.clone();
    assert_eq!(bench.settle(lease, retry(LONG)).await, SettleResult::Applied);
    assert_eq!(bench.state(&key).await, Some(State::Cancelled));
    answered(bench, &new, SubmitResult::Created).await;

    let pulled = bench.pulled("b").await;
    let answer = submit(bench, &bench.replacing(bench.job("b").content(2))).await;
    let SubmitResult::Reserved { retry_after } = answer.answer else { panic!("{:?}", answer.answer) };
    assert!(retry_after <= LONG + ms(1) && retry_after > LONG / 2, "{retry_after:?}");
    assert_eq!(pulled.attempt, 1);
}

pub(crate) async fn a_refused_submit_of_the_newest_content_is_a_repetition(bench: &Workbench) {
    let first = bench.accept(bench.job("a").after(LONG)).await;
    let new = bench.replacing(bench.job("a").content(2).after(LONG));
    let changed = answered(bench, &new, SubmitResult::Replaced).await;
    let answers = bench.submit(&[bench.job("a").content(2), bench.job("a")]).await;
    assert_eq!((answers[0].answer, &answers[0].job), (SubmitResult::Repeated, &changed));
    assert_eq!((answers[1].answer, &answers[1].job), (SubmitResult::Conflict, &changed));
    assert_eq!(changed.created, first.created);
}

pub(crate) async fn a_repeated_token_changes_nothing_in_any_state(bench: &Workbench) {
    for (state, mode) in STATES.into_iter().flat_map(|state| [0, 1].map(|mode| (state, mode))) {
        let job = bench.job(&format!("{state}-{mode}"));
        let (job, _) = changing(bench, &job)[mode].clone();
        let known = bench.job_in(state, job.clone()).await;
        let stats = bench.stats().await;
        for again in [job.clone(), job.clone().after(LONG)] {
            let answer = submit(bench, &again).await;
            assert_eq!((answer.answer, &answer.job), (SubmitResult::Repeated, &known), "{state}");
        }
        let other = submit(bench, &job.content(9)).await;
        assert_eq!((other.answer, &other.job), (SubmitResult::Conflict, &known), "{state}");
        assert_eq!((bench.get(&known.key).await, bench.stats().await), (known, stats), "{state}");
        while let Some(lease) = bench.take(1).await.pop() {
            bench.settle(lease, Outcome::Complete).await;
        }
    }
}

pub(crate) async fn a_repeated_change_is_known_whatever_became_of_the_job(bench: &Workbench) {
    let first = bench.accept(bench.job("a").after(LONG)).await;
    let new = bench.replacing(bench.job("a").content(2));
    answered(bench, &new, SubmitResult::Replaced).await;
    // A move by name has a token of its own.
    let moved = bench.token();
    for _ in 0..2 {
        bench.store().run(&first.key, moved).await.expect("run");
        answered(bench, &new, SubmitResult::Repeated).await;
    }
    let lease = bench.take_one(&first.key).await;
    answered(bench, &new, SubmitResult::Repeated).await;
    bench.settle(lease, retry(ms(0))).await;
    answered(bench, &new, SubmitResult::Repeated).await;
    run(bench, &new).await;
    let lease = bench.take_one(&first.key).await;
    assert_eq!((lease.attempt, lease.failures), (2, 1), "no repetition began a new life");
    bench.settle(lease, Outcome::Complete).await;
    assert_eq!(answered(bench, &new, SubmitResult::Repeated).await.state, State::Done);
}

pub(crate) async fn a_repeated_move_is_known_after_a_change(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(LONG)).await;
    let (store, token, moved) = (bench.store(), bench.token(), Due::At(now().plus(LONG * 3)));
    store.reschedule(&job.key, moved, token).await.expect("reschedule");
    let changed = bench.job("a").content(2).after(LONG);
    let changed = answered(bench, &bench.replacing(changed), SubmitResult::Replaced).await;
    let again = store.reschedule(&job.key, moved, token).await.expect("reschedule");
    assert_eq!(again, MoveResult::Applied(changed.clone()), "the change came after the move");
    assert_eq!(bench.get(&job.key).await, changed);
}

pub(crate) async fn only_the_last_token_of_a_job_is_known(bench: &Workbench) {
    let one = bench.replacing(bench.job("a").content(1).after(LONG));
    let two = bench.postponing(bench.job("a").content(2).after(LONG));
    answered(bench, &one, SubmitResult::Created).await;
    answered(bench, &two, SubmitResult::Postponed).await;
    answered(bench, &two, SubmitResult::Repeated).await;
    answered(bench, &one, SubmitResult::Replaced).await;
    answered(bench, &one, SubmitResult::Repeated).await;
    assert_eq!(bench.stats().await.accepted, 1);
}

pub(crate) async fn the_token_of_another_job_means_nothing(bench: &Workbench) {
    let token = Token::of_key("order-17");
    for name in ["a", "b"] {
        let job = NewJob { if_exists: IfExists::Replace { token }, ..bench.job(name).after(LONG) };
        answered(bench, &job, SubmitResult::Created).await;
        answered(bench, &job, SubmitResult::Repeated).await;
    }
}

pub(crate) async fn a_key_twice_in_one_batch_is_changed_in_order(bench: &Workbench) {
    let job = |content| bench.job("a").content(content).after(LONG);
    let batch = [
        job(1),
        bench.replacing(job(2)),
        bench.job("b"),
        bench.postponing(job(3).to(OTHER)),
        job(1),
        job(3),
        bench.replacing(bench.job("a").content(4)),
    ];
    let answers: Vec<_> = bench.submit(&batch).await.into_iter().map(|answer| answer.answer).collect();
    use SubmitResult::{Conflict, Created, Postponed, Repeated, Replaced};
    assert_eq!(answers, [Created, Replaced, Created, Postponed, Conflict, Repeated, Replaced]);
    assert_eq!(bench.stats().await.accepted, 2);
    assert_eq!(bench.take(10).await.len(), 2);
}

pub(crate) async fn a_batch_of_500_changes_is_answered_in_order(bench: &Workbench) {
    let names: Vec<_> = (0..500).map(|n| format!("job-{n}")).collect();
    let job = |n: usize| bench.job_of(&format!("topic-{}", n % 25), &names[n]);
    for batch in (0..500).collect::<Vec<_>>().chunks(250) {
        let jobs: Vec<_> = batch.iter().map(|n| job(*n).after(LONG * (*n as u32 % 40))).collect();
        bench.submit(&jobs).await;
    }
    let new: Vec<_> = (0..500)
        .map(|n| {
            let job =
                job(n).content(2).body(noise(7, n * 8).into()).after(if n % 2 == 0 { ms(0) } else { LONG });
            if n % 3 == 0 { bench.replacing(job) } else { bench.postponing(job) }
        })
        .collect();
    for (n, (answer, new)) in bench.submit(&new).await.iter().zip(&new).enumerate() {
        let wanted = if n % 3 == 0 { SubmitResult::Replaced } else { SubmitResult::Postponed };
        assert_eq!((answer.answer, &answer.job.key), (wanted, &new.key));
    }
    let stats = bench.stats().await;
    assert_eq!((stats.accepted, stats.states.ready, stats.states.delayed), (500, 250, 250));
    let mut taken = 0;
    while taken < 250 {
        let leases = bench.take(500).await;
        assert!(!leases.is_empty(), "{taken} of 250 can be reserved");
        assert!(leases.iter().all(|lease| lease.delivery.body.bytes.first() != Some(&b'{')));
        taken += leases.len();
    }
}

/// With as many topics in the shard as there may be: asserts that a pending job is changed, and that an ended job
/// without another job of its topic begins no new life. Returns the refused submit.
pub(crate) async fn only_new_lives_are_refused(bench: &Workbench, pending: NewJob, ended: NewJob) -> NewJob {
    answered(bench, &bench.replacing(pending.content(2)), SubmitResult::Replaced).await;
    let ended = bench.replacing(ended);
    assert_eq!(submit(bench, &ended).await.answer, SubmitResult::Full(Limit::Topics));
    assert_eq!(bench.state(&ended.key).await, Some(State::Cancelled), "its tombstone stays");
    ended
}

pub(crate) async fn an_update_changes_other_content_of_a_job_that_has_not_ended_and_nothing_else(
    bench: &Workbench,
) {
    let free = updating(bench, bench.job("free").after(LONG));
    answered(bench, &free, SubmitResult::Created).await;
    for state in STATES {
        let old = bench.job(state.into()).after(if state == State::Delayed { LONG } else { ms(0) });
        let job = bench.job_in(state, old.clone()).await;
        let wanted = if state == State::Cancelled { SubmitResult::Cancelled } else { SubmitResult::Repeated };
        assert_eq!(
            submit(bench, &updating(bench, old.clone())).await,
            Submitted { answer: wanted, job },
            "{state}"
        );
        let new =
            updating(bench, bench.job(state.into()).content(2).body(noise(9, 9000).into()).after(2 * LONG));
        let answer = submit(bench, &new).await;
        match (state, answer.answer) {
            (State::Delayed | State::Ready, SubmitResult::Replaced) => {
                assert_eq!((answer.job.state, answer.job.attempts), (State::Delayed, 0));
                let again = updating(
                    bench,
                    bench.job(state.into()).content(2).body(noise(9, 9000).into()).after(2 * LONG),
                );
                answered(bench, &again, SubmitResult::Repeated).await;
                run(bench, &new).await;
                assert_eq!(bench.take_one(&new.key).await.delivery.body, new.delivery.body);
            }
            (State::Reserved, SubmitResult::Reserved { .. })
            | (State::Dead | State::Done | State::Cancelled, SubmitResult::Conflict) => {}
            (state, other) => panic!("{state}: {other:?}"),
        }
    }
    let jobs = STATES.len() as u64 + 1;
    assert_eq!(bench.stats().await.accepted, jobs, "no other life has begun");
}
