//! Single submits over HTTP, each durable before it is answered; beside them a handler that does nothing, under
//! the same load.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::figure::{Figure, Spread};
use crate::generator::{CONNECTIONS, Load, LoadResult, Pace, Request, generate};
use crate::job::URL;
use crate::setup::{Profile, Setup, api_address};
use crate::usage::cpu_seconds;
use crate::yardstick::noop::Noop;
use ringback_testkit::{Role, Stack};

pub(crate) const NAME: &str = "submit-one";
/// The delay of all jobs: a day, so that nothing is delivered meanwhile.
const DELAY_SECONDS: u64 = 86_400;
/// The even pace at which latencies are measured, in jobs per second.
const RATE: f64 = 2_000.0;

/// Where the load goes, and the processes whose CPU time is reported.
struct Target {
    address: SocketAddr,
    pids: Vec<(&'static str, u32)>,
}

/// The results of several rounds at one target.
struct Rounds {
    rate: Spread,
    /// Microseconds of CPU per submit, by process.
    cpu: Value,
    /// Quantiles at an even pace, in ms.
    quantiles: [Spread; 2],
}

pub(crate) async fn run(setup: &Setup) {
    let noop = Noop::start().await;
    let target = Target { address: noop.address(), pids: vec![("handler", noop.pid())] };
    let bare = rounds(setup, &target).await;
    drop(noop);
    for &profile in &setup.profiles {
        let stack = setup.stack(profile).count(Role::Notifier, 0).start().await;
        let pids = vec![("api", stack.apis[0].pid()), ("redis", stack.redis().pid())];
        let ours = rounds(setup, &Target { address: api_address(&stack), pids }).await;
        report(profile, &ours, &bare);
        check(&stack).await;
    }
}

fn report(profile: Profile, ours: &Rounds, bare: &Rounds) {
    let figure = |name, unit, value, measure, with| {
        let yardstick = Some(("no-op axum handler", measure));
        Figure { scenario: NAME, name, unit, value, yardstick, with }.report();
    };
    let with = json!({
        "appendfsync": profile, "connections": CONNECTIONS, "cpu_us": ours.cpu, "yardstick_cpu_us": bare.cpu,
    });
    figure("submits", "jobs/s", ours.rate, bare.rate, with);
    for (i, name) in ["p50", "p99"].into_iter().enumerate() {
        let with = json!({ "appendfsync": profile, "rate": RATE });
        figure(name, "ms", ours.quantiles[i], bare.quantiles[i], with);
    }
}

/// Asserts that all jobs in the store are delayed.
async fn check(stack: &Stack) {
    let stats = stack.stats().await;
    let states = &stats["states"];
    assert_eq!(
        states["delayed"],
        states.as_object().map_or(0, |all| all.values().filter_map(Value::as_u64).sum())
    );
}

async fn rounds(setup: &Setup, target: &Target) -> Rounds {
    let time = setup.size.pick(Duration::from_secs(5), Duration::from_secs(1));
    let mut sent = 0;
    // The first load warms up.
    let _ = load(target, Pace::For(time / 3), &mut sent).await;
    let before: Vec<_> = target.pids.iter().map(|(_, pid)| cpu_seconds(*pid)).collect();
    let warm = sent;
    let rounds = setup.repeat(async || load(target, Pace::For(time), &mut sent).await).await;
    let own = rounds.iter().map(|round| round.cpu_seconds).sum();
    let micros = |seconds: f64| (seconds * 1e7 / (sent - warm) as f64).round() / 10.0;
    let mut cpu = json!({ "generator": micros(own) });
    for ((name, pid), before) in target.pids.iter().zip(before) {
        cpu[name] = micros(cpu_seconds(*pid) - before).into();
    }
    let pace = Pace::Even { rate: RATE, requests: (RATE * time.as_secs_f64()) as usize };
    let even = setup.repeat(async || load(target, pace, &mut sent).await).await;
    let quantile = |q| Spread::of(even.iter().map(|round| round.latencies.millis(q)));
    Rounds {
        rate: Spread::of(rounds.iter().map(LoadResult::rate)),
        cpu,
        quantiles: [0.5, 0.99].map(quantile),
    }
}

/// Sends one load. `sent` grows by its jobs, so that every job has a number of its own.
async fn load(target: &Target, pace: Pace, sent: &mut usize) -> LoadResult {
    let request = Request::one(target.address, URL, &json!({ "delay": DELAY_SECONDS }));
    let load = Load { address: target.address, request, connections: CONNECTIONS, pace, first: *sent };
    let done = generate(load).await;
    *sent += done.jobs;
    done
}
