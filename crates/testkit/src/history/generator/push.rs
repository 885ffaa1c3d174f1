//! Kinds of jobs with a URL in generated histories, of which none is hit by a fault.

use ringback_core::store_types::TransitionName;

use super::scene::{Attempt, OpenDelivery, Scene, first};
use crate::history::digest::Digest;
use crate::history::entry::{Call, Entry, JobState, MoveCall, MoveKind, Observed, Transition};

pub(super) fn plain(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("plain", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    scene.succeed(&draft, &first(due));
}

pub(super) fn at(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("at", number), scene.moment(base));
    (draft.at, draft.delay) = (Some(scene.store(t) + scene.random(500, 1_500)), None);
    let (_, due) = scene.submit(&draft, t);
    scene.succeed(&draft, &first(due));
}

pub(super) fn retried(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("retried", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    let mut attempt = first(due);
    for _ in 0..scene.random(1, 4) {
        let status = [503, 302, 500, 0][scene.random(0, 4) as usize];
        let after = (status == 503).then_some(300);
        attempt = scene.fail(&draft, &attempt, status, after);
    }
    scene.succeed(&draft, &attempt);
}

/// A job whose policy has much jitter: two attempts fail, the third succeeds.
pub(super) fn patient(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("patient", number), scene.moment(base));
    draft.policy = 1;
    let (_, due) = scene.submit(&draft, t);
    let attempt = scene.fail(&draft, &first(due), 500, None);
    let attempt = scene.fail(&draft, &attempt, 500, None);
    scene.succeed(&draft, &attempt);
}

pub(super) fn exhausted(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("exhausted", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    let mut attempt = first(due);
    for _ in 0..4 {
        attempt = scene.fail(&draft, &attempt, 503, None);
    }
    scene.leave(&draft, JobState::Dead, due, (4, 4), "exhausted");
}

pub(super) fn gone(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("gone", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    scene.fail(&draft, &first(due), 410, None);
    scene.leave(&draft, JobState::Dead, due, (1, 1), "gone");
}

/// Adds the request to cancel a job, without an outcome. Returns the number of the call.
fn cancel(scene: &mut Scene, job: &str, t: u64) -> u64 {
    let n = scene.number();
    scene.push(t, &Entry::Cancel(Call { t, n, job }));
    n
}

pub(super) fn cancelled(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("cancelled", number), scene.moment(base));
    draft.delay = Some(3_000);
    let (answered, _) = scene.submit(&draft, t);
    for t in [answered + 50_000, answered + 90_000] {
        let n = cancel(scene, &draft.name, t);
        scene.ok(t + 900, n, Some(JobState::Cancelled), None);
    }
    scene.ledger.cancelled += 1;
}

pub(super) fn cancelled_in_flight(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("flight", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    let OpenDelivery { d, start } = scene.arrive(&draft, &first(due));
    let n = cancel(scene, &draft.name, start + 1_000);
    scene.ok(start + 2_000, n, Some(JobState::Reserved), None);
    scene.respond(start + 9_000, d, 503, None);
    scene.ledger.cancelled += 1;
}

pub(super) fn cancelled_late(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("late", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    let end = scene.succeed(&draft, &first(due));
    let n = cancel(scene, &draft.name, end + 50_000);
    scene.refuse(end + 51_000, n, 409);
    let n = cancel(scene, &format!("busy/nobody-{number}"), t);
    scene.refuse(t + 900, n, 404);
}

/// A job whose first submit is accepted but its answer is lost; the client repeats the submit.
pub(super) fn repeated(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("repeated", number), scene.moment(base));
    let n = scene.send(&draft, t);
    scene.give_up(t + 2_000, n);
    let due = scene.accept(&draft, t + 500);
    let n = scene.send(&draft, t + 5_000);
    scene.answer(t + 6_000, n, 200, &draft, due);
    scene.succeed(&draft, &first(due));
}

pub(super) fn keyed(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("keyed", number), scene.moment(base));
    let named = draft.clone();
    draft.name = draft.name.split_inclusive('/').next().unwrap_or_default().to_owned();
    draft.key = Some(format!("key-{number}"));
    let n = scene.send(&draft, t);
    let due = scene.accept(&draft, t + 300);
    scene.created += 1;
    scene.answer(t + 1_000, n, 201, &named, due);
    let n = scene.send(&draft, t + 5_000);
    scene.answer(t + 6_000, n, 200, &named, due);
    draft.body = Digest::of(b"other");
    let n = scene.send(&draft, t + 9_000);
    scene.refuse(t + 9_900, n, 409);
    scene.succeed(&named, &first(due));
}

/// A job with an idempotency key and no id. The answer that accepts it is lost, and the client repeats the submit.
pub(super) fn keyed_repeated(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("keylost", number), scene.moment(base));
    let named = draft.clone();
    draft.name = draft.name.split_inclusive('/').next().unwrap_or_default().to_owned();
    draft.key = Some(format!("key-{number}"));
    let n = scene.send(&draft, t);
    scene.give_up(t + 2_000, n);
    let due = scene.accept(&draft, t + 300);
    let n = scene.send(&draft, t + 5_000);
    scene.answer(t + 6_000, n, 200, &named, due);
    scene.succeed(&named, &first(due));
}

/// A submit whose answer is lost. Whether the job was accepted and delivered is random.
pub(super) fn unknown(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("unknown", number), scene.moment(base));
    let n = scene.send(&draft, t);
    scene.give_up(t + 2_000, n);
    if scene.random(0, 2) == 0 {
        let due = scene.accept(&draft, t + 500);
        scene.succeed(&draft, &first(due));
    }
}

/// A job whose id the server chose; the answer with the id was lost.
pub(super) fn anonymous(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("anonymous", number), scene.moment(base));
    let named = draft.clone();
    draft.name = draft.name.split_inclusive('/').next().unwrap_or_default().to_owned();
    let n = scene.send(&draft, t);
    scene.give_up(t + 2_000, n);
    let due = scene.accept(&draft, t + 500);
    scene.succeed(&named, &first(due));
}

/// A job whose first attempt times out before the receiver answers; the second succeeds.
pub(super) fn slow(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("slow", number), scene.moment(base));
    let (_, due) = scene.submit(&draft, t);
    let OpenDelivery { d, start } = scene.arrive(&draft, &first(due));
    let late = scene.random(1_200_000, 2_000_000);
    scene.respond(start + late, d, 200, None);
    let attempt = scene.after_failure(&draft, 1, 1, start + 999_500, None);
    scene.succeed(&draft, &attempt);
}

/// Adds the request to move a job, without an outcome. Returns the number of the call.
fn ask(scene: &mut Scene, job: &str, t: u64, kind: MoveKind, delay: Option<u64>) -> u64 {
    let n = scene.number();
    scene.push(t, &Entry::Move(MoveCall { t, n, job, kind, at: None, delay }));
    n
}

pub(super) fn moved(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("moved", number), scene.moment(base));
    draft.delay = Some(500);
    let (answered, _) = scene.submit(&draft, t);
    let n = ask(scene, &draft.name, answered + 10_000, MoveKind::Reschedule, Some(1_500));
    let due = scene.store(answered + 10_500) + 1_500;
    scene.ok(answered + 11_000, n, Some(JobState::Delayed), Some(due));
    scene.succeed(&draft, &first(due));
}

pub(super) fn run_early(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("run", number), scene.moment(base));
    draft.delay = Some(3_600_000);
    let (answered, _) = scene.submit(&draft, t);
    let n = ask(scene, &draft.name, answered + 10_000, MoveKind::Run, None);
    let due = scene.store(answered + 10_500);
    scene.ok(answered + 11_000, n, Some(JobState::Ready), Some(due));
    scene.succeed(&draft, &first(due));
}

pub(super) fn refused(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("refused", number), scene.moment(base));
    let n = scene.send(&draft, t);
    scene.refuse(t + 900, n, 422);
}

pub(super) fn revived(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("revived", number), scene.moment(base));
    draft.policy = 1;
    let (_, due) = scene.submit(&draft, t);
    let mut attempt = first(due);
    for _ in 0..3 {
        attempt = scene.fail(&draft, &attempt, 500, None);
    }
    let t = attempt.since + 100_000;
    let n = ask(scene, &draft.name, t, MoveKind::Revive, None);
    let due = scene.store(t + 500);
    scene.ok(t + 1_000, n, Some(JobState::Ready), Some(due));
    scene.succeed(&draft, &Attempt { number: 4, due, since: 0 });
}

pub(super) fn replaced(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("replaced", number), scene.moment(base));
    draft.delay = Some(500);
    let (answered, _) = scene.submit(&draft, t);
    draft.body = Digest::of(b"newer");
    draft.replace = true;
    let n = scene.send(&draft, answered + 10_000);
    let due = scene.store(answered + 10_500) + 500;
    scene.answer(answered + 11_000, n, 200, &draft, due);
    scene.succeed(&draft, &first(due));
}

/// A job that is due in a year, so it is still delayed at the end.
pub(super) fn pending(scene: &mut Scene, base: u64, number: u64) {
    let (mut draft, t) = (scene.draft("pending", number), scene.moment(base));
    draft.delay = Some(365 * 86_400_000);
    let (_, due) = scene.submit(&draft, t);
    scene.leave(&draft, JobState::Delayed, due, (0, 0), "");
}

/// A job that is delivered once, with two of its states and all of its transitions in the history.
pub(super) fn observed(scene: &mut Scene, base: u64, number: u64) {
    let (draft, t) = (scene.draft("observed", number), scene.moment(base));
    let (answered, due) = scene.submit(&draft, t);
    let end = scene.succeed(&draft, &first(due));
    let job = draft.name.as_str();
    for (t, state) in [(answered, JobState::Delayed), (end + 50_000, JobState::Done)] {
        scene.push(t, &Entry::State(Observed { t, asked: t - 100, job, state, places: 1 }));
    }
    for (transition, from, to, t) in [
        (TransitionName::Submit, JobState::Nothing, JobState::Delayed, answered),
        (TransitionName::Promote, JobState::Delayed, JobState::Ready, end - 90),
        (TransitionName::Reserve, JobState::Ready, JobState::Reserved, end - 80),
        (TransitionName::Complete, JobState::Reserved, JobState::Done, end + 400),
    ] {
        scene.push(t, &Entry::Transition(Transition { t, job, transition, from, to }));
    }
}
