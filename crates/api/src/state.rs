//! `Api`: the state that all handlers share: the store, the queues in front of it, admission, the limits of concurrent
//! calls, the shared configuration, the audit log, the clock and a random generator; and small helpers on these.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use ringback_admission::{Admission, Allowed, Principal};
use ringback_core::access::KeyId;
use ringback_core::clock::{Clock, Timestamp};
use ringback_core::job::{ImportJob, NewJob};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::store_types::RetryContext;
use ringback_core::topic_policy::SecretId;
use ringback_secrets::{CallerKey, MasterKeys, RootKey, SigningSecret};
use ringback_service::http_server::FairLimiter;
use ringback_service::{Context, Tasks};
use ringback_store::{ConfigUnknown, Retries, SharedConfig, Store};
use tokio::sync::Semaphore;

use crate::access::{Standing, running_call};
use crate::audit_log::{AuditLog, Queue};
use crate::config::Config;
use crate::error::ApiError;
use crate::events::Events;
use crate::history::History;
use crate::limits::{Activity, Deadline, MemoryBudget, StatsCache, TurnQueue};
use crate::metrics::Metrics;
use crate::operation::Operations;
use crate::pull::Pulls;
use crate::submit_queues::SubmitQueues;

/// The most batches and imports that are processed at once. Others wait.
const MAX_BATCHES: usize = 16;
/// The most exports at once. Others are refused.
pub(crate) const MAX_EXPORTS: usize = 4;
/// The most lists of jobs that are read at once, one for each caller. Others wait: a page of a filter that few jobs
/// match is read from many jobs.
const MAX_SCANS: usize = 2;
/// The most queries of the history at once, one for each caller. Others wait.
const MAX_HISTORIES: usize = 3;
/// The most calls that replay a part of the history at once, one for each caller. Others wait.
const MAX_REPLAYS: usize = 1;
/// The most large bodies that are parsed at once.
const MAX_PARSES: usize = 1;
/// The most consumers that look for jobs at once while there are several tenants, in all and of one.
const MAX_LOOKS: usize = 16;
const MAX_LOOKS_EACH: usize = 4;
/// The most batches of tenants that are sent a few jobs at a time, in all and of one.
const MAX_SPREADS: usize = 32;
const MAX_SPREADS_EACH: usize = 4;
/// The most checks at once. Others are refused.
const MAX_CHECKS: usize = 1;

/// The extractor through which handlers get the state.
pub(crate) type ApiState = State<Arc<Api>>;

pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) submits: SubmitQueues<NewJob>,
    pub(crate) imports: SubmitQueues<ImportJob>,
    pub(crate) admission: Admission,
    pub(crate) pulls: Pulls,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stats: StatsCache,
    pub(crate) memory: MemoryBudget,
    pub(crate) whole_jobs: MemoryBudget,
    pub(crate) batches: Arc<Semaphore>,
    pub(crate) exports: FairLimiter,
    /// Consumers of tenants that wait for jobs.
    pub(crate) consumers: FairLimiter,
    pub(crate) scans: TurnQueue,
    pub(crate) history: History,
    /// Turns to ask the history.
    pub(crate) histories: TurnQueue,
    /// Turns to submit again what is in the history.
    pub(crate) replays: TurnQueue,
    /// Turns to parse large bodies, where callers have keys.
    pub(crate) parses: TurnQueue,
    /// Turns of batches that are sent a few jobs at a time.
    pub(crate) spreads: TurnQueue,
    /// Turns of consumers to look for jobs, where callers have keys.
    pub(crate) looks: TurnQueue,
    pub(crate) activity: Arc<Activity>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) audit_log: Arc<AuditLog>,
    pub(crate) policies: SharedConfig,
    pub(crate) checks: Semaphore,
    /// The keys that seal the secrets of topics.
    pub(crate) master_keys: MasterKeys,
    /// The key with which everything is allowed, if each call needs a key.
    pub(crate) root: Option<RootKey>,
    pub(crate) retries: Retries,
    clock: Arc<dyn Clock>,
    rng: Mutex<StdRng>,
}

impl Api {
    /// Builds the state over an open store, and adds its background tasks to `tasks`. The submit queues
    /// end after the state is dropped and their jobs are in the store. `rng` makes the ids of jobs
    /// without one, tokens and secrets.
    pub(crate) fn new(
        config: &Config,
        store: &Store,
        retries: Retries,
        mut rng: StdRng,
        Context { shutdown, meter, clock, .. }: &Context,
        tasks: &mut Tasks,
        operations: Operations,
    ) -> Self {
        let metrics = Arc::new(Metrics::new(meter));
        let (policies, activity) = (retries.policies.clone(), Arc::<Activity>::default());
        let (guard, of_admission) = (config.guard.clone(), StdRng::from_rng(&mut rng));
        let admission = Admission::new(store, policies.clone(), guard, Arc::clone(clock), of_admission);
        let of_log = StdRng::from_rng(&mut rng);
        let audit_log = AuditLog::new(
            Queue::start(store, &metrics, clock, of_log, tasks, shutdown),
            config.access.root.is_some(),
        );
        Self {
            submits: SubmitQueues::start(store, &metrics, tasks, shutdown),
            imports: SubmitQueues::start(store, &metrics, tasks, shutdown),
            admission,
            pulls: Pulls::start(store, policies.clone(), config.access.root.clone(), tasks, shutdown),
            events: Events::start(store, &metrics, config.event_listeners, tasks, shutdown),
            memory: MemoryBudget::default(),
            whole_jobs: MemoryBudget::default(),
            store: store.clone(),
            metrics,
            stats: StatsCache::default(),
            batches: Arc::new(Semaphore::new(MAX_BATCHES)),
            exports: FairLimiter::new(MAX_EXPORTS),
            consumers: FairLimiter::new(config.connections),
            scans: TurnQueue::new(MAX_SCANS, Arc::clone(&activity)),
            history: History::new(config.history.clone()),
            histories: TurnQueue::new(MAX_HISTORIES, Arc::clone(&activity)),
            replays: TurnQueue::new(MAX_REPLAYS, Arc::clone(&activity)),
            parses: TurnQueue::new(MAX_PARSES, Arc::clone(&activity)),
            spreads: TurnQueue::of_small_work(MAX_SPREADS_EACH, MAX_SPREADS, Arc::clone(&activity)),
            looks: TurnQueue::of_small_work(MAX_LOOKS_EACH, MAX_LOOKS, Arc::clone(&activity)),
            activity,
            operations: Arc::new(operations),
            audit_log: Arc::new(audit_log),
            policies,
            checks: Semaphore::new(MAX_CHECKS),
            master_keys: config.master_keys.clone(),
            root: config.access.root.clone(),
            retries,
            clock: Arc::clone(clock),
            rng: Mutex::new(rng),
        }
    }

    /// Takes the quota for as many of these `jobs` as the caller may submit, and returns how many these are: all of
    /// them for a caller without a quota.
    ///
    /// # Errors
    /// 503 if the store fails or does not answer before `deadline`, or until the quotas have been read.
    pub(crate) async fn take_quota(
        &self,
        caller: &Principal,
        jobs: usize,
        deadline: Deadline,
    ) -> Result<Allowed, ApiError> {
        let quotas = &self.admission.quotas;
        if !quotas.apply_to(caller)? {
            return Ok(Allowed::all(jobs));
        }
        // In a box, so that the future of a submit without a quota stays small.
        Ok(Box::pin(deadline.bound(quotas.take(caller, jobs))).await??)
    }

    fn random(&self) -> MutexGuard<'_, StdRng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a caller may continue a call that it has begun.
    ///
    /// # Errors
    /// 401 if its key was deleted or has expired.
    pub(crate) fn check_standing(&self, caller: &Principal) -> Result<(), ApiError> {
        running_call::check(caller, &self.policies, &*self.clock)
    }

    /// A handle that checks, as often as needed, whether a caller may continue a call that it has begun.
    pub(crate) fn standing(&self, caller: &Arc<Principal>) -> Standing {
        Standing::new(Arc::clone(caller), self.policies.clone(), Arc::clone(&self.clock))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn make_secret(&self) -> SigningSecret {
        SigningSecret::generate(&mut *self.random())
    }

    pub(crate) fn make_caller_key(&self, now: Timestamp) -> (CallerKey, KeyId) {
        let id = KeyId::of(self.admission.make_id(now).as_str());
        (CallerKey::generate(&mut *self.random()), id)
    }

    pub(crate) fn make_secret_id(&self, now: Timestamp) -> SecretId {
        SecretId::of(self.admission.make_id(now).as_str())
    }

    /// Seals a secret with the newest master key, bound to `name`; `None` without a master key.
    pub(crate) fn seal(&self, name: &str, secret: &[u8]) -> Option<String> {
        self.master_keys.seal(name, secret, &mut *self.random())
    }

    /// The outcome of a pull job whose consumer has failed, by its retry policy: a retry, or dead.
    ///
    /// # Errors
    /// Until the topic policies have been read.
    pub(crate) fn failed(
        &self,
        context: &RetryContext,
        error: Option<String>,
    ) -> Result<Outcome, ConfigUnknown> {
        self.retries.failed(context, error, self.clock.now(), &mut *self.random())
    }

    /// The `outcome` that a consumer wants, with a delay; the job is dead instead if it would expire before its next
    /// attempt.
    pub(crate) fn in_time(&self, outcome: Outcome, context: &RetryContext) -> Outcome {
        outcome.in_time(context.expires, self.clock.now(), || LastAttempt::by_consumer(None))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry::metrics::noop::NoopMeterProvider;
    use ringback_core::clock::{ManualClock, SystemClock};
    use ringback_core::job::TenantScope;
    use ringback_core::retry::InstallationRetry;
    use ringback_egress::Guard;
    use ringback_service::settings::load_from;
    use ringback_service::{Health, Scrapes, Shutdown};
    use ringback_store::{Memory, settings};

    use super::*;

    /// A state whose store was never connected, so that every store call fails at once.
    pub(crate) fn unprepared() -> Arc<Api> {
        let options = settings::defaults(Duration::from_millis(100));
        let clock = ManualClock::at(Timestamp::from_millis(1_763_600_000_000));
        let store = Store::open(options).unwrap();
        over(&store, SharedConfig::default(), Arc::new(clock), Tasks::new(), "")
    }

    /// A state with an empty store in memory, whose policies are read.
    pub(crate) async fn prepared() -> Arc<Api> {
        prepared_with("").await
    }

    /// A state as that of [`prepared`], with a root key unless `root` is empty.
    pub(crate) async fn prepared_with(root: &str) -> Arc<Api> {
        let options = settings::defaults(Duration::from_secs(10));
        let store = Store::in_memory(&Memory::new(SystemClock), options);
        store.prepare().await.unwrap();
        let (shared, mut tasks) = (SharedConfig::default(), Tasks::new());
        tasks.spawn("policies", shared.clone().keep(store.clone(), StdRng::seed_from_u64(2), || {}));
        let api = over(&store, shared, Arc::new(SystemClock), tasks, root);
        api.policies.known().await;
        api
    }

    /// A job that the operator submits.
    pub(crate) fn job(api: &Api, json: &str) -> NewJob {
        let caller = Principal::operator(TenantScope::All);
        api.admission.parse_job(json.as_bytes(), None, &mut None, &caller).unwrap()
    }

    fn over(
        store: &Store,
        policies: SharedConfig,
        clock: Arc<dyn Clock>,
        mut tasks: Tasks,
        root: &str,
    ) -> Arc<Api> {
        let (mut config, _) = load_from(Config::SETTINGS, &[], Config::load);
        config.guard = Guard::open();
        config.access.root = root.parse().ok();
        config.master_keys = MasterKeys::generate("k", &mut StdRng::seed_from_u64(3)).parse().unwrap();
        let (rng, shutdown) = (StdRng::seed_from_u64(1), Shutdown::new(Duration::from_secs(30)));
        let (health, meter) = (Health::new(&shutdown), NoopMeterProvider::new().meter("test"));
        let context = Context { shutdown, health, meter, scrapes: Scrapes::default(), clock };
        let retries = Retries { policies, installation: InstallationRetry::none() };
        let table = crate::app::table(crate::config::Dashboard::On);
        let operations = table.into_iter().map(|route| route.operation).collect();
        let api = Api::new(&config, store, retries, rng, &context, &mut tasks, operations);
        // Dropping the tasks would end them at once; this way they end with the test.
        std::mem::forget(tasks);
        Arc::new(api)
    }
}
