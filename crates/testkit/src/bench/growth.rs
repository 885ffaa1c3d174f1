//! What more and more pending jobs change: the rate of handing over, the lateness, and the CPU of Redis per job.
//! The yardstick of each figure is the same figure with the fewest pending jobs.

use serde_json::json;

use super::backlog::drain;
use super::figure::{Figure, skipped};
use super::fill;
use super::lateness::{LEADS, Train, one};
use super::receiver::Receiver;
use super::setup::Setup;
use super::spread::Spread;
use super::usage::available_mib;
use crate::{Role, Stack};

const NAME: &str = "growth";
/// Their numbers are far away from those of the jobs that are handed over.
const FAR_FIRST: usize = 1_000_000_000;
/// What a pending job may take, with room for the fork of a rewrite; to see whether a step fits.
const MIB_PER_JOB: f64 = 1_500.0 / 1024.0 / 1024.0;

/// Rounds with one number of pending jobs.
struct Step {
    pending: usize,
    rate: Spread,
    p99: Spread,
    redis_us: Spread,
}

pub(super) async fn run(setup: &Setup) {
    let receiver = Receiver::start().await;
    let mut stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let store = setup.open(stack.redis()).await;
    // Jobs handed over so far; the numbers go on from there, with room for trains that are tried again.
    let (mut done, mut there) = (0, 0);
    let mut base = None;
    for pending in steps(setup.size.pick(10_000, 500), setup.size.pick(setup.growth, 5_000)) {
        if available_mib() < (pending - there) as f64 * MIB_PER_JOB {
            let reason = format!("{:.0} MiB of memory are too little", available_mib());
            skipped(NAME, &format!("{pending} pending jobs"), &reason);
            break;
        }
        fill::far(&store, FAR_FIRST + there..FAR_FIRST + pending).await;
        there = pending;
        let step = measure(setup, &mut stack, &receiver, &mut done, pending).await;
        assert_eq!(fill::delayed(&store).await, pending as u64, "every far job is there");
        report(base.as_ref(), &step);
        base.get_or_insert(step);
    }
}

/// Ten times as many each time.
fn steps(first: usize, last: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |pending| pending.checked_mul(10))
        .take_while(move |pending| *pending <= last)
}

async fn measure(
    setup: &Setup,
    stack: &mut Stack,
    receiver: &Receiver,
    done: &mut usize,
    pending: usize,
) -> Step {
    let (mut rates, mut costs, mut lates) = (Vec::new(), Vec::new(), Vec::new());
    let jobs = setup.size.pick(30_000, 1_000);
    for _ in 0..setup.rounds() {
        let before = stack.count_in("done").await;
        let drained = drain(stack, receiver, *done..*done + jobs, before as usize).await;
        *done += jobs;
        rates.push(drained.rate);
        costs.push(drained.redis_us);
    }
    for _ in 0..setup.rounds() {
        let train =
            Train { first: *done, jobs: setup.size.pick(4_000, 300), rate: setup.size.pick(1_000, 300) };
        lates.push(one(stack, receiver, train).await.millis(0.99));
        *done += LEADS.len() * train.jobs;
    }
    Step { pending, rate: Spread::of(rates), p99: Spread::of(lates), redis_us: Spread::of(costs) }
}

fn report(base: Option<&Step>, step: &Step) {
    let name = base.map(|base| format!("with {} pending", base.pending));
    let figure = |what, unit, value, of: fn(&Step) -> Spread| {
        let yardstick = name.as_deref().zip(base.map(of));
        let with = json!({ "pending": step.pending });
        Figure { scenario: NAME, name: what, unit, value, yardstick, with }.report();
    };
    figure("handed-over", "jobs/s", step.rate, |step| step.rate);
    figure("lateness-p99", "ms", step.p99, |step| step.p99);
    figure("redis-cpu", "us", step.redis_us, |step| step.redis_us);
}

#[cfg(test)]
mod tests {
    use super::steps;

    #[test]
    fn each_step_is_ten_times_the_one_before_and_none_beyond_the_last() {
        assert_eq!(steps(10_000, 1_000_000).collect::<Vec<_>>(), [10_000, 100_000, 1_000_000]);
        assert_eq!(steps(10_000, 999_999).collect::<Vec<_>>(), [10_000, 100_000]);
        assert_eq!(steps(10_000, 5_000).count(), 0);
    }
}
