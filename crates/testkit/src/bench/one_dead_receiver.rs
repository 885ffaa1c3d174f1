//! A hundred receivers, half of all jobs for one of them: how late the others' jobs are while that one answers,
//! and while it hangs.

use std::ops::Range;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::figure::Figure;
use super::job::job;
use super::lateness::{ahead, batches};
use super::receiver::{Channel, Receiver};
use super::setup::Setup;
use super::spread::Spread;
use crate::{Role, Stack, now};

const NAME: &str = "one-dead-receiver";
const RECEIVERS: usize = 100;
/// How far ahead the first job is due.
const LEAD: Duration = Duration::from_secs(3);

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

/// One round: the p50 and the p99 of all receivers but the one that gets half of the jobs.
async fn one(
    stack: &Stack,
    receiver: &Receiver,
    traffic: Traffic,
    next: &mut usize,
    channel: Channel,
) -> [f64; 2] {
    let jobs = traffic.rate * traffic.seconds;
    let numbers = *next..*next + jobs;
    *next += jobs;
    receiver.expect(numbers.clone());
    submit(stack, receiver, traffic, numbers, channel).await;
    let wanted = if channel == Channel::Hang { jobs / 2 } else { jobs };
    receiver.wait_for(wanted, LEAD + Duration::from_secs(60 + traffic.seconds as u64)).await;
    let board = receiver.board();
    let others = board.lateness(Channel::Main);
    assert_eq!(others.count() as usize, jobs / 2, "every job of the others has arrived");
    [others.millis(0.5), others.millis(0.99)]
}

/// Every second job goes to the first receiver, the rest in turn to the others.
async fn submit(
    stack: &Stack,
    receiver: &Receiver,
    traffic: Traffic,
    numbers: Range<usize>,
    channel: Channel,
) {
    let start = ahead(LEAD);
    let due = |n: usize| start + SignedDuration::from_micros((n * 1_000_000 / traffic.rate) as i64);
    let url = |n: usize| match n % 2 {
        0 => receiver.url_of(0, channel),
        _ => receiver.url_of(1 + n / 2 % (RECEIVERS - 1), Channel::Main),
    };
    let one = |(n, number): (usize, usize)| job(number, &url(n), &json!({ "at": due(n).to_string() }));
    let all: Vec<Value> = numbers.enumerate().map(one).collect();
    batches(stack, &all).await;
    assert!(now() < start, "submitting took longer than {LEAD:?}");
}
