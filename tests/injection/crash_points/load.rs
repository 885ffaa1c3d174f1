//! Clients that write a history under load: they submit jobs with a URL and pull jobs, repeat and cancel some, and
//! finish what they reserve.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_testkit::history::SettleKind;
use ringback_testkit::recorded::{Recorded, RecordedJob};
use ringback_testkit::{Answer, Script, Sink};
use serde_json::json;
use tokio::time::sleep;

pub(crate) const TOPICS: [&str; 2] = ["push", "pull"];

/// How long a client pauses between two jobs.
const PAUSE: Duration = Duration::from_millis(15);

pub(crate) struct Load {
    recorded: Arc<Recorded>,
    apis: Vec<String>,
    url: String,
}

impl Load {
    pub(crate) fn new(recorded: &Arc<Recorded>, apis: &[String], sink: &Sink) -> Self {
        sink.answer_path("/flaky", Script::first(1, Answer::status(503)));
        sink.answer_path("/slow", Answer::status(200).after(Duration::from_millis(40)));
        Self { recorded: Arc::clone(recorded), apis: apis.to_vec(), url: sink.url("") }
    }

    pub(crate) async fn run(self, is_over: Arc<AtomicBool>) {
        let deliver = async {
            let mut number = 0;
            while !is_over.load(Ordering::SeqCst) {
                self.push(number).await;
                number += 1;
                sleep(PAUSE).await;
            }
        };
        let pull = async {
            let mut number = 0;
            while !is_over.load(Ordering::SeqCst) {
                self.pull(number).await;
                number += 1;
                sleep(PAUSE).await;
            }
        };
        tokio::join!(deliver, pull);
    }

    fn api(&self, number: usize) -> &str {
        &self.apis[number % self.apis.len()]
    }

    async fn push(&self, number: usize) {
        let path = ["/hook", "/flaky", "/slow"][number % 3];
        let mut job = RecordedJob::new("push", &format!("job-{number}"), Some(format!("{}{path}", self.url)));
        job.delay = (!number.is_multiple_of(4)).then_some(number as u64 * 37 % 400);
        job.timeout = Some(1_000);
        let first = self.recorded.submit(self.api(number), &job).await;
        if first.is_none_or(|(status, _)| status >= 500) || number.is_multiple_of(7) {
            self.recorded.submit(self.api(number + 1), &job).await;
        }
        if number.is_multiple_of(5) {
            self.recorded.cancel(self.api(number), &job).await;
        }
    }

    async fn pull(&self, number: usize) {
        let job = RecordedJob { timeout: None, ..RecordedJob::new("pull", &format!("job-{number}"), None) };
        self.recorded.submit(self.api(number), &job).await;
        let ask = json!({"max": 2, "wait": "20ms", "ttr": "1s"});
        for (place, job) in self.recorded.reserve(self.api(number), "pull", &ask).await.iter().enumerate() {
            let kind = match (number + place) % 6 {
                0 => SettleKind::Retry,
                1 => SettleKind::Release,
                // The lease of this job expires.
                2 => continue,
                _ => SettleKind::Finish,
            };
            self.recorded.settle(self.api(number + 1), &job.receipt, kind).await;
        }
    }

    pub(crate) async fn finish_pull_jobs(&self) {
        loop {
            let ask = json!({"max": 50, "wait": "200ms", "ttr": "1s"});
            for job in self.recorded.reserve(self.api(0), "pull", &ask).await {
                self.recorded.settle(self.api(0), &job.receipt, SettleKind::Finish).await;
            }
            sleep(PAUSE).await;
        }
    }
}
