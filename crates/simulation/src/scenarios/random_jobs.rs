//! Random jobs for scenarios: due times from now to a year ahead, random retry policies, and scripts of receivers that
//! accept, fail, hang and break connections.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use ringback_core::retry::{Max, RetryPolicy};
use serde_json::{Value, json};

use crate::history::ResponseKind;
use crate::properties::Submitted;
use crate::receiver::{Reply, Script};
use crate::world::Simulation;

/// Waits of policies, in ms.
const TIERS: [u64; 8] = [10, 250, 1_000, 15_000, 180_000, 3_600_000, 86_400_000, 30 * 86_400_000];
/// Delays of jobs, in ms.
const DELAYS: [u64; 7] = [0, 1, 999, 5_000, 61_001, 7_200_000, 365 * 86_400_000];
const JITTERS: [f32; 3] = [0.0, 0.1, 1.0];
/// Timeouts of attempts, in ms. The longest are longer than a lease that is not renewed.
const TIMEOUTS: [u64; 4] = [100, 1_000, 10_000, 60_000];

/// Returns a random job, due by its `at`, and the fields of its submit. Gives the receiver a random script for it.
pub(super) fn random_job(simulation: &mut Simulation, topic: &'static str, id: String) -> (Submitted, Value) {
    let now = simulation.now();
    let rng = &mut simulation.rng;
    let retry = random_policy(rng);
    let timeout = Duration::from_millis(pick(rng, &TIMEOUTS));
    let due = now.plus(Duration::from_millis(pick(rng, &DELAYS)));
    let body = format!("{:?}", format!("{id} {}", rng.random::<u32>()));
    let fields = json!({
        "url": pick(rng, &["http://one.example/", "https://two.example/x"]),
        "at": due.to_string(),
        "body": serde_json::from_str::<Value>(&body).expect("a string"),
        "timeout": ms(timeout),
        "retry": retry_json(&retry),
    });
    let script = random_script(rng, timeout);
    let job = Submitted { topic, id, due, body, retry };
    simulation.receiver.script(&job.name(), script);
    (job, fields)
}

/// Returns a policy as the JSON of a submit.
pub(super) fn retry_json(retry: &RetryPolicy) -> Value {
    let max = match retry.max() {
        Max::Tiers => json!(retry.delays().len() + 1),
        Max::Failures(max) => json!(max),
        Max::Unlimited => json!(-1),
    };
    let delays: Vec<_> = retry.delays().iter().map(|delay| ms(*delay)).collect();
    json!({"delays": delays, "max": max, "jitter": retry.jitter()})
}

pub(super) fn random_policy(rng: &mut StdRng) -> RetryPolicy {
    let delays = (0..rng.random_range(1..4)).map(|_| Duration::from_millis(pick(rng, &TIERS))).collect();
    let max = *[Max::Tiers, Max::Failures(1), Max::Failures(3), Max::Failures(6), Max::Unlimited]
        .choose(rng)
        .expect("some");
    RetryPolicy::new(delays, max, pick(rng, &JITTERS)).expect("a policy")
}

/// Returns up to three random replies, then one with 200 or 410, which ends the job.
fn random_script(rng: &mut StdRng, timeout: Duration) -> Script {
    let mut script: Script = (0..rng.random_range(0..4)).map(|_| random_reply(rng, timeout)).collect();
    let status = if rng.random_bool(0.8) { 200 } else { 410 };
    script.push(Reply { answer: ResponseKind::Status(status), after: latency(rng, timeout) });
    script
}

fn random_reply(rng: &mut StdRng, timeout: Duration) -> Reply {
    let answer = match rng.random_range(0..10) {
        0..4 => ResponseKind::Status(pick(rng, &[302, 400, 404, 500, 503])),
        4..6 => ResponseKind::RetryAfter(pick(rng, &[0, 1, 7, 4_000, 200_000])),
        6..8 => ResponseKind::Broken,
        _ => ResponseKind::Hang,
    };
    Reply { answer, after: latency(rng, timeout) }
}

/// Returns a random time to answer, at most 0.9 of the timeout.
fn latency(rng: &mut StdRng, timeout: Duration) -> Duration {
    timeout.mul_f64(pick(rng, &[0.0, 0.0, 0.05, 0.5, 0.9]))
}

pub(super) fn pick<T: Copy>(rng: &mut StdRng, all: &[T]) -> T {
    *all.choose(rng).expect("some")
}

fn ms(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}
