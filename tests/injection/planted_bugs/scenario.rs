//! A short run without faults, with jobs and answers of all kinds, for planted bugs that show there.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ringback_testkit::history::{Entry, Exit, Metric, Policy, Report, SettleKind};
use ringback_testkit::recorded::{Bounds, Recorded, RecordedJob};
use ringback_testkit::{Answer, Script, Sink, Stack};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::bugs::Bug;
use super::plant::{self, Ways};

/// How long a run may take to drain. With some bugs it never does.
const DRAIN: Duration = Duration::from_secs(5);
/// The jobs whose waits show the jitter.
const FLAKY: usize = 110;

struct Run {
    recorded: Arc<Recorded>,
    api: String,
    sink: Sink,
    ways: Ways,
}

/// Makes the run with a bug, or without one, and checks its history.
pub(crate) async fn run(bug: Option<&Bug>) -> Report {
    let policies = vec![
        Policy { p: 0, delays: vec![100, 200], max: 3, jitter: 0.1 },
        Policy { p: 1, delays: vec![400], max: 2, jitter: 1.0 },
    ];
    let recorded = Recorded::start(bug.map_or("no bug", |bug| bug.name), &Bounds { live: None, policies });
    let sink = Sink::recorded(recorded.history()).await;
    let options = Stack::options().retry("100ms 200ms").env("RINGBACK_SHARDS", "1").unchecked();
    let mut stack = plant::options(bug, options).start().await;
    let ways = plant::plant(bug, &stack, &sink).await;
    let run = Run { recorded: Arc::new(recorded), api: stack.api_urls().remove(0), sink, ways };
    run.recorded.read_clock(stack.redis()).await;
    tokio::join!(
        run.deliveries(),
        run.failures(),
        run.cancels(),
        run.repetitions(),
        run.expired(),
        run.renewed()
    );
    run.drain(&stack).await;
    run.recorded.read_clock(stack.redis()).await;
    run.processes(&mut stack).await;
    run.recorded.end(&stack, &["t", "e", "r", "n"], true).await;
    run.recorded.check()
}

impl Run {
    fn job(&self, id: &str, path: &str) -> RecordedJob {
        RecordedJob::new("t", id, Some(self.ways.receiver(path)))
    }

    async fn submit(&self, job: &RecordedJob) {
        self.recorded.submit(&self.ways.api, job).await;
    }

    async fn deliveries(&self) {
        for n in 0..30 {
            let job = self.job(&format!("delayed-{n}"), "/hook?x=1");
            self.submit(&RecordedJob { delay: Some(100 + n * 29), ..job }).await;
        }
        self.sink.answer_path("/slow", Answer::status(200).after(Duration::from_millis(300)));
        self.submit(&RecordedJob { timeout: Some(1_000), ..self.job("slow", "/slow") }).await;
        let second = "HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n";
        self.sink.answer_path("/two-answers", Answer::status(200).with_extra_bytes(second));
        // A failing job follows each of these, and may use the same connection.
        for n in 0..10 {
            let job = self.job(&format!("two-answers-{n}"), "/two-answers");
            self.submit(&RecordedJob { delay: Some(100 + n * 90), ..job }).await;
            let job = self.job(&format!("after-two-answers-{n}"), "/fails");
            self.submit(&RecordedJob { delay: Some(110 + n * 90), ..job }).await;
        }
    }

    async fn failures(&self) {
        let always = [
            ("/fails", Answer::status(500)),
            ("/redirects", Answer::status(302)),
            ("/not-found", Answer::status(404)),
            ("/gone", Answer::status(410)),
            ("/closes", Answer::close()),
            ("/hangs", Answer::status(200).after(Duration::from_secs(2))),
        ];
        for (path, answer) in always {
            self.sink.answer_path(path, answer);
            // Long where an answer comes: on a busy machine the receiver may read a request after its timeout.
            let timeout = Some(if path == "/hangs" { 150 } else { 1_000 });
            self.submit(&RecordedJob { timeout, ..self.job(&path[1..], path) }).await;
        }
        for n in 0..6 {
            let job = self.job(&format!("hangs-{n}"), "/hangs");
            self.submit(&RecordedJob { timeout: Some(150 + n), ..job }).await;
        }
        self.sink.answer_path("/later", Script::first(1, Answer::status(503).header("retry-after", "1")));
        self.submit(&self.job("later", "/later")).await;
        // The jobs fail at about the same time, so that equal retry times show on a busy machine too.
        let flaky = (0..FLAKY).map(async |n| {
            let id = format!("flaky-{n}");
            self.sink.answer_job(&id, Script::first(1, Answer::status(503)));
            let policy = Some((1, json!({"delays": ["400ms"], "max": 2, "jitter": 1.0})));
            self.submit(&RecordedJob { policy, delay: Some(300), ..self.job(&id, "/hook") }).await;
        });
        join_all(flaky).await;
    }

    async fn cancels(&self) {
        for n in 0..3 {
            let job = RecordedJob { delay: Some(700), ..self.job(&format!("cancelled-{n}"), "/hook") };
            self.submit(&job).await;
            self.recorded.cancel(&self.api, &job).await;
        }
        self.sink.answer_path("/fails-slowly", Answer::status(503).after(Duration::from_millis(400)));
        let job = RecordedJob { timeout: Some(1_000), ..self.job("cancelled-in-flight", "/fails-slowly") };
        self.submit(&job).await;
        // With some bugs the job never arrives.
        let deadline = Instant::now() + DRAIN;
        while self.sink.arrivals_of(&job.id).is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
        self.recorded.cancel(&self.api, &job).await;
    }

    async fn repetitions(&self) {
        let job = RecordedJob { delay: Some(300), ..self.job("repeated", "/hook") };
        self.submit(&job).await;
        self.submit(&job).await;
        self.submit(&RecordedJob { body: "{\"other\":1}".to_owned(), ..job }).await;
        for n in 0..8 {
            let job = RecordedJob { delay: Some(300), ..self.job(&format!("twice-{n}"), "/hook") };
            tokio::join!(self.submit(&job), self.submit(&job));
        }
        let keyed = RecordedJob { key: Some("key-1".to_owned()), delay: Some(200), ..self.job("", "/hook") };
        self.submit(&keyed).await;
        self.submit(&keyed).await;
    }

    /// Runs a pull job whose lease expires, after which its old receipt is used; and one that is released.
    async fn expired(&self) {
        let ask = json!({"max": 1, "ttr": "300ms", "wait": 2});
        self.submit(&RecordedJob::new("e", "expires", None)).await;
        let first = self.recorded.reserve(&self.api, "e", &ask).await;
        let second = self.recorded.reserve(&self.api, "e", &json!({"max": 1, "ttr": "5s", "wait": 2})).await;
        // The first receipt is stale by then.
        for job in first.iter().filter(|_| !second.is_empty()).chain(&second) {
            self.recorded.settle(&self.api, &job.receipt, SettleKind::Finish).await;
        }
        self.submit(&RecordedJob::new("r", "released", None)).await;
        for kind in [SettleKind::Release, SettleKind::Finish] {
            for job in self.recorded.reserve(&self.api, "r", &json!({"max": 1, "ttr": "5s", "wait": 1})).await
            {
                self.recorded.settle(&self.api, &job.receipt, kind).await;
            }
        }
    }

    /// Runs a pull job whose lease is renewed.
    async fn renewed(&self) {
        self.submit(&RecordedJob::new("n", "renewed", None)).await;
        let ask = json!({"max": 1, "ttr": "300ms", "wait": 1});
        let first = self.recorded.reserve(&self.api, "n", &ask).await;
        for job in &first {
            self.recorded.settle(&self.api, &job.receipt, SettleKind::Renew).await;
        }
        let second = self.recorded.reserve(&self.api, "n", &json!({"max": 1, "wait": 1})).await;
        for job in second.iter().chain(&first) {
            self.recorded.settle(&self.api, &job.receipt, SettleKind::Finish).await;
        }
    }

    /// Waits up to [`DRAIN`] until no job is pending.
    async fn drain(&self, stack: &Stack) {
        let deadline = Instant::now() + DRAIN;
        while Instant::now() < deadline {
            let stats = stack.stats().await;
            if ["delayed", "ready", "reserved"].iter().all(|state| stats["states"][*state] == 0) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Writes the end of the notifier if it has ended, else the number of attempts that it has counted.
    async fn processes(&self, stack: &mut Stack) {
        let history = self.recorded.history();
        let notifier = &mut stack.notifiers[0];
        let pid = notifier.pid();
        if let Some(status) = notifier.exit_status() {
            history.write(&Entry::Exit(Exit { t: history.t(), pid, status: status.code(), signal: None }));
            return;
        }
        let name = "ringback_notifier_attempts_total";
        let value =
            notifier.metric(&format!("{name}{{result=\"complete\"}}")).await.unwrap_or_default() as u64;
        history.write(&Entry::Metric(Metric { t: history.t(), pid, name, label: "complete", value }));
    }
}
