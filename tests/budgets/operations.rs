//! A program that runs an operation (parse, delay, life) a given number of times, for valgrind to count instructions.

mod life;
mod sample;

use std::hint::black_box;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use ringback_core::clock::{ManualClock, Timestamp};
use ringback_core::retry::RetryPolicy;
use ringback_core::store_types::Options;
use ringback_store::{Memory, Store, settings};

use self::life::Life;

fn main() {
    let mut args = std::env::args().skip(1);
    let (name, times) = (args.next().unwrap_or_default(), args.next().and_then(|n| n.parse().ok()));
    let times = times.expect("an operation, and how often");
    match name.as_str() {
        "parse" => parse(times),
        "delay" => delay(times),
        "life" => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(life(times)),
        other => panic!("there is no operation {other:?}"),
    }
}

/// Parses a submitted job `times` times.
fn parse(times: usize) {
    let text = sample::text(7, sample::URL, 3600.0);
    for _ in 0..times {
        black_box(sample::parse(black_box(&text)));
    }
}

/// Computes a retry delay of the default policy `times` times.
fn delay(times: usize) {
    let policy = RetryPolicy::preset("default").expect("a preset");
    let mut rng = StdRng::seed_from_u64(1);
    for failures in (1..=9).cycle().take(times) {
        black_box(policy.delay(black_box(failures), Some(Duration::from_secs(20)), &mut rng));
    }
}

/// Runs `times` whole lives on an embedded store in memory: records are packed, indexed, moved and unpacked.
async fn life(times: usize) {
    const BATCH: usize = 10;
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let memory = Memory::new(clock.clone());
    let options = Options { shards: 1, ..settings::defaults(Duration::from_secs(600)) };
    let mut life = Life::of(Store::in_memory(&memory, options)).await;
    let jobs: Vec<_> = (0..times).map(|n| sample::parse(&sample::text(n, sample::URL, 1.0))).collect();
    for batch in jobs.chunks(BATCH) {
        life.submit(batch).await;
    }
    clock.advance(Duration::from_secs(2));
    life.finish(times, BATCH).await;
}
