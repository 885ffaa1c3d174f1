//! Starts the tasks of the archive: the shared configuration of topic policies, the attaching, and a relay for each
//! sink.

use rand::RngExt as _;
use ringback_core::store_types::MAX_ARCHIVE_ENTRIES;
use ringback_service::outage::PartialOutage;
use ringback_service::{Context, Tasks, random};
use ringback_store::{SharedConfig, Store};

use crate::attach::keep_attached;
use crate::audit_log::AuditLogReader;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::relay::Relay;
use crate::sink::Sink;

/// The task, and the readiness check, of the topic policies.
const POLICIES: &str = "archive's policies";

/// Archives the ended jobs and the audit log of a store until the shutdown; the sinks share its shards, and the first
/// one has the log. If the database `is_essential`, the process is not ready without it.
pub fn start<S: Sink + Sync + 'static>(
    store: &Store,
    config: &Config,
    sinks: Vec<S>,
    is_essential: bool,
    context: &Context,
    tasks: &mut Tasks,
) {
    let policies = SharedConfig::default();
    let (shared, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| shared.keep(of, random::generator(), known));
    let attached = keep_attached(store.clone(), policies.clone(), config.clone());
    let shutdown = context.shutdown.clone();
    tasks.spawn("attach the archive", async move {
        tokio::select! {
            biased;
            () = attached => {}
            () = shutdown.stopping() => {}
        }
    });
    let (metrics, archiver) = (Metrics::create(&context.meter), random::generator().random::<u64>());
    let relays = sinks.len();
    for (n, sink) in sinks.into_iter().enumerate() {
        let relay = Relay {
            store: store.clone(),
            policies: policies.clone(),
            config: config.clone(),
            sink,
            shards: store.shards().skip(n).step_by(relays).collect(),
            name: format!("{archiver:016x}-{n}"),
            metrics: metrics.clone(),
            context: context.clone(),
            is_essential,
            outages: PartialOutage::default(),
            limit: MAX_ARCHIVE_ENTRIES,
            audit_log: (n == 0).then(AuditLogReader::default),
        };
        tasks.spawn("archive", relay.run());
    }
}
