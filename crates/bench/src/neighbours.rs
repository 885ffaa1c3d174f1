//! Jobs of other topics at a low, even rate, beside the load that a scenario measures: how late they are shows what
//! that load costs everyone else.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use ringback_testkit::Stack;
use serde_json::{Value, json};

use crate::figure::Figure;
use crate::job::job;
use crate::receiver::{Channel, Receiver};
use crate::train::{ahead, submit_evenly};

/// The number of topics.
const TOPICS: usize = 10;

/// Jobs of other topics.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) receiver: &'a Receiver,
    /// Jobs per second of all topics together.
    pub(crate) rate: usize,
}

impl Neighbours<'_> {
    /// Submits jobs that are due evenly from `start`.
    pub(crate) async fn submit(&self, numbers: Range<usize>, start: Timestamp) {
        let url = self.receiver.url(Channel::Beside);
        let one = |n, number| job(number, &url, &json!({ "topic": format!("other.{:03}", n % TOPICS) }));
        submit_evenly(self.stack, numbers, self.rate, start, one).await;
    }

    /// The p99 of the lateness in ms of the first `jobs` numbers, while nothing else is delivered.
    pub(crate) async fn calm(&self, jobs: usize) -> f64 {
        self.receiver.expect(0..jobs);
        self.submit(0..jobs, ahead(Duration::from_secs(3))).await;
        self.receiver.wait_for(jobs, Duration::from_secs(60 + (jobs / self.rate) as u64)).await;
        self.p99()
    }

    /// Reports the p99 of the lateness; `calm` is the yardstick and `with` names the load.
    pub(crate) fn report(&self, scenario: &str, calm: (&str, f64), jobs: usize, mut with: Value) {
        (with["topics"], with["rate"], with["jobs"]) = (TOPICS.into(), self.rate.into(), jobs.into());
        let (value, yardstick) = (self.p99().into(), Some((calm.0, calm.1.into())));
        Figure { scenario, name: "others-p99", unit: "ms", value, yardstick, with }.report();
    }

    fn p99(&self) -> f64 {
        self.receiver.board().lateness(Channel::Beside).millis(0.99)
    }
}
