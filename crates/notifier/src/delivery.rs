//! One attempt: POST and judge. Bounded by the job's deadline and by the lease, which
//! is renewed for long calls.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Client;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::contract::{Attempt, Lease, Note, Renewed};
use ringback_core::job::DEFAULT_TIMEOUT;
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::policy::Logging;
use ringback_core::retry::RetryPolicy;
use ringback_service::telemetry::tracing_active;
use ringback_service::{Shutdown, TraceParent, random};
use ringback_store::{PolicyBook, Store};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{Instrument as _, Span, debug, info_span, warn};

use crate::client::{self, Answer, Call, CallError};
use crate::metrics::{Counted, Metrics};
use crate::request;
use crate::settler::Word;
use crate::verdict::{Verdict, verdict};

/// Calls no longer than this need no renewal: their lease covers them from the start.
const LONGEST_STRETCH: Duration = Duration::from_secs(15);

/// What every attempt needs.
pub(crate) struct Courier {
    pub(crate) client: Client,
    pub(crate) store: Store,
    /// Known before the first job is reserved.
    pub(crate) policies: PolicyBook,
    /// Of jobs whose topic has none either.
    pub(crate) retry: RetryPolicy,
    pub(crate) margin: Duration,
    /// How long one call to the store may take.
    pub(crate) patience: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// Of this process, as attempts are noted under.
    pub(crate) name: Arc<str>,
}

/// What came of an attempt.
pub(crate) struct Delivered {
    /// To be settled; nothing when the lease was lost meanwhile.
    pub(crate) word: Option<Word>,
    pub(crate) machine: Machine,
}

/// How this machine fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Able,
    /// It lacked something that every call needs.
    Lacking,
}

/// How an attempt ended.
enum Ended {
    /// With an answer, or with the lack of one.
    Answered(Result<Answer, CallError>),
    /// The lease ran out under it: another notifier has the job by now.
    LeaseLost,
    /// The shutdown's grace is over.
    CutOff,
}

impl Ended {
    const fn machine(&self) -> Machine {
        match self {
            Self::Answered(Err(CallError::Local)) => Machine::Lacking,
            Self::Answered(_) | Self::LeaseLost | Self::CutOff => Machine::Able,
        }
    }
}

impl Courier {
    /// Hands one job over.
    pub(crate) async fn deliver(&self, mut lease: Lease) -> Delivered {
        let span = span(&lease);
        let mut rng = fork_generator();
        async {
            let trace = TraceParent::current().unwrap_or_else(|| own_trace(&lease, &mut rng));
            let started = Instant::now();
            let policy = self.policies.get(&lease.key.topic).ok().flatten();
            let deadline = lease.delivery.timeout.or(policy.as_ref().and_then(|policy| policy.timeout));
            let logging = self.store.logging(policy.as_deref());
            let call = request::build(&lease, policy, lease.clock().at(started), trace);
            let late = lease.clock().since(lease.due, started);
            self.metrics.lateness.record(late.as_secs_f64(), &[]);
            let ended = self.attempt(&mut lease, call, deadline.unwrap_or(DEFAULT_TIMEOUT), logging).await;
            let took = started.elapsed();
            self.metrics.attempt.record(took.as_secs_f64(), &[]);
            let outcome = match &ended {
                Ended::Answered(answer) => self.outcome(&lease, answer, started, took, &mut rng),
                Ended::CutOff => Some(Outcome::Release { after: Duration::ZERO }),
                Ended::LeaseLost => None,
            };
            if let Ended::Answered(Ok(answer)) = &ended {
                lease.record_response(answer.status.as_u16(), took);
            }
            self.report(&lease, &ended, outcome.as_ref(), took, late);
            let word = outcome.map(|outcome| {
                let note = self.note(&lease, &ended, &outcome, started, took, logging);
                Word { lease, outcome, late, note }
            });
            Delivered { word, machine: ended.machine() }
        }
        .instrument(span)
        .await
    }

    async fn attempt(&self, lease: &mut Lease, call: Call, deadline: Duration, logging: Logging) -> Ended {
        let (fails, succeeds) = (logging.notes_failure(), logging.notes_success(lease.attempt));
        let is_kept = move |status: StatusCode| if status.is_success() { succeeds } else { fails };
        tokio::select! {
            answer = client::post(&self.client, call, is_kept) => Ended::Answered(answer),
            ended = self.bound(lease, deadline) => ended,
            () = self.cut_off() => Ended::CutOff,
        }
    }

    /// Ends an attempt that takes as long as `deadline`, or whose lease is lost before.
    async fn bound(&self, lease: &mut Lease, deadline: Duration) -> Ended {
        let over = Instant::now() + deadline;
        if deadline <= covered(lease) {
            // One timer for both: most attempts need neither.
            let lost = lease.deadline();
            sleep_until(over.min(lost)).await;
            return if over <= lost { Ended::Answered(Err(CallError::Timeout)) } else { Ended::LeaseLost };
        }
        tokio::select! {
            () = sleep_until(over) => Ended::Answered(Err(CallError::Timeout)),
            () = self.renew(lease) => Ended::LeaseLost,
        }
    }

    /// Renews the lease for a long call each time half of it is over; returns when it is lost.
    async fn renew(&self, lease: &mut Lease) {
        let by = LONGEST_STRETCH + self.margin;
        loop {
            sleep(lease.deadline().saturating_duration_since(Instant::now()) / 2).await;
            loop {
                match self.store.renew(lease, by).await {
                    Ok(Renewed::Extended) => break,
                    Ok(Renewed::Stale) => return,
                    Err(_) if Instant::now() >= lease.deadline() => return,
                    Err(_) => sleep(Duration::from_millis(200)).await,
                }
            }
        }
    }

    /// Returns so long before the grace is over that a release still gets through.
    async fn cut_off(&self) {
        self.shutdown.stopping().await;
        let grace = self.shutdown.grace();
        let call = self.patience.min(grace);
        match self.shutdown.deadline() {
            Some(deadline) => sleep_until(deadline - call).await,
            None => sleep(grace - call).await,
        }
    }

    fn outcome(
        &self,
        lease: &Lease,
        answer: &Result<Answer, CallError>,
        started: Instant,
        took: Duration,
        rng: &mut StdRng,
    ) -> Option<Outcome> {
        let last = || LastAttempt {
            at: lease.clock().at(started),
            status: answer.as_ref().ok().map(|a| a.status.as_u16()),
            error: error_of(answer).map(str::to_owned),
            duration: took,
        };
        let topic = self.policies.get(&lease.key.topic).ok().flatten();
        let of_topic = topic.as_ref().and_then(|policy| policy.retry.as_ref());
        let policy = lease.delivery.retry.as_ref().or(of_topic).unwrap_or(&self.retry);
        Some(match verdict(answer, SystemClock.now()) {
            Verdict::Complete => Outcome::Complete,
            Verdict::Bury(reason) => Outcome::Bury { reason, last: last() },
            Verdict::Release(after) => Outcome::Release { after },
            Verdict::Failed { retry_after } => match policy.delay(lease.failures + 1, retry_after, rng) {
                Some(after) => Outcome::Retry { after, last: last() },
                None => Outcome::Bury { reason: Reason::Exhausted, last: last() },
            },
        })
    }

    /// What the log is told of an attempt. What was not tried is none, and one that was cut off
    /// by the shutdown is handed over again at once.
    fn note(
        &self,
        lease: &Lease,
        ended: &Ended,
        outcome: &Outcome,
        started: Instant,
        took: Duration,
        logging: Logging,
    ) -> Option<Box<Note>> {
        let is_noted = match outcome {
            Outcome::Complete => logging.notes_success(lease.attempt),
            Outcome::Retry { .. } | Outcome::Bury { .. } => logging.notes_failure(),
            Outcome::Release { .. } => false,
        };
        let Ended::Answered(answer) = ended else { return None };
        is_noted.then(|| {
            let attempt = Attempt {
                number: lease.attempt,
                at: lease.clock().at(started),
                duration: took,
                status: answer.as_ref().ok().map(|a| a.status.as_u16()),
                error: error_of(answer).map(str::to_owned),
                answer: answer.as_ref().map_or_else(|_| Bytes::new(), |a| a.start.clone()),
                by: self.name.as_ref().to_owned(),
            };
            Box::new(Note::of(lease, attempt))
        })
    }

    /// One event and one count per attempt.
    fn report(
        &self,
        lease: &Lease,
        ended: &Ended,
        outcome: Option<&Outcome>,
        took: Duration,
        late: Duration,
    ) {
        let counted = match outcome {
            Some(Outcome::Complete) => Counted::Complete,
            Some(Outcome::Retry { .. }) => Counted::Retry,
            Some(Outcome::Bury { .. }) => Counted::Bury,
            Some(Outcome::Release { .. }) => Counted::Release,
            None => Counted::LeaseLost,
        };
        self.metrics.count(counted);
        let (status, error) = match ended {
            Ended::Answered(answer) => (answer.as_ref().ok().map(|a| a.status.as_u16()), error_of(answer)),
            Ended::LeaseLost => (None, Some("lease lost")),
            Ended::CutOff => (None, Some("shutdown")),
        };
        let destination = lease.delivery.callback.origin();
        let (duration_ms, lateness_ms) = (took.as_secs_f64() * 1000.0, late.as_secs_f64() * 1000.0);
        let (topic, id, attempt) = (&lease.key.topic, &lease.key.id, lease.attempt);
        let next = counted.name();
        if counted == Counted::Complete {
            debug!(job.topic = %topic, job.id = %id, attempt, destination, status, duration_ms, lateness_ms, "handed over");
        } else if ended.machine() == Machine::Lacking {
            // Told once for all jobs, by the dispatcher.
            debug!(job.topic = %topic, job.id = %id, attempt, destination, error, next, "could not be tried");
        } else {
            warn!(job.topic = %topic, job.id = %id, attempt, destination, status, error, duration_ms, lateness_ms, next, "the attempt failed");
        }
    }
}

/// How long a call can take under a lease as the store gave it. That is by what the job says:
/// the store knows no topic's policy.
fn covered(lease: &Lease) -> Duration {
    lease.delivery.timeout.unwrap_or(DEFAULT_TIMEOUT).min(LONGEST_STRETCH)
}

/// What went wrong, in a word; none where the status tells.
fn error_of(answer: &Result<Answer, CallError>) -> Option<&'static str> {
    answer.as_ref().map_or_else(|error| Some(error.name()), Answer::error)
}

/// The attempt's span, in the job's trace; none where nobody records it.
fn span(lease: &Lease) -> Span {
    if !tracing_active() {
        return Span::none();
    }
    let span =
        info_span!("deliver", job.topic = %lease.key.topic, job.id = %lease.key.id, attempt = lease.attempt);
    if let Some(trace) = stored(lease) {
        trace.adopt(&span);
    }
    span
}

/// A generator of this attempt's own: seeded by the thread's, which the operating system
/// seeds once.
fn fork_generator() -> StdRng {
    thread_local! {
        static SEEDS: RefCell<StdRng> = RefCell::new(random::generator());
    }
    StdRng::seed_from_u64(SEEDS.with_borrow_mut(|seeds| seeds.random()))
}

/// The trace that the job was submitted in.
fn stored(lease: &Lease) -> Option<TraceParent> {
    let trace = lease.delivery.trace?;
    Some(TraceParent { trace_id: trace.trace_id, span_id: trace.parent_id, sampled: trace.flags & 1 == 1 })
}

/// What goes out while nothing is recorded here: the job's trace, and a new span of it.
fn own_trace(lease: &Lease, rng: &mut StdRng) -> TraceParent {
    let known = stored(lease);
    TraceParent {
        trace_id: known.map_or_else(|| request::trace_id(lease), |t| t.trace_id),
        span_id: rng.random::<u64>().max(1).to_be_bytes(),
        sampled: known.is_some_and(|t| t.sampled),
    }
}
