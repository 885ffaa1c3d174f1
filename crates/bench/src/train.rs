//! A train of jobs that are due evenly, one after the other, all submitted before the first of them is due.
//!
//! [`Neighbours`] are such jobs of other topics at a low rate, beside the load that a scenario measures: how late they
//! are shows what that load costs everyone else.

use std::ops::Range;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ringback_testkit::{Stack, now};
use serde_json::{Value, json};

use crate::figure::Figure;
use crate::job::job;
use crate::latencies::Latencies;
use crate::receiver::{Channel, Receiver};

/// How far ahead the first job is due, in seconds: the first value that leaves enough time to submit all counts.
pub(crate) const LEADS: [u64; 4] = [3, 8, 20, 60];
const PER_REQUEST: usize = 1000;
/// The number of topics of the neighbours.
const TOPICS: usize = 10;

/// Jobs due evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    /// The number of the first job.
    pub(crate) first: usize,
    pub(crate) jobs: usize,
    /// Jobs per second.
    pub(crate) rate: usize,
}

impl Train {
    /// Submits the jobs and waits until `arrivals` of them have arrived. When submitting takes longer than the lead,
    /// it starts over with a longer lead and new numbers; panics after the longest. Afterwards `first` is a number
    /// that no job has yet.
    ///
    /// `job` makes a job from its place in the train and its number; its due time is added here.
    pub(crate) async fn run(
        &mut self,
        stack: &Stack,
        receiver: &Receiver,
        arrivals: usize,
        job: impl Fn(usize, usize) -> Value,
    ) {
        for lead in LEADS.map(Duration::from_secs) {
            let numbers = self.first..self.first + self.jobs;
            self.first = numbers.end;
            receiver.expect(numbers.clone());
            let start = ahead(lead);
            submit_evenly(stack, numbers, self.rate, start, &job).await;
            let in_time = now() < start;
            receiver.wait_for(arrivals, lead + self.within()).await;
            if in_time {
                return;
            }
        }
        panic!("this machine takes longer to submit {} jobs than any lead", self.jobs);
    }

    /// The limit for all jobs to arrive once the first is due: a minute more than the train takes.
    pub(crate) fn within(&self) -> Duration {
        Duration::from_secs(60 + (self.jobs / self.rate) as u64)
    }
}

/// Runs a train of measured jobs, and returns how late each arrived.
pub(crate) async fn lateness(train: &mut Train, stack: &Stack, receiver: &Receiver) -> Latencies {
    let url = receiver.url(Channel::Main);
    train.run(stack, receiver, train.jobs, |_, number| job(number, &url, &json!({}))).await;
    receiver.board().lateness(Channel::Main).clone()
}

/// The time `lead` from now, cut to whole milliseconds.
pub(crate) fn ahead(lead: Duration) -> Timestamp {
    let millis = (now() + SignedDuration::try_from(lead).unwrap_or_default()).as_millisecond();
    Timestamp::from_millisecond(millis).expect("the near future is a timestamp")
}

/// Submits jobs in batches, `rate` of them due per second from `start`. `job` makes each from its place and its
/// number, without a due time.
pub(crate) async fn submit_evenly(
    stack: &Stack,
    numbers: Range<usize>,
    rate: usize,
    start: Timestamp,
    job: impl Fn(usize, usize) -> Value,
) {
    let due = |n: usize| start + SignedDuration::from_micros((n * 1_000_000 / rate) as i64);
    let jobs = numbers.enumerate().map(|(n, number)| {
        let mut job = job(n, number);
        job["at"] = due(n).to_string().into();
        job
    });
    for batch in jobs.collect::<Vec<_>>().chunks(PER_REQUEST) {
        let (status, answer) = stack.batch(batch).await;
        assert_eq!((status, answer["refused"].as_u64()), (200, Some(0)), "a batch was refused");
    }
}

/// Jobs of other topics.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) receiver: &'a Receiver,
    /// Jobs per second of all topics together.
    pub(crate) rate: usize,
}

impl Neighbours<'_> {
    /// Submits jobs of the other topics, which are due evenly from `start`.
    pub(crate) async fn submit(&self, numbers: Range<usize>, start: Timestamp) {
        let url = self.receiver.url(Channel::Beside);
        let one = |n, number| job(number, &url, &json!({ "topic": format!("other.{:03}", n % TOPICS) }));
        submit_evenly(self.stack, numbers, self.rate, start, one).await;
    }

    /// Runs the numbers up to `jobs` while nothing else is delivered, and returns the p99 of their lateness in ms.
    pub(crate) async fn calm(&self, jobs: usize) -> f64 {
        self.receiver.expect(0..jobs);
        self.submit(0..jobs, ahead(Duration::from_secs(3))).await;
        self.receiver.wait_for(jobs, Duration::from_secs(60 + (jobs / self.rate) as u64)).await;
        self.p99()
    }

    /// Reports the p99 of the lateness; `calm` is the yardstick and `with` describes the load.
    pub(crate) fn report(&self, scenario: &str, calm: (&str, f64), jobs: usize, mut with: Value) {
        (with["topics"], with["rate"], with["jobs"]) = (TOPICS.into(), self.rate.into(), jobs.into());
        let (value, yardstick) = (self.p99().into(), Some((calm.0, calm.1.into())));
        Figure { scenario, name: "others-p99", unit: "ms", value, yardstick, with }.report();
    }

    fn p99(&self) -> f64 {
        self.receiver.board().lateness(Channel::Beside).millis(0.99)
    }
}
