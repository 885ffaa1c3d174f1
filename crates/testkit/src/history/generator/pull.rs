//! Kinds of pull jobs in generated histories, with the calls of their consumers.

use super::scene::{Draft, Scene};
use crate::history::entry::{Answered, Entry, JobState, Lease, Reserve, Settle, SettleKind};

/// How long a lease lasts, in ms.
const TTR: u64 = 1_000;

/// A lease that a consumer has.
struct HeldLease {
    token: String,
    granted: u64,
    deadline: u64,
}

/// Submits a pull job. Returns the job and its due time.
fn submit(scene: &mut Scene, kind: &str, base: u64, number: u64) -> (Draft, u64) {
    let (mut draft, t) = (scene.draft(kind, number), scene.moment(base));
    draft.url = None;
    let (_, due) = scene.submit(&draft, t);
    (draft, due)
}

/// Reserves a job just after its due time. Returns the lease.
fn reserve(scene: &mut Scene, draft: &Draft, attempt: u32, due: u64) -> HeldLease {
    let n = scene.number();
    let t = scene.host(due) + scene.random(500, 2_000);
    scene.push(t, &Entry::Reserve(Reserve { t, n }));
    let (taken, granted) = (t + 300, t + scene.random(400, 1_500));
    let token = format!("receipt-{n}");
    let deadline = scene.store(taken) + TTR;
    let (job, body) = (draft.name.as_str(), draft.body);
    scene.ok(granted, n, None, None);
    scene.push(granted, &Entry::Lease(Lease { t: granted, n, job, token: &token, attempt, deadline, body }));
    HeldLease { token, granted, deadline }
}

/// Adds the request to settle a lease, without an outcome. Returns the number of the call.
fn ask(scene: &mut Scene, held: &HeldLease, t: u64, kind: SettleKind) -> u64 {
    let n = scene.number();
    scene.push(t, &Entry::Settle(Settle { t, n, token: &held.token, kind }));
    n
}

/// Settles a lease. Returns the time of the answer.
fn settle(scene: &mut Scene, held: &HeldLease, kind: SettleKind) -> u64 {
    let t = held.granted + scene.random(1_000, 100_000);
    let n = ask(scene, held, t, kind);
    scene.ok(t + 900, n, None, None);
    t + 900
}

fn finish(scene: &mut Scene, held: &HeldLease) {
    let answered = settle(scene, held, SettleKind::Finish);
    // A repetition is answered as the first one was.
    if scene.random(0, 4) == 0 {
        let n = ask(scene, held, answered + 2_000, SettleKind::Finish);
        scene.ok(answered + 3_000, n, None, None);
    }
    scene.ledger.done += 1;
}

pub(super) fn finished(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = submit(scene, "pulled", base, number);
    let held = reserve(scene, &draft, 1, due);
    finish(scene, &held);
}

pub(super) fn retried(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = submit(scene, "pullretry", base, number);
    let held = reserve(scene, &draft, 1, due);
    let answered = settle(scene, &held, SettleKind::Retry);
    let due = scene.after_failure(&draft, 1, 1, answered, None).due;
    let held = reserve(scene, &draft, 2, due);
    finish(scene, &held);
}

/// A job whose first consumer settles after its lease has expired and is refused; a second consumer finishes the job.
pub(super) fn expired(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = submit(scene, "expired", base, number);
    let stale = reserve(scene, &draft, 1, due);
    let recovered = scene.host(stale.deadline) + scene.random(100, 5_000);
    let due = scene.after_failure(&draft, 1, 1, recovered, None).due;
    let held = reserve(scene, &draft, 2, due);
    let n = ask(scene, &stale, held.granted + 500, SettleKind::Finish);
    scene.refuse(held.granted + 1_000, n, 409);
    finish(scene, &held);
}

pub(super) fn renewed(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = submit(scene, "renewed", base, number);
    let mut held = reserve(scene, &draft, 1, due);
    let t = held.granted + 500_000;
    let n = ask(scene, &held, t, SettleKind::Renew);
    let deadline = Some(scene.store(t + 300) + TTR);
    scene.push(t + 900, &Entry::Ok(Answered { t: t + 900, n, deadline, ..Answered::default() }));
    // Later than its first deadline.
    held.granted += 1_100_000;
    finish(scene, &held);
}

pub(super) fn given_up(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = submit(scene, "givenup", base, number);
    let held = reserve(scene, &draft, 1, due);
    settle(scene, &held, SettleKind::Bury);
    scene.leave(&draft, JobState::Dead, due, (1, 1), "broken-image");
}
