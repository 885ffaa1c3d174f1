//! The properties that must hold at the end of a simulation, as checks that panic with the history: of the store, and
//! of each job and its attempts. Time is virtual and exact, so the bounds are narrow.

use std::collections::BTreeMap;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::Job;
use ringback_core::retry::{MAX_RETRY_AFTER, Max, RetryPolicy};
use ringback_core::state::State;
use ringback_core::store_types::Repair;

use crate::history::{Attempt, ResponseKind};
use crate::world::Simulation;

/// The greatest lateness of an attempt while there are no faults.
pub(crate) const LATE: Duration = Duration::from_millis(10);
/// The longest time from an attempt until its failure is settled while there are no faults.
const SETTLED_WITHIN: Duration = Duration::from_millis(30);
/// How long after its end a fault can still have effects.
const GRACE: Duration = Duration::from_secs(120);

/// A job as it was submitted.
#[derive(Clone, Debug)]
pub(crate) struct Submitted {
    pub(crate) topic: &'static str,
    pub(crate) id: String,
    pub(crate) due: Timestamp,
    pub(crate) body: String,
    pub(crate) retry: RetryPolicy,
}

impl Submitted {
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.topic, self.id)
    }
}

/// Checks the store: it is consistent, no job is missing, and its counts add up to the jobs that were accepted.
pub(crate) async fn check_store(simulation: &Simulation) {
    let check = simulation.store.check(Repair::No).await.expect("a check");
    assert!(check.is_clean(), "{check:?}\n{}", simulation.history.log());
    let stats = simulation.store.stats().await.expect("the counts");
    let states = &stats.states;
    let sum = states.delayed + states.ready + states.reserved + states.done + states.dead + states.cancelled;
    assert_eq!(stats.accepted, sum + states.purged, "{stats:?}\n{}", simulation.history.log());
    assert_eq!(states.missing, 0, "{stats:?}\n{}", simulation.history.log());
}

/// Returns the attempts of each job, in order. The keys are `topic/id`.
pub(crate) fn by_job(simulation: &Simulation) -> BTreeMap<String, Vec<Attempt>> {
    let mut jobs: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
    for attempt in simulation.history.attempts() {
        jobs.entry(attempt.job.clone()).or_default().push(attempt);
    }
    jobs
}

/// Checks the attempts and the end of a job that was neither changed nor cancelled: none lost, early, late or too many.
/// Where a fault may have had an effect, the checks are looser.
pub(crate) fn check_job(simulation: &Simulation, submitted: &Submitted, job: &Job, attempts: &[Attempt]) {
    let log = || format!("{submitted:?}\n{job:?}\n{attempts:#?}\n{}", simulation.history.log());
    let has_faults = |from, to| simulation.history.is_any_fault(from, to, GRACE);
    // No invention.
    for attempt in attempts {
        assert_eq!(attempt.body, submitted.body, "another body: {}", log());
        assert_eq!(attempt.webhook_id, attempts[0].webhook_id, "another webhook-id: {}", log());
    }
    let Some(first) = attempts.first() else { panic!("lost: {}", log()) };
    // Never early, and never late without a fault.
    assert_eq!(first.due, submitted.due, "another due time: {}", log());
    for attempt in attempts {
        assert!(attempt.started >= attempt.due, "early: {}", log());
        let is_late = attempt.started.since(attempt.due) > LATE;
        assert!(!is_late || has_faults(attempt.due, attempt.started), "late: {}", log());
    }
    // The fewest and the most failures that the job can have.
    let mut failures = [0, 0];
    for (attempt, next) in attempts.iter().zip(attempts.iter().skip(1)) {
        assert!(next.number > attempt.number, "numbers do not grow: {}", log());
        let ended = attempt.ended.unwrap_or(attempt.started);
        if has_faults(attempt.started, next.started) {
            // The attempt may not have been settled.
            failures[1] += 1;
            continue;
        }
        failures = failures.map(|count| count + 1);
        assert!(!attempt.is_success(), "delivered twice: {}", log());
        assert!(!matches!(attempt.answered, Some(ResponseKind::Status(410))), "after 410: {}", log());
        let waits = (failures[0]..=failures[1]).filter_map(|n| tier(&submitted.retry, n, attempt.answered));
        let waits: Vec<_> = waits.collect();
        assert!(!waits.is_empty(), "an attempt too many: {}", log());
        let fits = |[shortest, longest]: &[Duration; 2]| {
            next.due >= ended.plus(*shortest) && next.due <= ended.plus(*longest + SETTLED_WITHIN)
        };
        assert!(waits.iter().any(fits), "{} after {ended} is not within {waits:?}: {}", next.due, log());
    }
    check_end(submitted, job, attempts, failures[0], has_faults(first.started, simulation.now()), &log);
}

/// Checks that the job has ended as its attempts require. `failures` is the number of failures before the last attempt.
fn check_end(
    submitted: &Submitted,
    job: &Job,
    attempts: &[Attempt],
    failures: u32,
    has_faults: bool,
    log: &dyn Fn() -> String,
) {
    let last = attempts.last().map(|attempt| attempt.answered);
    let is_delivered = attempts.iter().any(Attempt::is_success);
    match (job.state, job.reason.as_deref()) {
        (State::Done, _) => assert!(is_delivered, "done, but never delivered: {}", log()),
        (State::Dead, Some("gone")) => {
            assert!(attempts.iter().any(|one| one.answered == Some(ResponseKind::Status(410))), "{}", log());
        }
        (State::Dead, Some("exhausted")) => {
            let all = tier(&submitted.retry, job.failures, None);
            assert!(all.is_none(), "dead before its policy ends: {}", log());
            assert!(has_faults || !is_delivered, "dead, but delivered: {}", log());
        }
        (State::Dead, Some("lost")) if has_faults => {}
        _ => panic!("it has not ended: {}", log()),
    }
    if !has_faults {
        let is_done = last.flatten().is_some_and(|answer| matches!(answer, ResponseKind::Status(200..=299)));
        assert_eq!(job.state == State::Done, is_done, "{}", log());
        assert_eq!(job.attempts as usize, attempts.len(), "{}", log());
        assert_eq!(job.failures, failures + u32::from(!is_done), "{}", log());
    }
}

/// Returns the shortest and the longest wait after the failure number `failures`; `None` if no attempt follows it.
fn tier(retry: &RetryPolicy, failures: u32, answered: Option<ResponseKind>) -> Option<[Duration; 2]> {
    let tiers = u32::try_from(retry.delays().len()).expect("few tiers");
    let max = match retry.max() {
        Max::Tiers => tiers + 1,
        Max::Failures(max) => max,
        Max::Unlimited => u32::MAX,
    };
    if failures >= max {
        return None;
    }
    let tier = retry.delays()[(failures.min(tiers) - 1) as usize];
    let asked = match answered {
        Some(ResponseKind::RetryAfter(seconds)) => Duration::from_secs(seconds).min(MAX_RETRY_AFTER),
        Some(ResponseKind::Status(_) | ResponseKind::Broken | ResponseKind::Hang) | None => Duration::ZERO,
    };
    let shortest = tier.max(asked);
    Some([shortest, shortest + tier.mul_f32(retry.jitter())])
}
