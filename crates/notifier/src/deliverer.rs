//! `Deliverer`: makes one attempt: sends the callback, bounded by timeout, lease and shutdown, renews the lease during
//! long callbacks, turns the response into an outcome, and logs, counts and reports the attempt.

mod attempted;
mod repeats;
mod trace;

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_core::clock::Clock;
use ringback_core::crash_point;
use ringback_core::job::{DEFAULT_TIMEOUT, Trace};
use ringback_core::limits::{MAX_LEASE_STRETCH, lease_stretch};
use ringback_core::outcome::{Outcome, Reason};
use ringback_core::store_types::{Attempt, AttemptLogEntry, Failures, Lease, Renewed, Success};
use ringback_core::topic_policy::Policy;
use ringback_service::{Shutdown, random};
use ringback_store::{Retries, Store};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{Instrument as _, debug, info, warn};

use self::attempted::{Attempted, Ending, KeptAnswers};
use self::repeats::{Repeats, Sending};
use crate::client::{Client, PostError};
use crate::credentials::Credentials;
use crate::failing::{Failing, FailingDestinations, Report};
use crate::metrics::{AttemptResult, Metrics};
use crate::reports::Reports;
use crate::request;
use crate::response_class::{ResponseClass, classify, slows};
use crate::signer::Signer;
use crate::store_call::Settlement;

/// The pause between two tries to renew a lease.
const RENEW_RETRY: Duration = Duration::from_millis(200);

/// Delivers jobs; one instance serves all attempts.
pub(crate) struct Deliverer {
    pub(crate) client: Client,
    pub(crate) store: Store,
    /// The policies of the topics, known before the first job is reserved, and the default.
    pub(crate) retries: Retries,
    /// How much longer than the timeout of its attempt a lease is.
    pub(crate) margin: Duration,
    /// How long one call to the store may take.
    pub(crate) call_timeout: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// The time of day, for a `Retry-After` that names a date.
    pub(crate) clock: Arc<dyn Clock>,
    /// The name of this process in the attempt log.
    pub(crate) name: Arc<str>,
    pub(crate) failing: Mutex<FailingDestinations>,
    /// The same and the lateness for the store.
    pub(crate) reports: Arc<Reports>,
    pub(crate) signer: Signer,
    pub(crate) credentials: Credentials,
}

/// How long an attempt may take, all its calls together.
#[derive(Clone, Copy)]
struct Limit {
    timeout: Duration,
    deadline: Instant,
}

/// The result of a delivery.
pub(crate) struct Delivered {
    /// `None` if the lease was lost meanwhile.
    pub(crate) settlement: Option<Settlement>,
    /// Whether the receiver has failed; `None` if nothing was sent, or the end of the attempt is not known.
    pub(crate) has_failed: Option<bool>,
    pub(crate) took: Duration,
    /// True if nothing was sent because this machine is out of file descriptors or memory.
    pub(crate) is_out_of_resources: bool,
}

/// The timeout of an attempt: that of the job, else of its topic, else the default.
fn timeout_of(lease: &Lease, policy: Option<&Policy>) -> Duration {
    lease.delivery.timeout.or(policy.and_then(|policy| policy.timeout)).unwrap_or(DEFAULT_TIMEOUT)
}

impl Deliverer {
    pub(crate) async fn deliver(&self, mut lease: Lease) -> Delivered {
        let span = trace::span(&lease);
        let mut rng = fork_generator();
        async {
            let trace = trace::to_send(&lease, &mut rng);
            let started = Instant::now();
            let policy = self.retries.policies.get(&lease.key.topic).ok().flatten();
            let kept = KeptAnswers::new(self.store.logging(policy.as_deref()), &lease, policy.as_deref());
            let lateness = lease.clock().since(lease.due, started);
            self.metrics.lateness.record(lateness.as_secs_f64(), &[]);
            let timeout = timeout_of(&lease, policy.as_deref());
            crash_point!("notifier.before_post");
            let ending = self.call(&mut lease, policy, trace, timeout, kept).await;
            crash_point!("notifier.after_post");
            let took = started.elapsed();
            self.metrics.attempt.record(took.as_secs_f64(), &[]);
            let attempted = Attempted { ending, started, took, lateness };
            let outcome = self.outcome(&lease, &attempted, &mut rng);
            if let Some(status) = attempted.status() {
                trace::responded(status);
                lease.record_response(status, took);
            }
            if let Some(success) = kept.success(&attempted, outcome.as_ref()) {
                lease.success = Some(Box::new(self.cut_to_room(success).await));
            }
            self.report(&lease, &attempted, outcome.as_ref());
            if outcome.is_some() {
                self.reports.sent(lateness);
            }
            let settlement = outcome.map(|outcome| {
                // Attempts that sent nothing or were cut off by the shutdown are not logged.
                let is_logged = match outcome {
                    Outcome::Complete => kept.logging.notes_success(lease.attempt),
                    Outcome::Retry { .. } | Outcome::Bury { .. } => kept.logging.notes_failure(),
                    Outcome::Release { .. } | Outcome::Return => false,
                };
                let note = is_logged.then(|| {
                    let attempt = Attempt {
                        number: lease.attempt,
                        at: lease.clock().at(started),
                        duration: took,
                        status: attempted.status(),
                        error: attempted.error().map(str::to_owned),
                        answer: attempted
                            .response()
                            .map_or_else(Bytes::new, |response| response.body.clone()),
                        by: self.name.as_ref().to_owned(),
                    };
                    Box::new(AttemptLogEntry::of(&lease, attempt))
                });
                Settlement { lease, outcome, note }
            });
            let is_out_of_resources = attempted.is_out_of_resources();
            Delivered { settlement, has_failed: attempted.has_failed(), took, is_out_of_resources }
        }
        .instrument(span)
        .await
    }

    /// The timeout of an attempt of a job.
    pub(crate) fn timeout(&self, lease: &Lease) -> Duration {
        timeout_of(lease, self.retries.policies.get(&lease.key.topic).ok().flatten().as_deref())
    }

    /// Calls the receiver, and repeats the call within the same attempt, until its timeout, if the receiver has not
    /// processed it, by [`Repeats`]. Sends nothing if the job has expired or cannot be signed.
    async fn call(
        &self,
        lease: &mut Lease,
        policy: Option<Arc<Policy>>,
        trace: Trace,
        timeout: Duration,
        kept: KeptAnswers,
    ) -> Ending {
        let (deadline, mut repeats) = (Instant::now() + timeout, Repeats::default());
        let mut sending = Sending::default();
        loop {
            let now = lease.clock().at(Instant::now());
            if lease.expires().is_some_and(|at| now >= at) {
                return Ending::Expired;
            }
            let request = request::build(lease, policy.clone(), now, trace, &self.signer, &self.credentials);
            let Ok(mut request) = request else { return Ending::Answered(Err(PostError::Unsigned)) };
            request.wanted = sending.wanted;
            let post = async {
                if !sending.pause.is_zero() {
                    sleep(sending.pause).await;
                }
                self.client.post(request, move |status| kept.is_kept(status)).await
            };
            let ending = tokio::select! {
                biased;
                response = post => Ending::Answered(response),
                ending = self.expire(lease, Limit { timeout, deadline }) => ending,
                () = self.cut_off() => Ending::CutOff,
            };
            match repeats.after(&ending) {
                Some(next) if Instant::now() + next.pause < deadline => sending = next,
                Some(_) | None => return ending,
            }
        }
    }

    /// Waits until an attempt must end: at its deadline with a timeout, or when its lease is lost. Renews the lease if
    /// the timeout is longer than the lease allows for.
    async fn expire(&self, lease: &mut Lease, Limit { timeout, deadline }: Limit) -> Ending {
        // The store granted the lease by the timeout of the job. It does not know that of the topic.
        if timeout <= lease_stretch(lease.delivery.timeout) {
            // One timer for both: most attempts reach neither.
            let lost = lease.deadline();
            sleep_until(deadline.min(lost)).await;
            let is_timeout = deadline <= lost;
            return if is_timeout { Ending::Answered(Err(PostError::Timeout)) } else { Ending::LeaseLost };
        }
        tokio::select! {
            biased;
            () = sleep_until(deadline) => Ending::Answered(Err(PostError::Timeout)),
            () = self.keep_lease(lease) => Ending::LeaseLost,
        }
    }

    /// Renews the lease each time half of it is over. Returns when the lease is lost: it has expired, or the store says
    /// that it is stale.
    async fn keep_lease(&self, lease: &mut Lease) {
        let by = MAX_LEASE_STRETCH + self.margin;
        loop {
            sleep(lease.deadline().saturating_duration_since(Instant::now()) / 2).await;
            loop {
                match self.store.renew(lease, by).await {
                    Ok(Renewed::Extended) => break,
                    Ok(Renewed::Stale) => return,
                    Err(_) if Instant::now() >= lease.deadline() => return,
                    Err(_) => sleep(RENEW_RETRY).await,
                }
            }
        }
    }

    /// Waits for the shutdown, and then until only the time of one store call is left of its grace period.
    async fn cut_off(&self) {
        self.shutdown.stopping().await;
        let grace = self.shutdown.grace();
        let call = self.call_timeout.min(grace);
        match self.shutdown.deadline() {
            Some(deadline) => sleep_until(deadline - call).await,
            None => sleep(grace - call).await,
        }
    }

    /// Drops the answer from what a notice will report if the store is nearly full. Keeps it if the store does not say
    /// so in time.
    async fn cut_to_room(&self, success: Success) -> Success {
        match timeout(self.store.log_attempts_timeout(), self.store.shortage()).await {
            Ok(Some(_)) => Success { answer: Bytes::new(), ..success },
            Ok(None) | Err(_) => success,
        }
    }

    /// The outcome to settle, by the response, the policy of the topic as it is now, and the time at which the job
    /// expires; `None` if the lease was lost.
    fn outcome(&self, lease: &Lease, attempted: &Attempted, rng: &mut StdRng) -> Option<Outcome> {
        let answer = match &attempted.ending {
            Ending::Answered(answer) => answer,
            Ending::CutOff => return Some(Outcome::Release { after: Duration::ZERO }),
            Ending::LeaseLost => return None,
            Ending::Expired => {
                return Some(Outcome::Bury { reason: Reason::Expired, last: attempted.last(lease) });
            }
        };
        let last = || attempted.last(lease);
        // The policy may have changed during the call.
        let policy = self.retries.policies.get(&lease.key.topic).ok().flatten();
        let bury_on = policy.as_ref().and_then(|policy| policy.bury_on.as_deref()).unwrap_or_default();
        let class = classify(answer, bury_on, self.clock.now());
        let now = lease.clock().at(Instant::now());
        let outcome = match class {
            ResponseClass::Complete => Outcome::Complete,
            ResponseClass::Bury(reason) => Outcome::Bury { reason, last: last() },
            ResponseClass::Release(after) => Outcome::Release { after },
            ResponseClass::Failed { retry_after } => {
                let installation = &self.retries.installation;
                let of_topic = policy.as_ref().and_then(|policy| policy.retry.as_ref());
                let retry = installation.policy(lease.delivery.retry.as_ref(), of_topic);
                let after = retry.delay(lease.failures.saturating_add(1), retry_after, rng);
                match after.filter(|after| installation.allows(*after, lease.first_due, now)) {
                    Some(after) => Outcome::Retry { after, last: last() },
                    None => Outcome::Bury { reason: Reason::Exhausted, last: last() },
                }
            }
        };
        // A job that would be due only after it expires is dead now.
        Some(outcome.in_time(lease.expires(), now, last))
    }

    /// Counts and logs an attempt, records its result for its destination, and logs when that begins, goes on or stops
    /// failing.
    fn report(&self, lease: &Lease, attempted: &Attempted, outcome: Option<&Outcome>) {
        let result = match outcome {
            Some(Outcome::Complete) => AttemptResult::Complete,
            Some(Outcome::Retry { .. }) => AttemptResult::Retry,
            Some(Outcome::Bury { .. }) => AttemptResult::Bury,
            Some(Outcome::Release { .. } | Outcome::Return) => AttemptResult::Release,
            None => AttemptResult::LeaseLost,
        };
        self.metrics.count(result);
        let (status, error) = (attempted.status(), attempted.error());
        let destination = lease.delivery.callback.origin();
        let ms = |length: Duration| length.as_secs_f64() * 1000.0;
        let (duration_ms, lateness_ms) = (ms(attempted.took), ms(attempted.lateness));
        let (topic, id, attempt) = (&lease.key.topic, &lease.key.id, lease.attempt);
        let next: &str = result.into();
        if result == AttemptResult::Complete {
            debug!(job.topic = topic.as_str(), job.id = %id, attempt, destination, status, duration_ms, lateness_ms, "delivered");
        } else if attempted.is_out_of_resources() || attempted.is_deferred() {
            // The dispatcher logs the first once for all jobs; the other is the log of a receiver that hangs.
            debug!(job.topic = topic.as_str(), job.id = %id, attempt, destination, error, next, "not attempted");
        } else if matches!(result, AttemptResult::Release | AttemptResult::LeaseLost) {
            // No fault of the destination: ports or time are short here.
            warn!(job.topic = topic.as_str(), job.id = %id, attempt, destination, error, duration_ms, lateness_ms, next, "attempt not completed");
        } else {
            debug!(job.topic = topic.as_str(), job.id = %id, attempt, destination, status, error, duration_ms, lateness_ms, next, "attempt failed");
        }
        match self.destination(lease, attempted, result) {
            Some(Report::Begins) => {
                warn!(destination, job.topic = topic.as_str(), job.id = %id, attempt, status, error, duration_ms, lateness_ms, next, "a destination begins to fail; each of its attempts is logged at debug");
            }
            Some(Report::Continues(Failing { failures, lasts })) => {
                warn!(
                    destination,
                    failures,
                    lasts_s = lasts.as_secs(),
                    status,
                    error,
                    "a destination goes on failing"
                );
            }
            Some(Report::Ends(Failing { failures, lasts })) => {
                info!(destination, failures, lasts_s = lasts.as_secs(), "a destination no longer fails");
            }
            None => {}
        }
    }

    /// Records a success or a failure of the destination, for the log and for the store. An answer of 410, or of 425
    /// with `Retry-After`, is neither; an attempt that was released, expired or lost its lease says nothing about it. Returns what to log; `None` for nothing.
    fn destination(&self, lease: &Lease, attempted: &Attempted, result: AttemptResult) -> Option<Report> {
        if matches!(attempted.ending, Ending::Expired) {
            return None;
        }
        let (topic, origin) = (&lease.key.topic, lease.delivery.callback.origin());
        let counts = attempted.counts().unwrap_or_default();
        let failing = || self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let at = lease.clock().at(attempted.started + attempted.took);
        match result {
            AttemptResult::Complete => {
                self.reports.succeeded(topic, origin, counts, at);
                failing().succeeded(origin, at)
            }
            AttemptResult::Retry | AttemptResult::Bury if attempted.is_about_destination() => {
                let failure = Failures::new(at, attempted.status(), attempted.error());
                let slowed = attempted.response().and_then(|response| slows(response, self.clock.now()));
                let slow_until = slowed.map(|length| at.plus(length));
                self.reports.failed(topic, origin, counts, failure.clone(), slow_until);
                failing().failed(origin, failure)
            }
            AttemptResult::Bury => {
                self.reports.answered(topic, origin, counts);
                None
            }
            AttemptResult::Retry | AttemptResult::Release | AttemptResult::LeaseLost => None,
        }
    }
}

/// Creates a generator for one attempt, seeded from one per thread, which is cheaper than asking the
/// operating system each time.
fn fork_generator() -> StdRng {
    thread_local! {
        static SEEDS: RefCell<StdRng> = RefCell::new(random::generator());
    }
    StdRng::seed_from_u64(SEEDS.with_borrow_mut(|seeds| seeds.random()))
}
