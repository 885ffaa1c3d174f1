//! Generates correct histories from a seed, to test the checker and to measure it.
//!
//! They are made up, by the rules of docs/concepts/life-of-a-job.md: jobs of many kinds, each of which says in its id
//! what happens to it, such as `retry-17`. Nothing runs.

mod disturbed;
mod pull;
mod push;
mod scene;

use std::io::{self, Write};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use self::scene::Scene;
use super::entry::{Canary, Check, End, Entry, Exit, Limit, Metric, Policy, Scan, Start, Tenant};

/// What to make.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed: the same plan makes the same history.
    pub seed: u64,
    pub jobs: u64,
    /// Whether processes and the store have faults.
    pub has_faults: bool,
}

/// The number of jobs in a stretch of time, whose lines are written together.
const STRETCH_JOBS: u64 = 20_000;
/// The length of a stretch in µs: a minute of submits, and time for all of them to end.
const STRETCH: u64 = 100_000_000;

/// Writes the history of a plan. Returns the number of its lines.
///
/// # Errors
/// When `out` cannot be written.
pub fn generate(plan: Plan, out: &mut impl Write) -> io::Result<u64> {
    let mut scene = Scene::new(StdRng::seed_from_u64(plan.seed));
    begin(&mut scene, plan);
    let mut written = scene.write(out)?;
    for first in (0..plan.jobs).step_by(usize::try_from(STRETCH_JOBS).expect("it is small")) {
        let base = 1_000 + first / STRETCH_JOBS * STRETCH;
        disturbed::surroundings(&mut scene, base, plan.has_faults);
        for number in first..plan.jobs.min(first + STRETCH_JOBS) {
            job(&mut scene, base, number, plan.has_faults);
        }
        written += scene.write(out)?;
    }
    let ended = 1_000 + plan.jobs.div_ceil(STRETCH_JOBS) * STRETCH;
    end(&mut scene, ended, plan.has_faults);
    written += scene.write(out)?;
    out.flush()?;
    Ok(written)
}

fn begin(scene: &mut Scene, plan: Plan) {
    let Plan { seed, jobs, has_faults } = plan;
    let faults = if has_faults { "with faults" } else { "without faults" };
    scene.push(
        0,
        &Entry::Start(Start {
            t: 0,
            wall: scene::WALL,
            name: format!("{jobs} generated jobs {faults}, seed {seed}").into(),
            epsilon: 2_000,
            live: Some(4_000_000),
            timeout: 1_000,
            policy: 1,
            loss: 0,
        }),
    );
    for (p, delays, max, jitter) in scene::POLICIES {
        scene.push(0, &Entry::Policy(Policy { p, delays: delays.to_vec(), max, jitter }));
    }
    scene.push(0, &Entry::Tenant(Tenant { topic: "calm", alone: 5_000 }));
    scene.push(0, &Entry::Limit(Limit { name: "rss_kib", most: 100_000, leak: Some(5) }));
    scene.push(0, &Entry::Canary(Canary { text: "canary-51c7".into() }));
}

/// Adds the lines of one job. Its number decides its kind.
fn job(scene: &mut Scene, base: u64, number: u64, has_faults: bool) {
    let common =
        [push::plain as fn(&mut Scene, u64, u64), push::retried, pull::finished, push::at, push::patient];
    let kinds = [
        push::exhausted,
        push::gone,
        push::cancelled,
        push::cancelled_in_flight,
        push::cancelled_late,
        push::repeated,
        push::keyed,
        push::keyed_repeated,
        push::unknown,
        push::anonymous,
        push::slow,
        push::moved,
        push::run_early,
        push::refused,
        push::revived,
        push::replaced,
        push::pending,
        push::observed,
        pull::retried,
        pull::expired,
        pull::renewed,
        pull::given_up,
    ];
    let faulty = [disturbed::killed, disturbed::skipped, disturbed::lost, disturbed::outage];
    // Every other job is of a common kind.
    let turn = usize::try_from(number / 2).expect("it fits");
    let kind = if number.is_multiple_of(2) {
        common[turn % common.len()]
    } else if has_faults && turn % 4 == 3 {
        faulty[turn / 4 % faulty.len()]
    } else {
        kinds[turn % kinds.len()]
    };
    kind(scene, base, number);
}

/// Adds the last lines: jobs that are left, check, ledger, scan for secrets, exit and end. Without faults, metrics too.
fn end(scene: &mut Scene, t: u64, has_faults: bool) {
    scene.push_finals(t);
    let checked = scene.ledger.delayed + scene.ledger.dead;
    scene.push(t, &Entry::Check(Check { t, checked, findings: 0, miscounts: 0, foreign: 0 }));
    let mut ledger = scene.ledger.clone();
    ledger.t = t;
    scene.push(t, &Entry::Ledger(ledger));
    if !has_faults {
        for (name, label, value) in [
            ("ringback_api_submitted_jobs_total", "created", scene.created),
            ("ringback_notifier_attempts_total", "complete", scene.completed),
            ("ringback_notifier_lateness_seconds_count", "", scene.deliveries),
        ] {
            scene.push(t, &Entry::Metric(Metric { t, pid: 201, name, label, value }));
        }
    }
    scene.push(t, &Entry::Scan(Scan { t, bytes: 1_000_000, found: 0 }));
    scene.push(t, &Entry::Exit(Exit { t, pid: 101, status: Some(0), signal: None }));
    scene.push(t, &Entry::End(End { t, dumped: true, drained: true }));
}
