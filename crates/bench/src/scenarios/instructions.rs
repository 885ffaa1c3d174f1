//! Instructions that Redis executes for one job from submit to done, counted by valgrind, beside BullMQ. They do not depend
//! on the speed of the machine.

use ringback_testkit::{InstructionCount, RedisServer};
use serde_json::json;

use super::redis_cpu::life;
use crate::figure::{Figure, skipped, yardstick};
use crate::job::{URL, job, parse};
use crate::setup::Setup;
use crate::yardstick::bullmq::Bullmq;

pub(crate) const NAME: &str = "instructions";
/// BullMQ's jobs are due so many ms after its first submit at least, which is slow under valgrind.
const LEAD: usize = 20_000;

pub(crate) async fn run(setup: &Setup) {
    if !InstructionCount::is_possible() {
        skipped(NAME, "all", "there is no valgrind");
        return;
    }
    for batch in [1, 8, 50] {
        let jobs = setup.size.pick(if batch == 1 { 200 } else { 800 }, 2 * batch);
        let value = ours(setup, jobs, batch).await.into();
        let bullmq = yardstick(NAME, "BullMQ", bullmq(setup, jobs, batch).await);
        let yardstick = bullmq.map(|(name, value)| (name, value.into()));
        let with = json!({ "jobs": jobs, "batch": batch });
        Figure { scenario: NAME, name: "per-life", unit: "instr", value, yardstick, with }.report();
    }
}

/// A server whose instructions are counted. Its timer runs once a second.
async fn counted() -> RedisServer {
    RedisServer::options().count_instructions().arg("--hz", "1").start().await
}

async fn ours(setup: &Setup, jobs: usize, batch: usize) -> f64 {
    let server = counted().await;
    let store = setup.open(&server).await;
    let count = InstructionCount::of(&server);
    let soon = |n| parse(&job(n, URL, &json!({ "delay": 0.001 })));
    // What is done once for a server and for a lane does not count.
    life(&store, (jobs..jobs + 4 * batch).map(soon).collect(), batch).await;
    count.take();
    life(&store, (0..jobs).map(soon).collect(), batch).await;
    count.take() as f64 / jobs as f64
}

/// The difference of two runs of different length, so that start and end do not count.
async fn bullmq(setup: &Setup, jobs: usize, batch: usize) -> Result<f64, String> {
    let bullmq = Bullmq::get(setup).await?;
    let server = counted().await;
    let count = InstructionCount::of(&server);
    let mut first = 0;
    let mut counted = [0; 2];
    for (sum, jobs) in counted.iter_mut().zip([jobs, 2 * jobs]) {
        count.take();
        let more = json!({ "url": URL, "batch": batch, "lead": LEAD });
        bullmq.run("lives", &server, first, jobs, &more).await?;
        *sum = count.take();
        first += jobs;
    }
    Ok(counted[1].saturating_sub(counted[0]) as f64 / jobs as f64)
}
