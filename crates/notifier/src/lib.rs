//! The notifier, which delivers: it reserves ready jobs, sends each to its callback URL, and settles the outcome. Any
//! number of notifiers share the work. Due times are the carrier's work, and notices of ended jobs are jobs like
//! others, which the carrier submits.
//!
//! In the order of a job: `shard_signals` (which shards to reserve from) and `wake_backoff` (how long to wait after a
//! wake-up), `dispatcher` (the main loop), `lanes` (limits of lanes, origins and tenants), `tenants` (whether there are
//! any), `repeated_reserves` (when to look behind full lanes), `due_waits` (when the next job is due), `flow` (places for
//! callbacks to destinations with limits), `store_call` (one reserve and settle of a batch),
//! `deliverer` (one attempt), `request` (its headers), `signer` and `credentials` (its proof), `client` (the HTTP
//! client), `response_class` (the meaning of a response), `failing` (which destinations fail, for the log),
//! `reports` (the same and the lateness for the store), `slow_calls` (which receivers hang), `resource_backoff` (when this
//! machine is out of resources), `settle_queue` (outcomes on their way to the store).

mod client;
mod config;
mod credentials;
mod deliverer;
mod dispatcher;
mod due_waits;
mod failing;
mod flow;
mod lanes;
mod metrics;
mod pending_leases;
mod repeated_reserves;
mod reports;
mod request;
mod resource_backoff;
mod response_class;
mod settle_queue;
mod shard_signals;
mod signer;
mod slow_calls;
mod store_call;
mod tenants;
mod wake_backoff;

use std::sync::{Arc, Mutex};

use ringback_core::store_types::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks, process_name, random};
use ringback_store::{Retries, SharedConfig, Store};

use crate::client::Client;
pub use crate::client::{LocalResponse, Receiver};
pub use crate::config::{Config, Outgoing, Signing};
use crate::credentials::Credentials;
use crate::deliverer::Deliverer;
use crate::dispatcher::Dispatcher;
use crate::lanes::Lanes;
pub use crate::metrics::METRICS;
use crate::metrics::Metrics;
use crate::reports::Reports;
use crate::shard_signals::ShardSignals;
use crate::signer::Signer;
use crate::slow_calls::SlowCalls;

/// The task, and the readiness check, of the topic policies.
const POLICIES: &str = "notifier's policies";

/// Runs a notifier until the shutdown.
///
/// # Errors
/// When the store cannot be used, the HTTP client cannot be created, or a task fails.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let (clock, of) = (store.clock(Arc::clone(&context.clock)), store.clone());
    let context = context.on_store(clock, move || of.clock_ahead_seconds());
    let mut tasks = Tasks::new();
    start(config, &store, &context, &mut tasks)?;
    let (prepare, check) = (Store::prepared, Store::answers);
    let (is_transient, is_refusal) = (StoreError::is_transient, StoreError::is_refusal);
    let dependency = Dependency { name: "store", subject: store, prepare, check, is_transient, is_refusal };
    dependency.run(tasks, context).await
}

/// Starts the tasks of a notifier. The caller checks whether the store answers.
///
/// # Errors
/// When the HTTP client cannot be created.
pub fn start(config: Config, store: &Store, context: &Context, tasks: &mut Tasks) -> anyhow::Result<()> {
    let metrics = Metrics::new(&context.meter);
    let slow_calls = SlowCalls::new(config.concurrency);
    let idle = config.lane_concurrency;
    let client = client::build(config.outgoing.clone(), idle, store, slow_calls.clone(), &metrics)?;
    if let Client::Http(client) = &client {
        let following = Arc::clone(client).follow_authorities(context.shutdown.clone());
        tasks.spawn("certificate authorities", following);
    }
    start_with(client, slow_calls, metrics, config, store, context, tasks);
    Ok(())
}

/// Like [`start`], but sends the callbacks to a receiver in this process, for simulations.
pub fn start_local(
    receiver: Arc<dyn Receiver>,
    config: Config,
    store: &Store,
    context: &Context,
    tasks: &mut Tasks,
) {
    let metrics = Metrics::new(&context.meter);
    let slow_calls = SlowCalls::new(config.concurrency);
    start_with(Client::Local(receiver), slow_calls, metrics, config, store, context, tasks);
}

fn start_with(
    client: Client,
    slow_calls: SlowCalls,
    metrics: Metrics,
    config: Config,
    store: &Store,
    context: &Context,
    tasks: &mut Tasks,
) {
    let Context { shutdown, clock, .. } = context;
    let policies = SharedConfig::default();
    let (shared, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| shared.keep(of, random::generator(), known));
    let signals = Arc::new(ShardSignals::new(store.shards()));
    let wakes = store.wakes(random::generator());
    tasks.spawn("notifier's wakes", Arc::clone(&signals).listen(store.clone(), wakes, shutdown.clone()));
    let credentials = Credentials::new(config.signing.keys.clone(), policies.clone());
    let signer = Signer::new(config.signing, policies.clone());
    let reports = Arc::<Reports>::default();
    let deliverer = Deliverer {
        client,
        store: store.clone(),
        retries: Retries { policies, installation: config.retry },
        margin: config.lease_margin,
        call_timeout: config.store.call_timeout,
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
        clock: Arc::clone(clock),
        name: process_name().into(),
        failing: Mutex::default(),
        reports: Arc::clone(&reports),
        signer,
        credentials,
    };
    let (of, call_timeout) = (store.clone(), config.store.call_timeout);
    let (clock, counted) = (Arc::clone(clock), metrics.clone());
    let reports = reports.run(of, config.breakers, call_timeout, clock, counted, shutdown.clone());
    tasks.spawn("reports", reports);
    let lanes = Lanes::new(config.concurrency, config.lane_concurrency);
    let dispatcher = Dispatcher::new(signals, lanes, deliverer, slow_calls, metrics, shutdown.clone());
    tasks.spawn("dispatcher", dispatcher.run());
}
