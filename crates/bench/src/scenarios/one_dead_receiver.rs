//! The lateness of the jobs of 99 receivers, while one more receiver gets half of all jobs: once when it answers, and
//! once when it hangs.

use serde_json::json;

use crate::figure::{Figure, Spread};
use crate::job::job;
use crate::receiver::{Channel, Receiver};
use crate::setup::Setup;
use crate::train::Train;
use ringback_testkit::{Role, Stack};

pub(crate) const NAME: &str = "one-dead-receiver";
const RECEIVERS: usize = 100;

pub(crate) async fn run(setup: &Setup) {
    let (rate, seconds) = setup.size.pick((1_000, 6), (200, 2));
    let mut train = Train { first: 0, jobs: rate * seconds, rate };
    let receiver = Receiver::several(RECEIVERS).await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let mut rounds = Vec::new();
    // The first round warms up.
    one(&stack, &receiver, &mut train, Channel::Beside).await;
    for channel in [Channel::Beside, Channel::Hang] {
        rounds.push(setup.repeat(async || one(&stack, &receiver, &mut train, channel).await).await);
    }
    let spread = |rounds: &[[f64; 2]], i: usize| Spread::of(rounds.iter().map(|round| round[i]));
    for (i, name) in ["others-p50", "others-p99"].into_iter().enumerate() {
        let yardstick = Some(("all answer", spread(&rounds[0], i)));
        let with = json!({ "rate": rate, "receivers": RECEIVERS, "seconds": seconds });
        let value = spread(&rounds[1], i);
        Figure { scenario: NAME, name, unit: "ms", value, yardstick, with }.report();
    }
}

/// Runs one round. Returns the p50 and p99 in ms of all receivers but the one that gets half of the jobs.
async fn one(stack: &Stack, receiver: &Receiver, train: &mut Train, channel: Channel) -> [f64; 2] {
    let arrivals = if channel == Channel::Hang { train.jobs / 2 } else { train.jobs };
    // Every second job goes to the first receiver, the rest in turn to the others.
    let url = |n: usize| match n % 2 {
        0 => receiver.url_of(0, channel),
        _ => receiver.url_of(1 + n / 2 % (RECEIVERS - 1), Channel::Main),
    };
    train.run(stack, receiver, arrivals, |n, number| job(number, &url(n), &json!({}))).await;
    let board = receiver.board();
    let others = board.lateness(Channel::Main);
    assert_eq!(others.count(), train.jobs as u64 / 2, "every job of the others has arrived");
    [others.millis(0.5), others.millis(0.99)]
}
