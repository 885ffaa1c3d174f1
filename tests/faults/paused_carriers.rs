//! Carriers that are paused beyond their locks, again and again, while jobs become due: another takes over, and what a
//! paused carrier does afterwards is refused. The checker of histories also judges the log of epochs.

use std::sync::atomic::{AtomicBool, Ordering};

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{FaultClass, Invariant, InvariantResult};
use ringback_testkit::recorded::{Bounds, Recorded, RecordedJob};
use ringback_testkit::{Process, Role, variable};
use tokio::time::{Instant, sleep};

use super::recorded_load::TOPIC;
use crate::prelude::*;

/// How many carriers there are; of these all but one are paused at a time.
const CARRIERS: usize = 6;
const SHARDS: usize = 2 * CARRIERS;
/// How often, unless `RINGBACK_TEST_PAUSES` says how many pauses there are in all.
const ROUNDS: usize = 10;
/// How long a carrier keeps its shards without a heartbeat.
const LOCK: Duration = Duration::from_millis(500);
/// A heartbeat of the others, and what a busy machine adds.
const TICK: Duration = Duration::from_secs(1);
/// The pause between two due times.
const PAUSE: Duration = Duration::from_millis(15);

#[tokio::test]
async fn carriers_that_are_paused_beyond_their_locks_have_no_effect_afterwards() {
    let pauses: Option<usize> = variable("RINGBACK_TEST_PAUSES");
    let rounds = pauses.map_or(ROUNDS, |pauses| pauses.div_ceil(CARRIERS - 1));
    let options = Stack::options().count(Role::Carrier, CARRIERS).lock_ttl("500ms");
    let options = options.env("RINGBACK_SHARDS", &SHARDS.to_string());
    let options = options
        .env("RINGBACK_LOG_FORMAT", "json")
        .env("RINGBACK_LOG", "info,ringback_carrier::epoch_log=debug");
    let mut stack = options.start().await;
    let recorded = Recorded::start("paused carriers", &Bounds { live: Some(SOON), ..Bounds::default() });
    let sink = Sink::recorded(recorded.history()).await;
    recorded.read_clock(stack.redis()).await;

    let (api, url, is_over) = (stack.api_urls().remove(0), sink.url("/hook"), AtomicBool::new(false));
    let load = async {
        for n in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let mut job = RecordedJob::new(TOPIC, &format!("job-{n}"), Some(url.clone()));
            job.delay = Some(n * 37 % 600);
            recorded.submit(&api, &job).await;
            sleep(PAUSE).await;
        }
    };
    let pauses = async {
        let mut longest = Duration::ZERO;
        for round in 0..rounds {
            for carrier in &stack.carriers {
                holds(carrier, SHARDS / CARRIERS).await;
            }
            longest = longest.max(pause_all_but(round % CARRIERS, &recorded, &mut stack.carriers).await);
        }
        is_over.store(true, Ordering::Relaxed);
        longest
    };
    let ((), longest) = tokio::join!(load, pauses);
    recorded.drain(&stack, &[TOPIC], SOON).await;
    recorded.read_clock(stack.redis()).await;
    let carriers = stack.carriers.iter();
    let fenced: usize = carriers.map(|carrier| recorded.epochs(&carrier.log(), carrier.pid())).sum();
    recorded.end(&stack, &[TOPIC], true).await;

    let (report, count) = (recorded.check(), rounds * (CARRIERS - 1));
    let stale = report.standing(Invariant::Fencing);
    Reached::new(Figure::Pauses, "paused carriers", count as u64).wrong(stale.violations).write();
    Reached::new(Figure::LockRecovery, "paused carriers", rounds as u64).took(longest, LOCK + TICK).write();
    recorded.assert_clean(&report, "");
    assert!(
        stale.verdict == InvariantResult::Held
            && report.standing(Invariant::NothingLost).verdict == InvariantResult::Held
    );
    assert!(fenced > 0, "no paused carrier has tried anything");
}

/// Pauses all carriers but one until that one holds all shards, and continues them. Returns how long the pause took.
async fn pause_all_but(survivor: usize, recorded: &Recorded, carriers: &mut [Process]) -> Duration {
    let fault = recorded.fault("pause-carriers", FaultClass::Process);
    let begun = Instant::now();
    for (place, carrier) in carriers.iter_mut().enumerate() {
        if place != survivor {
            carrier.stop();
        }
    }
    // The survivor can claim the shards of the others only once their locks have expired.
    holds(&carriers[survivor], SHARDS).await;
    let took = begun.elapsed();
    carriers.iter_mut().for_each(Process::cont);
    recorded.healed(fault);
    took
}

/// Waits until a carrier holds exactly `shards` shards.
async fn holds(carrier: &Process, shards: usize) {
    carrier.wait_metric("ringback_carrier_held_shards", shards as f64, SOON).await;
}
