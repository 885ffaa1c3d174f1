//! Cancels at the moment at which jobs become due, while another caller promotes, reserves and completes them.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ringback_core::clock::Timestamp;
use ringback_core::contract::Cancelled;
use ringback_core::job::NewJob;
use ringback_core::outcome::Outcome;
use ringback_testkit::figures::{Figure, Reached};
use tokio::time::sleep;

use super::jobs::{With, ms};
use super::workbench::{Workbench, now, until};

/// One is due each millisecond.
const JOBS: u64 = 3_500;
/// The first is due so long after they begin to be submitted.
const AHEAD: Duration = ms(3_000);
/// A job is cancelled so many milliseconds before it is due at the earliest, and so many after at the latest.
const CLOSE: u64 = 5;
/// Cancels under way or waiting for their moment.
const CALLERS: usize = 64;

pub(crate) async fn a_job_is_either_cancelled_or_reserved(bench: &Workbench) {
    let first = now().plus(AHEAD);
    let due = |n: u64| first.plus(ms(n));
    let jobs: Vec<NewJob> = (0..JOBS).map(|n| bench.job(&format!("race-{n}")).at(due(n))).collect();
    for part in jobs.chunks(500) {
        bench.submit(part).await;
    }

    let is_over = Cell::new(false);
    let cancel = async {
        let calls = stream::iter((0..JOBS).zip(&jobs)).map(async |(n, job)| {
            let moment = first.as_millis() - CLOSE + n + n % (2 * CLOSE + 1);
            until(Timestamp::from_millis(moment)).await;
            let asked = now();
            (n, asked, bench.cancel(&job.key).await, now())
        });
        let answers: Vec<_> = calls.buffer_unordered(CALLERS).collect().await;
        is_over.set(true);
        answers
    };
    let complete = async {
        let mut reserved = HashSet::new();
        loop {
            let is_last = is_over.get() && now() > due(JOBS);
            let moved = bench.promote(500).await.moved;
            let leases = bench.take(500).await;
            if is_last && moved == 0 && leases.is_empty() {
                return reserved;
            }
            for lease in &leases {
                assert!(reserved.insert(lease.key.clone()), "{} is reserved twice", lease.key);
            }
            if !leases.is_empty() {
                bench.settle_all(leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect()).await;
            }
            sleep(ms(1)).await;
        }
    };
    let (answers, reserved) = tokio::join!(cancel, complete);

    let (mut cancelled, mut close) = (0, 0);
    for (n, asked, answer, answered) in answers {
        let key = &jobs[usize::try_from(n).expect("few")].key;
        let was_reserved = match answer {
            Cancelled::Cancelled { in_flight_unknown: false } => false,
            Cancelled::Requested { in_flight_unknown: false } | Cancelled::TooLate => true,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(reserved.contains(key), was_reserved, "{key}, due {:?}: {answer:?}", due(n));
        cancelled += u64::from(!was_reserved);
        // A call takes effect at some time between request and answer, and a sleep ends up to a millisecond late.
        close += u64::from(asked <= due(n).plus(ms(CLOSE + 1)) && answered.plus(ms(CLOSE + 1)) >= due(n));
    }
    assert!(cancelled > 0 && cancelled < JOBS, "{cancelled} of {JOBS} are cancelled: that was no race");
    let states = bench.stats().await.states;
    assert_eq!((states.cancelled, states.done), (cancelled, JOBS - cancelled));
    Reached::new(Figure::CancelRaces, &format!("cancels on {}", bench.server_name()), close).write();
}
