//! Cancels at the moment at which jobs become due, while another caller promotes, reserves and completes them.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ringback_core::clock::Timestamp;
use ringback_core::contract::Cancelled;
use ringback_core::job::{JobKey, NewJob};
use ringback_core::outcome::Outcome;
use ringback_testkit::figures::{Figure, Reached};
use tokio::time::sleep;

use super::jobs::{With, ms};
use super::workbench::{Workbench, now, until};

/// How many are due in a round, and how many milliseconds after each other. On a busy machine few calls are close enough,
/// so the later rounds are slower.
const ROUNDS: [(u64, u64); 4] = [(3_500, 1), (2_000, 2), (1_000, 5), (1_000, 10)];
/// So many close cancels are enough.
const ENOUGH: u64 = 2_500;
/// With fewer there was no race.
const LEAST: u64 = 350;
/// The first is due so long after they begin to be submitted.
const AHEAD: Duration = ms(3_000);
/// A job is cancelled so many milliseconds before it is due at the earliest, and so many after at the latest.
const CLOSE: u64 = 5;
/// Cancels under way or waiting for their moment.
const CALLERS: usize = 64;

pub(crate) async fn a_job_is_either_cancelled_or_reserved(bench: &Workbench) {
    let (mut jobs, mut cancelled, mut close) = (0, 0, 0);
    for (round, (count, apart)) in ROUNDS.into_iter().enumerate() {
        let of_round = race(bench, round, count, apart).await;
        jobs += count;
        cancelled += of_round.cancelled;
        close += of_round.close;
        let states = bench.stats().await.states;
        assert_eq!((states.cancelled, states.done), (cancelled, jobs - cancelled));
        if close >= ENOUGH && cancelled > 0 && cancelled < jobs {
            break;
        }
    }
    assert!(close >= LEAST, "{close} of {jobs} cancels are close to the due time: that was no race");
    assert!(cancelled > 0 && cancelled < jobs, "{cancelled} of {jobs} are cancelled: that was no race");
    Reached::new(Figure::CancelRaces, &format!("cancels on {}", bench.server_name()), close).write();
}

/// What came of a round.
struct Raced {
    cancelled: u64,
    /// How many cancels were under way close to the due time.
    close: u64,
}

async fn race(bench: &Workbench, round: usize, count: u64, apart: u64) -> Raced {
    let first = now().plus(AHEAD);
    let due = |n: u64| first.plus(ms(n * apart));
    let job = |n| bench.job(&format!("race-{round}-{n}")).at(due(n));
    let jobs: Vec<NewJob> = (0..count).map(job).collect();
    for part in jobs.chunks(500) {
        bench.submit(part).await;
    }

    let is_over = Cell::new(false);
    let cancel = async {
        let calls = stream::iter((0..count).zip(&jobs)).map(async |(n, job)| {
            let moment = due(n).as_millis() - CLOSE + n % (2 * CLOSE + 1);
            until(Timestamp::from_millis(moment)).await;
            let asked = now();
            (n, asked, bench.cancel(&job.key).await, now())
        });
        let answers: Vec<_> = calls.buffer_unordered(CALLERS).collect().await;
        is_over.set(true);
        answers
    };
    let (answers, reserved) = tokio::join!(cancel, complete(bench, &is_over, due(count)));

    let mut raced = Raced { cancelled: 0, close: 0 };
    for (n, asked, answer, answered) in answers {
        let key = &jobs[usize::try_from(n).expect("few")].key;
        let was_reserved = match answer {
            Cancelled::Cancelled { in_flight_unknown: false } => false,
            Cancelled::Requested { in_flight_unknown: false } | Cancelled::TooLate => true,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(reserved.contains(key), was_reserved, "{key}, due {:?}: {answer:?}", due(n));
        raced.cancelled += u64::from(!was_reserved);
        // A call takes effect at some time between request and answer, and a sleep ends up to a millisecond late.
        raced.close +=
            u64::from(asked <= due(n).plus(ms(CLOSE + 1)) && answered.plus(ms(CLOSE + 1)) >= due(n));
    }
    raced
}

/// Promotes, reserves and completes until nothing is left after the end. Returns the jobs that were reserved.
async fn complete(bench: &Workbench, is_over: &Cell<bool>, end: Timestamp) -> HashSet<JobKey> {
    let mut reserved = HashSet::new();
    loop {
        let is_last = is_over.get() && now() > end;
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
}
