//! Cancels while another caller promotes, reserves and completes due jobs: a job is either cancelled or reserved.

use std::cell::Cell;
use std::collections::HashSet;

use futures_util::{StreamExt as _, stream};
use ringback_core::clock::Timestamp;
use ringback_core::job::{JobKey, NewJob};
use ringback_core::store_types::Cancelled;
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::variable;
use tokio::time::sleep;

use super::job_builders::{With, ms};
use super::workbench::{Workbench, now, until};
use crate::prelude::*;

/// The rounds of `make test`: how many jobs are due, and how far apart. On a busy machine few calls are close enough, so
/// the later rounds are slower.
const ROUNDS: [(u64, Duration); 4] = [(3_500, ms(1)), (2_000, ms(2)), (1_000, ms(5)), (1_000, ms(10))];
/// The number of close cancels that is enough, unless `RINGBACK_TEST_CANCEL_RACES` is set.
const ENOUGH: u64 = 2_500;
/// The least number of close cancels: with fewer there was no race.
const LEAST: u64 = 350;
/// A round of the long form, which has as many as it takes. Its jobs are due as close to each other as the machine
/// keeps up with.
const LONG_ROUND: u64 = 10_000;
const CLOSEST: Duration = Duration::from_micros(125);
const FARTHEST: Duration = ms(10);
/// How long after the start of the submits the first job is due.
const AHEAD: Duration = ms(3_000);
/// A job is cancelled at most this many milliseconds before or after it is due.
const CLOSE: u64 = 5;
/// Cancels under way or waiting for their moment.
const CALLERS: usize = 128;

pub(crate) async fn a_job_is_either_cancelled_or_reserved(bench: &Workbench) {
    let wanted = variable("RINGBACK_TEST_CANCEL_RACES");
    let (mut jobs, mut cancelled, mut close) = (0, 0, 0);
    let (mut round, mut apart) = (0, CLOSEST);
    while close < wanted.unwrap_or(ENOUGH) || cancelled == 0 || cancelled == jobs {
        let (count, apart_now) = match (wanted, ROUNDS.get(round)) {
            (Some(_), _) => (LONG_ROUND, apart),
            (None, Some(round)) => *round,
            (None, None) => break,
        };
        let own = bench.with(|options| options.prefix = format!("race-{round}")).await;
        let of_round = race(&own, count, apart_now).await;
        let states = own.stats().await.states;
        assert_eq!((states.cancelled, states.done), (of_round.cancelled, count - of_round.cancelled));
        own.check().await;
        jobs += count;
        cancelled += of_round.cancelled;
        close += of_round.close;
        round += 1;
        if wanted.is_some() && of_round.close == 0 && apart_now == FARTHEST {
            break;
        }
        apart = if of_round.close < count / 2 { apart * 2 } else { apart * 3 / 4 }.clamp(CLOSEST, FARTHEST);
    }
    assert!(close >= LEAST, "{close} of {jobs} cancels are close to the due time: that was no race");
    assert!(cancelled > 0 && cancelled < jobs, "{cancelled} of {jobs} are cancelled: that was no race");
    Reached::new(Figure::CancelRaces, &format!("cancels on {}", bench.server_name()), close).write();
}

/// The result of a round.
struct Raced {
    cancelled: u64,
    /// How many cancels were under way close to the due time.
    close: u64,
}

async fn race(bench: &Workbench, count: u64, apart: Duration) -> Raced {
    let first = now().plus(AHEAD);
    let due = |n: u64| first.plus(apart * u32::try_from(n).expect("few"));
    let job = |n| bench.job(&format!("race-{n}")).at(due(n));
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

/// Promotes, reserves and completes jobs until `is_over`, `end` has passed, and nothing is left. Returns the reserved
/// jobs. Panics if one is reserved twice.
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
