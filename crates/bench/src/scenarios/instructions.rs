//! Instructions that Redis executes for one job from submit to done, counted by valgrind, beside BullMQ. Jobs are submitted
//! slowly, so that no call is shared. The counts do not depend on the speed of the machine.

use std::time::Duration;

use ringback_testkit::{InstructionCount, RedisServer, Stack};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::modest::{DELAY, ONE, Singles, WITHIN, lives, processes};
use crate::figure::{Figure, skipped, yardstick};
use crate::receiver::{Channel, Receiver};
use crate::setup::Setup;
use crate::yardstick::bullmq::{Bullmq, SHAPES};

pub(crate) const NAME: &str = "instructions";
/// Submits per second. A server under valgrind is about fifty times slower.
const RATE: usize = 4;
/// For how long an idle installation is counted.
const IDLE: Duration = Duration::from_secs(10);

pub(crate) async fn run(setup: &Setup) {
    if !InstructionCount::is_possible() {
        skipped(NAME, "all", "there is no valgrind");
        return;
    }
    let jobs = setup.size.pick(240, 8);
    let (value, idle) = ours(setup, jobs).await;
    let bullmq = yardstick(NAME, "BullMQ", bullmq(setup, jobs).await);
    let yardstick = bullmq.map(|(name, value)| (name, value.into()));
    let with = json!({ "jobs": jobs, "rate": RATE });
    let value = value.into();
    Figure { scenario: NAME, name: "per-life", unit: "instr", value, yardstick, with: with.clone() }.report();
    let yardstick = Some(("bare server", bare(setup).await.into()));
    let value = idle.into();
    Figure { scenario: NAME, name: "idle-second", unit: "instr", value, yardstick, with }.report();
}

/// Returns the count for an idle second of a server that has rewritten its append-only file once, as it does beside us and
/// by itself when the file has grown: since then it has a thread more, whose memory each of its statistics visits.
async fn bare(setup: &Setup) -> f64 {
    let server = setup.profile().redis().count_instructions().start().await;
    redis::cmd("BGREWRITEAOF").exec_async(&mut server.client().await).await.expect("BGREWRITEAOF");
    sleep(IDLE).await;
    let mut meter = Meter::of(&server);
    meter.count_idle().await;
    meter.idle
}

/// Returns the count for a life, and for an idle second of the server and all processes.
async fn ours(setup: &Setup, jobs: usize) -> (f64, f64) {
    let redis = setup.profile().redis().count_instructions();
    let stack = processes(setup.stack(setup.profile()).redis(redis), ONE).start().await;
    let (receiver, mut done) = (Receiver::start().await, 0);
    let mut meter = Meter::of(stack.redis());
    meter.count_idle().await;
    for jobs in [jobs / 4, jobs] {
        meter.count(jobs, lives_of(&stack, &receiver, jobs, &mut done)).await;
    }
    (meter.per_job(), meter.idle)
}

async fn lives_of(stack: &Stack, receiver: &Receiver, jobs: usize, done: &mut usize) {
    lives(stack, receiver, Singles { rate: RATE, jobs }, done).await;
}

async fn bullmq(setup: &Setup, jobs: usize) -> Result<f64, String> {
    let bullmq = Bullmq::get(setup).await?;
    let receiver = Receiver::start().await;
    let server = setup.profile().redis().count_instructions().start().await;
    let _workers = bullmq.work(&server, SHAPES[0]);
    let (mut meter, mut first) = (Meter::of(&server), 0);
    let more = json!({ "url": receiver.url(Channel::Main), "rate": RATE, "delay": DELAY.as_millis() as u64 });
    sleep(IDLE).await;
    meter.count_idle().await;
    for jobs in [jobs / 4, jobs] {
        receiver.expect(first..first + jobs);
        let run = async {
            bullmq.run("pace", &server, first, jobs, &more).await?;
            receiver.arrive(jobs, WITHIN).await
        };
        meter.count(jobs, run).await?;
        first += jobs;
    }
    Ok(meter.per_job())
}

/// Counts runs of two lengths. Their difference, without what an idle server executes in the same time, is the count for
/// jobs: begin and end of a run do not count.
struct Meter {
    count: InstructionCount,
    /// For a second.
    idle: f64,
    /// Jobs, instructions and seconds of the last two runs.
    runs: [(f64, f64, f64); 2],
}

impl Meter {
    fn of(server: &RedisServer) -> Self {
        Self { count: InstructionCount::of(server), idle: 0.0, runs: [(0.0, 0.0, 0.0); 2] }
    }

    async fn count_idle(&mut self) {
        self.count.take();
        sleep(IDLE).await;
        self.idle = self.count.take() as f64 / IDLE.as_secs_f64();
    }

    async fn count<T>(&mut self, jobs: usize, run: impl Future<Output = T>) -> T {
        self.count.take();
        let began = Instant::now();
        let result = run.await;
        let seconds = began.elapsed().as_secs_f64();
        self.runs = [self.runs[1], (jobs as f64, self.count.take() as f64, seconds)];
        result
    }

    fn per_job(&self) -> f64 {
        let [short, long] = self.runs;
        (long.1 - short.1 - self.idle * (long.2 - short.2)) / (long.0 - short.0)
    }
}
