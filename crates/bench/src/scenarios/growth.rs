//! The effect of more and more pending jobs on the delivery rate, the lateness, and the CPU of Redis per job. The
//! yardstick of each figure is the same figure with the fewest pending jobs.

use serde_json::json;

use crate::backlog::drain;
use crate::figure::{Figure, Spread, skipped};
use crate::fill;
use crate::receiver::Receiver;
use crate::setup::Setup;
use crate::train::{Train, lateness};
use crate::usage::available_mib;
use ringback_testkit::{Role, Stack};

pub(crate) const NAME: &str = "growth";
/// The first number of the pending jobs, far above those of the jobs that are delivered.
const FAR_FIRST: usize = 1_000_000_000;
/// The memory that a pending job may take, including the fork of a rewrite. A step that does not fit is left out.
const MIB_PER_JOB: f64 = 1_500.0 / 1024.0 / 1024.0;

/// Rounds with one number of pending jobs.
struct Step {
    pending: usize,
    rate: Spread,
    p99: Spread,
    redis_us: Spread,
}

pub(crate) async fn run(setup: &Setup) {
    let receiver = Receiver::start().await;
    let mut stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let store = setup.open(stack.redis()).await;
    // `next` is the first unused number; `there` counts the pending jobs.
    let (mut next, mut there) = (0, 0);
    let mut base = None;
    for pending in steps(setup.size.pick(10_000, 500), setup.size.pick(setup.growth, 5_000)) {
        if available_mib() < (pending - there) as f64 * MIB_PER_JOB {
            let reason = format!("{:.0} MiB of memory are too little", available_mib());
            skipped(NAME, &format!("{pending} pending jobs"), &reason);
            break;
        }
        fill::far(&store, FAR_FIRST + there..FAR_FIRST + pending).await;
        there = pending;
        let step = measure(setup, &mut stack, &receiver, &mut next, pending).await;
        assert_eq!(fill::delayed(&store).await, pending as u64, "every far job is there");
        report(base.as_ref(), &step);
        base.get_or_insert(step);
    }
}

/// `first` and each following power of ten times it, up to `last`.
fn steps(first: usize, last: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |pending| pending.checked_mul(10))
        .take_while(move |pending| *pending <= last)
}

async fn measure(
    setup: &Setup,
    stack: &mut Stack,
    receiver: &Receiver,
    next: &mut usize,
    pending: usize,
) -> Step {
    let jobs = setup.size.pick(30_000, 1_000);
    let drained = setup.repeat(async || {
        let before = stack.count_in("done").await;
        *next += jobs;
        drain(stack, receiver, *next - jobs..*next, before as usize).await
    });
    let drained = drained.await;
    let (jobs, rate) = setup.size.pick((4_000, 1_000), (300, 300));
    let mut train = Train { first: *next, jobs, rate };
    let lates = setup.repeat(async || lateness(&mut train, stack, receiver).await.millis(0.99)).await;
    *next = train.first;
    Step {
        pending,
        rate: Spread::of(drained.iter().map(|round| round.rate)),
        p99: Spread::of(lates),
        redis_us: Spread::of(drained.iter().map(|round| round.redis_us)),
    }
}

fn report(base: Option<&Step>, step: &Step) {
    let name = base.map(|base| format!("with {} pending", base.pending));
    let figure = |what, unit, value, of: fn(&Step) -> Spread| {
        let yardstick = name.as_deref().zip(base.map(of));
        let with = json!({ "pending": step.pending });
        Figure { scenario: NAME, name: what, unit, value, yardstick, with }.report();
    };
    figure("delivered", "jobs/s", step.rate, |step| step.rate);
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
