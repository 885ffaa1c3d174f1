//! Instructions that Redis executes for each transition of a job, by batch size, counted by valgrind. They depend on the
//! scripts and on the build of Redis, not on the speed of the machine.

use std::time::Duration;

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_testkit::{InstructionCount, RedisServer, eventually};

use crate::calls::{LEAD, SOON, open};
use crate::life::Life;
use crate::table::Table;
use crate::{bounds, sample, turn};

#[tokio::test]
async fn no_transition_takes_more_instructions_of_redis_than_it_may() {
    let _turn = turn().await;
    if !InstructionCount::is_possible() {
        println!("instructions are left out: there is no valgrind (apt-get install valgrind)");
        return;
    }
    let mut table = Table::default();
    for (batch, batches, bounds) in bounds::REDIS_INSTRUCTIONS {
        for (bound, count) in bounds.into_iter().zip(per_job(batch, batches).await) {
            table.row(bound, count);
        }
    }
    table.judge();
}

/// Instructions per job of a submit, a promote, a reserve and a complete, of `batches` calls each.
async fn per_job(batch: usize, batches: usize) -> [f64; 4] {
    let server = RedisServer::options().count_instructions().arg("--hz", "1").start().await;
    let mut life = open(&server).await;
    let count = InstructionCount::of(&server);
    // What is done once for a server and for a lane does not count.
    finish(&mut life, &count, batch, 1, batch * batches).await;
    finish(&mut life, &count, batch, batches, 0).await.map(|all| all as f64 / (batch * batches) as f64)
}

/// Instructions of Redis for each transition of jobs with numbers from `first` on.
async fn finish(
    life: &mut Life,
    count: &InstructionCount,
    batch: usize,
    batches: usize,
    first: usize,
) -> [u64; 4] {
    let jobs = batch * batches;
    // Each job is due at a time of its own, after the last submit, which takes long under valgrind.
    let lead = LEAD.as_secs_f64() + batches as f64 * (0.12 + 0.016 * batch as f64);
    let delay = |n: usize| lead + n as f64 / 1000.0;
    let new: Vec<_> =
        (0..jobs).map(|n| sample::parse(&sample::text(first + n, sample::URL, delay(n)))).collect();
    count.take();
    for batch in new.chunks(batch) {
        life.submit(batch).await;
    }
    let submit = count.take();
    // The store's clock is this machine's.
    let last = SystemClock.now().plus(Duration::from_secs_f64(delay(jobs)));
    let clock = async || if SystemClock.now() <= last { Err("it does not yet") } else { Ok(()) };
    eventually(SOON, "the clock shows the last due time", clock).await;
    count.take();
    for _ in 0..batches {
        assert_eq!(life.promote(batch).await, batch, "all jobs are due");
    }
    let promote = count.take();
    let mut leases = Vec::new();
    for _ in 0..batches {
        leases.push(life.take(batch).await);
    }
    let reserve = count.take();
    for leases in leases {
        assert_eq!(leases.len(), batch, "all jobs are ready");
        life.complete(leases).await;
    }
    [submit, promote, reserve, count.take()]
}
