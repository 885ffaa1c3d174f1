//! How long recovery takes after kill -9: of the only process of a role after its start, and of a job whose notifier
//! was killed. No job is lost. The times are written to the figures, not asserted.

use ringback_testkit::Process;
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{Entry, Exit, FaultClass};
use ringback_testkit::recorded::{Bounds, Recorded};
use tokio::time::Instant;

use super::recorded_load::{RecordedLoad, TOPIC};
use crate::prelude::*;

const ROUNDS: usize = 4;
/// A process works within this after its start, also a carrier whose predecessor still has its lock.
const ALLOWED: Duration = Duration::from_secs(2);
/// The timeout of jobs and the margin; with a lock and a tick, a job is delivered again within this.
const LEASE: Duration = Duration::from_millis(1_300);
const LOCK: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_secs(1);

#[tokio::test]
async fn killed_processes_and_lost_leases_recover_without_losing_a_job() {
    let mut stack = Stack::options().lock_ttl("500ms").lease_margin("800ms").start().await;
    let recorded = Recorded::start("recovery", &Bounds { live: Some(SOON), ..Bounds::default() });
    let sink = Sink::recorded(recorded.history()).await;
    recorded.read_clock(stack.redis()).await;
    let load = RecordedLoad::new(&recorded, &stack, sink.url("/hook"));
    let (mut of_process, mut of_lease) = (Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS {
        for role in ["api", "carrier", "notifier"] {
            let (id, held) = (format!("{role}-{round}"), format!("held-{role}-{round}"));
            sink.answer_job(&held, Answer::status(200).held());
            load.submit(&held, 0).await;
            sink.wait_for_job(&held, 1, SOON).await;
            let process = match role {
                "api" => &mut stack.apis[0],
                "carrier" => &mut stack.carriers[0],
                _ => &mut stack.notifiers[0],
            };
            let (killed, started) = kill(process, role, &recorded);
            sink.answer_job(&held, Answer::status(200));
            // The job passes through all three roles.
            load.submit(&id, 1).await;
            sink.wait_for_job(&id, 1, SOON).await;
            of_process = of_process.max(started.elapsed());
            if role == "notifier" {
                sink.wait_for_job(&held, 2, SOON).await;
                of_lease = of_lease.max(killed.elapsed());
            } else {
                sink.release();
            }
        }
    }
    recorded.drain(&stack, &[TOPIC], SOON).await;
    recorded.read_clock(stack.redis()).await;
    recorded.end(&stack, &[TOPIC], true).await;

    let (report, kills) = (recorded.check(), 3 * ROUNDS as u64);
    let totals = &report.totals;
    let wrong = totals.lost + totals.early + totals.invented;
    Reached::new(Figure::Kills, "recovery", kills).wrong(wrong).write();
    Reached::new(Figure::ProcessRecovery, "recovery", kills).took(of_process, ALLOWED).write();
    let leases = Reached::new(Figure::LeaseRecovery, "recovery", ROUNDS as u64);
    leases.took(of_lease, LEASE + LOCK + TICK).write();
    recorded.assert_clean(&report, "");
    assert_eq!((totals.kills, wrong), (kills, 0));
}

/// Kills and starts a process, and writes both to the history. Returns when it was dead and when it was started.
fn kill(process: &mut Process, role: &str, recorded: &Recorded) -> (Instant, Instant) {
    let (fault, pid) =
        (recorded.fault_of(&format!("kill-{role}"), FaultClass::Process, process.pid()), process.pid());
    process.kill();
    let (t, killed) = (recorded.history().t(), Instant::now());
    recorded.history().write(&Entry::Exit(Exit { t, pid, status: None, signal: Some(9) }));
    process.restart();
    recorded.healed(fault);
    (killed, Instant::now())
}
