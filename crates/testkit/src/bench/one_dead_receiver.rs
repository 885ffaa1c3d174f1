//! A hundred receivers, half of all jobs for one of them: how late the others' jobs are while that one answers,
//! and while it hangs.

use std::ops::Range;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::figure::Figure;
use super::job::job;
use super::lateness::{LEADS, ahead, batches};
use super::receiver::{Channel, Receiver};
use super::setup::Setup;
use super::spread::Spread;
use crate::{Role, Stack, now};

const NAME: &str = "one-dead-receiver";
const RECEIVERS: usize = 100;

/// Jobs per second in all, and for how many seconds a round goes.
#[derive(Clone, Copy)]
struct Traffic {
    rate: usize,
    seconds: usize,
}

pub(super) async fn run(setup: &Setup) {
    let rate = setup.size.pick(1_000, 200);
    let traffic = Traffic { rate, seconds: setup.size.pick(6, 2) };
    let receiver = Receiver::several(RECEIVERS).await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let mut next = 0;
    let mut rounds = Vec::new();
    // The first one warms up.
    one(&stack, &receiver, traffic, &mut next, Channel::Beside).await;
    for channel in [Channel::Beside, Channel::Hang] {
        let mut lates = Vec::new();
        for _ in 0..setup.rounds() {
            lates.push(one(&stack, &receiver, traffic, &mut next, channel).await);
        }
        rounds.push(lates);
    }
    let spread = |rounds: &[[f64; 2]], i: usize| Spread::of(rounds.iter().map(|round| round[i]));
    for (i, name) in ["others-p50", "others-p99"].into_iter().enumerate() {
        let yardstick = Some(("all answer", spread(&rounds[0], i)));
        let with = json!({ "rate": rate, "receivers": RECEIVERS, "seconds": traffic.seconds });
        let value = spread(&rounds[1], i);
        Figure { scenario: NAME, name, unit: "ms", value, yardstick, with }.report();
    }
}

/// One round: the p50 and the p99 of all receivers but the one that gets half of the jobs. Where submitting took
/// longer than the first job was ahead, it is done again with more time.
///
/// # Panics
/// When a job of the others is lost or early.
async fn one(
    stack: &Stack,
    receiver: &Receiver,
    traffic: Traffic,
    next: &mut usize,
    channel: Channel,
) -> [f64; 2] {
    let jobs = traffic.rate * traffic.seconds;
    let wanted = if channel == Channel::Hang { jobs / 2 } else { jobs };
    for lead in LEADS.map(Duration::from_secs) {
        let numbers = *next..*next + jobs;
        *next += jobs;
        receiver.expect(numbers.clone());
        let start = ahead(lead);
        batches(stack, &jobs_from(receiver, traffic, numbers, channel, start)).await;
        let in_time = now() < start;
        receiver.wait_for(wanted, lead + Duration::from_secs(60 + traffic.seconds as u64)).await;
        if in_time {
            let board = receiver.board();
            let others = board.lateness(Channel::Main);
            assert_eq!(others.count(), jobs as u64 / 2, "every job of the others has arrived");
            return [others.millis(0.5), others.millis(0.99)];
        }
    }
    panic!("this machine takes longer to submit {jobs} jobs than any time it was given");
}

/// Every second job goes to the first receiver, the rest in turn to the others.
fn jobs_from(
    receiver: &Receiver,
    traffic: Traffic,
    numbers: Range<usize>,
    channel: Channel,
    start: Timestamp,
) -> Vec<Value> {
    let due = |n: usize| start + SignedDuration::from_micros((n * 1_000_000 / traffic.rate) as i64);
    let url = |n: usize| match n % 2 {
        0 => receiver.url_of(0, channel),
        _ => receiver.url_of(1 + n / 2 % (RECEIVERS - 1), Channel::Main),
    };
    let one = |(n, number)| job(number, &url(n), &json!({ "at": due(n).to_string() }));
    numbers.enumerate().map(one).collect()
}
