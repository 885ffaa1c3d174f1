//! The lines of a stretch about no job (clock readings, locks, samples and faults), and the jobs that these faults hit.

use super::scene::{AHEAD, Attempt, Scene, first};
use crate::history::entry::{
    Alarm, ClockReading, Entry, Exit, Fault, FaultClass, Healed, JobState, LockUse, LogLevel, LogLine, Proc,
    Sample,
};

/// When the notifier is killed, from the start of a stretch, in µs.
const KILL: u64 = 10_000_000;
/// When the carrier is stopped.
const STOP: u64 = 25_000_000;
/// When the store goes away, and for how long.
const OUTAGE: u64 = 40_000_000;
const OUTAGE_LASTS: u64 = 1_000_000;
/// When the store loses its data, after all jobs of the stretch have ended.
const AMNESIA: u64 = 90_000_000;
/// How long a lease lasts.
const LEASE: u64 = 2_000_000;

/// Adds the lines of a stretch that are about no job; faults only if `has_faults`.
pub(super) fn surroundings(scene: &mut Scene, base: u64, has_faults: bool) {
    for after in [0, 30_000_000, 60_000_000, 95_000_000] {
        let (t, error) = (base + after, scene.random(50, 300));
        scene.push(t, &Entry::Clock(ClockReading { t, store: 0, ahead: AHEAD, error }));
        let value = 50_000 + scene.random(0, 1_000);
        scene.push(t, &Entry::Sample(Sample { t, of: "notifier", name: "rss_kib", value }));
    }
    let token = base * 10;
    lock(scene, base, token, (101, true), false);
    lock(scene, base + 1_000_000, token, (101, false), false);
    if has_faults {
        faults(scene, base, token);
    }
}

/// Adds a claim of the lock of a shard, or an effect under it, by the process `pid`.
fn lock(scene: &mut Scene, t: u64, token: u64, (pid, is_claim): (u32, bool), fenced: bool) {
    let used = LockUse { t, asked: t - 500, lock: "shard-0", token, pid, fenced };
    scene.push(t, &if is_claim { Entry::Claim(used) } else { Entry::Effect(used) });
}

fn faults(scene: &mut Scene, base: u64, token: u64) {
    let killed = u32::try_from(base / 100_000_000).expect("it is small") * 2 + 1_000;
    fault(scene, "kill-notifier", FaultClass::Process, Some(killed), (base + KILL, base + KILL + 300_000));
    let t = base + KILL + 100;
    scene.push(t, &Entry::Exit(Exit { t, pid: killed, status: None, signal: Some(9) }));
    let t = base + KILL + 200_000;
    scene.push(t, &Entry::Proc(Proc { t, pid: killed + 1, role: "notifier" }));

    fault(scene, "stop-carrier", FaultClass::Process, Some(101), (base + STOP, base + STOP + 2_000_000));
    lock(scene, base + STOP + 600_000, token + 1, (102, true), false);
    lock(scene, base + STOP + 700_000, token + 1, (102, false), false);
    lock(scene, base + STOP + 2_001_000, token, (101, false), true);

    let outage = (base + OUTAGE, base + OUTAGE + OUTAGE_LASTS);
    fault(scene, "kill-redis", FaultClass::StoreDown, None, outage);
    let (t, text) = (base + OUTAGE + 100_000, "the store cannot be reached: \"EOF\"".into());
    let log = LogLine { t, pid: 101, level: LogLevel::Error, class: Some("store-away"), text };
    scene.push(t, &Entry::Log(log));

    fault(scene, "empty-redis", FaultClass::Amnesia, None, (base + AMNESIA, base + AMNESIA + 4_000_000));
    let t = base + AMNESIA + 300_000;
    scene.push(t, &Entry::Alarm(Alarm { t, pid: 101 }));
}

fn fault(scene: &mut Scene, kind: &str, class: FaultClass, pid: Option<u32>, (begin, end): (u64, u64)) {
    let f = scene.number();
    scene.push(begin, &Entry::Fault(Fault { t: begin, f, kind, class, pid }));
    scene.push(end, &Entry::Healed(Healed { t: end, f }));
}

/// Submits a job that is due shortly before the notifier is killed. Returns the job and its due time.
fn before_kill(scene: &mut Scene, kind: &str, base: u64, number: u64) -> (super::scene::Draft, u64) {
    let mut draft = scene.draft(kind, number);
    draft.delay = Some(500);
    let t = base + KILL - 500_000 - scene.random(20_000, 100_000);
    let (_, due) = scene.submit(&draft, t);
    (draft, due)
}

/// A job delivered twice: its notifier is killed after the receiver's answer and before the outcome is stored.
pub(super) fn killed(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = before_kill(scene, "killed", base, number);
    let begun = scene.arrive(&draft, &first(due));
    scene.respond(base + KILL - 500, begun.d, 200, None);
    let since = begun.start + LEASE + scene.random(0, 500_000);
    scene.succeed(&draft, &Attempt { number: 2, due, since });
}

/// A job whose notifier is killed after the reserve and before it has sent anything; the second attempt succeeds.
pub(super) fn skipped(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = before_kill(scene, "skipped", base, number);
    let since = scene.host(due) + LEASE + scene.random(0, 500_000);
    scene.succeed(&draft, &Attempt { number: 2, due, since });
}

/// A job that is dead after five expired leases; only the first attempt arrived.
pub(super) fn lost(scene: &mut Scene, base: u64, number: u64) {
    let (draft, due) = before_kill(scene, "lost", base, number);
    scene.arrive(&draft, &first(due));
    scene.leave(&draft, JobState::Dead, due, (5, 0), "lost");
}

/// A job whose first submit fails because the store is away; the client repeats the submit.
pub(super) fn outage(scene: &mut Scene, base: u64, number: u64) {
    let draft = scene.draft("outage", number);
    let t = base + OUTAGE + scene.random(10_000, OUTAGE_LASTS - 10_000);
    let n = scene.send(&draft, t);
    scene.give_up(t + 500_000, n);
    let (_, due) = scene.submit(&draft, t + OUTAGE_LASTS + 500_000);
    scene.succeed(&draft, &first(due));
}
