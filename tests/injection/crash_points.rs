//! All crash points of the roles, on Redis and on the embedded store: at each a process is killed, stopped beyond its
//! lock and, at calls of the store, cut off from the answer, while jobs of all kinds run. Then nothing is lost, early
//! or invented.
//!
//! The names are read from the source, so that a new one is tested without being listed. By default processes are
//! killed at each point, and stopped and cut off at a third, chosen by the seed. `RINGBACK_TEST_SWEEPS` is how often
//! all of it is done at each.

mod commands;
mod load;
mod names;
mod supervisor;
mod tour;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{FaultClass, Invariant, InvariantResult};
use ringback_testkit::recorded::{Bounds, Recorded};
use ringback_testkit::{Persistence, RedisServer, Role, Sink, Stack, StackOptions, variable};

use tokio::task::JoinSet;
use tokio::time::Instant;

use self::load::Load;
pub(crate) use self::names::{Plan, quota_points, repair_points, share, store_calls};
use self::names::{embedded_points, redis_points};
pub(crate) use self::supervisor::{Counts, Ends, supervise};
pub(crate) use self::tour::Tour;
use crate::seed::seed;

/// How long a sweep may take on a busy machine.
const SWEEP: Duration = Duration::from_secs(200);
/// How long everything may take to drain once nothing is armed any more: leases of killed processes run out.
const DRAIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_of_the_roles_on_redis_loses_nothing() {
    let redis = RedisServer::options().persistence(Persistence::EverySec);
    let options = Stack::options().redis(redis).count(Role::Api, 2).count(Role::Carrier, 2);
    sweep("roles on redis", options.count(Role::Notifier, 2), &redis_points()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_of_the_embedded_store_loses_nothing() {
    sweep("embedded store", Stack::options().in_one_process().store("embedded:./data"), &embedded_points())
        .await;
}

#[expect(clippy::too_many_lines, reason = "one run, from its plan to what is checked at its end")]
async fn sweep(name: &str, options: StackOptions, points: &[String]) {
    let sweeps = sweeps();
    for round in 0..sweeps.unwrap_or(1) {
        let plan = Plan::new(points, seed().wrapping_add(round), sweeps.is_some());
        let options = plan.give(options.clone().lock_ttl("500ms")).env("RINGBACK_SHARDS", "4");
        let options = options.env("RINGBACK_LOG_FORMAT", "json");
        let options = options.env("RINGBACK_LOG", "info,ringback_carrier::epoch_log=debug");
        let recorded = Arc::new(Recorded::start(name, &Bounds::default()));
        let fault = recorded.fault("crash-points", FaultClass::Process);
        let cuts = recorded.fault("cut", FaultClass::Network);
        let (sink, aside) = (Sink::recorded(recorded.history()).await, Sink::start().await);
        let mut stack = options.launch().await;
        read_clock(&recorded, &stack).await;
        let apis = stack.api_urls();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        clients.spawn(Load::new(&recorded, &apis, &sink).run(Arc::clone(&is_over)));
        let tour = Tour::new(&recorded, &apis, &stack, &aside);
        clients.spawn(tour.run(Arc::clone(&is_over)));

        let (mut counts, begun) = (Counts::default(), Instant::now());
        supervise(&mut stack, &mut counts, SWEEP, &plan, Ends::IfStuck).await;
        let took = begun.elapsed();
        is_over.store(true, Ordering::SeqCst);
        let never = Plan::never();
        let ends = async {
            while let Some(client) = clients.join_next().await {
                client.expect("a client does not panic");
            }
        };
        tokio::select! {
            () = ends => {}
            () = supervise(&mut stack, &mut counts, DRAIN, &never, Ends::Never) => {}
        }
        stack.ready(DRAIN).await;
        let consumer = Load::new(&recorded, &apis, &sink);
        tokio::select! {
            () = recorded.drain(&stack, &load::TOPICS, DRAIN) => {}
            () = consumer.finish_pull_jobs() => {}
        }
        read_clock(&recorded, &stack).await;
        recorded.healed(fault);
        recorded.healed(cuts);
        for carrier in stack.carriers.iter().chain(&stack.ups) {
            recorded.epochs(&carrier.log(), carrier.pid());
        }
        recorded.end(&stack, &load::TOPICS, false).await;
        let report = recorded.check();
        show(&format!("{name}, seed {}: {counts:?} in {took:?}\n{report}", plan.seed));
        let totals = &report.totals;
        let (wrong, stale) =
            (totals.lost + totals.early + totals.invented, report.standing(Invariant::Fencing));
        Reached::new(Figure::Kills, &format!("crash points, {name}"), counts.kills.into())
            .wrong(wrong)
            .write();
        let pauses = Reached::new(
            Figure::Pauses,
            &format!("crash points, {name}"),
            counts.stops_beyond_the_lock.into(),
        );
        pauses.wrong(stale.violations).write();
        recorded.assert_clean(&report, &format!("seed {}", plan.seed));
        let held = |invariant| report.standing(invariant).verdict == InvariantResult::Held;
        assert!(
            [
                Invariant::NothingLost,
                Invariant::ContentUnchanged,
                Invariant::Fencing,
                Invariant::RecordsIndexed
            ]
            .into_iter()
            .all(held)
        );
        assert_eq!((report.totals.lost, report.totals.early, report.totals.invented), (0, 0, 0));
    }
}

/// Writes the clock of a Redis store to the history. An embedded store has the clock of the machine.
async fn read_clock(recorded: &Recorded, stack: &Stack) {
    if stack.ups.is_empty() {
        recorded.read_clock(stack.redis()).await;
    }
}

/// The number of whole sweeps in `RINGBACK_TEST_SWEEPS`; `None` if it is unset.
pub(crate) fn sweeps() -> Option<u64> {
    variable("RINGBACK_TEST_SWEEPS")
}

#[expect(clippy::print_stdout, reason = "the report is read by people")]
pub(crate) fn show(text: &str) {
    println!("{text}");
}
