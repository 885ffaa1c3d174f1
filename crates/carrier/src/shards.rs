//! The shards that this carrier holds, each with a worker. Every carrier sends heartbeats and gets the list of live
//! carriers, from which each computes its own share of the shards, claims what it lacks and releases the rest.
//!
//! To claim a shard a carrier raises its epoch, which fences the previous holder. So two carriers that
//! briefly disagree do no harm, and nobody waits for a lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rand::RngExt as _;
use ringback_core::crash_point;
use ringback_core::store_types::{Epoch, LiveCarriers, Shard, StoreError};
use ringback_service::outage::Outage;
use ringback_service::telemetry::with_causes;
use ringback_service::{Context, random};
use ringback_store::{Retries, Store};
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::config::Config;
use crate::deadline_signal::DeadlineSignals;
use crate::epoch_log::CallStart;
use crate::gauges::HeldShards;
use crate::metrics::Metrics;
use crate::shard_worker::ShardWorker;

/// Added to the time at which another carrier expires, so that it has expired for the store too.
const EXPIRY_SLACK: Duration = Duration::from_millis(2);

/// The shards that this carrier holds, and their workers.
pub(crate) struct Shards {
    store: Store,
    signals: Arc<DeadlineSignals>,
    metrics: Metrics,
    context: Context,
    retries: Retries,
    /// The random name of this carrier.
    name: String,
    /// How long a carrier keeps its shards without a heartbeat.
    lock_ttl: Duration,
    /// How long one call to the store may take.
    call_timeout: Duration,
    held: BTreeMap<Shard, (Epoch, AbortHandle)>,
    /// The shards that this carrier holds, for the gauges.
    announced: watch::Sender<HeldShards>,
    workers: JoinSet<Shard>,
}

impl Shards {
    pub(crate) fn new(
        config: &Config,
        store: Store,
        signals: Arc<DeadlineSignals>,
        retries: Retries,
        metrics: Metrics,
        announced: watch::Sender<HeldShards>,
        context: Context,
    ) -> Self {
        let name = format!("{:016x}", random::generator().random::<u64>());
        let (held, workers) = (BTreeMap::new(), JoinSet::new());
        let (lock_ttl, call_timeout) = (config.lock_ttl, config.store.call_timeout);
        Self {
            store,
            signals,
            metrics,
            context,
            retries,
            name,
            lock_ttl,
            call_timeout,
            held,
            announced,
            workers,
        }
    }

    /// Holds this carrier's share until the shutdown, then releases all shards. Fails if a worker panics.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let mut outage = Outage::new();
        while !self.context.shutdown.is_stopping() {
            let sent = Instant::now();
            let wait = match self.heartbeat().await {
                Ok(live) => {
                    if outage.ends() {
                        info!(carrier = self.name, "heartbeat succeeds again");
                    }
                    let next = live.next_change.map_or(Duration::MAX, |change| change + EXPIRY_SLACK);
                    next.min((self.lock_ttl / 3).saturating_sub(sent.elapsed()))
                }
                Err(error) => {
                    // The store's own check logs why it is not prepared.
                    if !matches!(error, StoreError::Unprepared) && outage.begins() {
                        warn!(carrier = self.name, error = with_causes(&error), "heartbeat failed; retrying");
                    }
                    outage.wait()
                }
            };
            self.wait(wait).await?;
        }
        self.leave().await;
        // A worker that was aborted holds the store until it is dropped. An embedded store closes when the
        // last holder drops it, and the process waits for its tasks only.
        self.workers.shutdown().await;
        Ok(())
    }

    /// Sends a heartbeat, then releases and claims shards according to the live carriers, and sets the metric and the
    /// readiness of the shards. Fails if the heartbeat or a claim fails; shards claimed before stay held.
    async fn heartbeat(&mut self) -> Result<LiveCarriers, StoreError> {
        let live = self.store.heartbeat(&self.name, self.lock_ttl).await?;
        live.next_bulk.iter().for_each(|after| self.signals.bulks.set(Instant::now() + *after));
        let mine = share(&live.carriers, &self.name, self.store.shards());
        let extra: Vec<_> = self.held.keys().copied().filter(|shard| !mine.contains(shard)).collect();
        self.release(extra).await;
        for shard in mine {
            if !self.held.contains_key(&shard) {
                self.claim(shard).await?;
            }
        }
        self.metrics.shards.record(self.held.len() as u64, &[]);
        let detail = format!(
            "{} of {} shards, {} carriers",
            self.held.len(),
            self.store.shards().count(),
            live.carriers.len()
        );
        self.context.health.set("shards", true, detail);
        Ok(live)
    }

    async fn claim(&mut self, shard: Shard) -> Result<(), StoreError> {
        crash_point!("carrier.before_claim");
        let call_start = CallStart::now(&*self.context.clock);
        let epoch = self.store.take_shard(shard, &self.name).await?;
        crash_point!("carrier.after_claim");
        call_start.claimed(shard, &epoch);
        info!(carrier = self.name, shard = shard.number(), "claimed shard");
        let worker = ShardWorker {
            store: self.store.clone(),
            signals: Arc::clone(&self.signals),
            metrics: self.metrics.clone(),
            shard,
            epoch: epoch.clone(),
            retries: self.retries.clone(),
            clock: Arc::clone(&self.context.clock),
        };
        let handle = self.workers.spawn(async move {
            worker.run().await;
            shard
        });
        self.held.insert(shard, (epoch, handle));
        self.announce();
        Ok(())
    }

    /// Stops the shards' workers, then releases the shards, all at once. Ignores errors: the next claim fences anyway.
    ///
    /// A pass that was sent before its worker stopped may still run. That does no harm: it runs
    /// under the epoch of this carrier, as if it had run a moment earlier.
    async fn release(&mut self, shards: Vec<Shard>) {
        let mut released = Vec::new();
        for shard in shards {
            let Some((epoch, handle)) = self.held.remove(&shard) else { continue };
            handle.abort();
            info!(carrier = self.name, shard = shard.number(), "released shard");
            released.push((shard, epoch));
        }
        self.announce();
        let store = &self.store;
        crash_point!("carrier.before_release");
        join_all(released.iter().map(|(shard, epoch)| store.release_shard(*shard, epoch))).await;
        crash_point!("carrier.after_release");
    }

    /// Waits for the given time, but ends earlier if the list of carriers changes, the shutdown begins or a worker
    /// ends. Removes that worker; fails if it panicked.
    async fn wait(&mut self, wait: Duration) -> anyhow::Result<()> {
        let shutdown = self.context.shutdown.clone();
        tokio::select! {
            biased;
            () = sleep(wait) => Ok(()),
            () = self.signals.carriers_changed() => Ok(()),
            () = shutdown.stopping() => Ok(()),
            Some(ended) = self.workers.join_next_with_id() => match ended {
                Ok((id, shard)) => {
                    // Fenced; the next heartbeat computes the share anew.
                    self.remove(shard, id);
                    Ok(())
                }
                Err(error) if error.is_cancelled() => Ok(()),
                Err(error) => Err(anyhow::Error::new(error).context("a shard worker panicked")),
            },
        }
    }

    /// Removes a worker that has ended, unless the shard has a new worker already.
    fn remove(&mut self, shard: Shard, id: Id) {
        if self.held.get(&shard).is_some_and(|(_, handle)| handle.id() == id) {
            self.held.remove(&shard);
            self.announce();
        }
    }

    /// Sends the shards that are held to the gauges.
    fn announce(&self) {
        let held = self.held.iter().map(|(shard, (epoch, _))| (*shard, epoch.clone()));
        self.announced.send_replace(held.collect());
    }

    /// Releases all shards, then leaves the list of carriers. Gives up after two call timeouts or the grace period.
    async fn leave(&mut self) {
        let within = (2 * self.call_timeout).min(self.context.shutdown.grace());
        let leave = async {
            self.release(self.held.keys().copied().collect()).await;
            self.store.heartbeat(&self.name, Duration::ZERO).await
        };
        match timeout(within, leave).await {
            Ok(Ok(_)) => info!("released all shards"),
            Ok(Err(_)) | Err(_) => {
                info!("could not release the shards in time; other carriers claim them after the lock TTL");
            }
        }
    }
}

/// Returns the shards of `me`, none if it is not listed: every carrier sorts the names and assigns the shards in turn.
fn share(carriers: &[String], me: &str, shards: impl Iterator<Item = Shard>) -> Vec<Shard> {
    let mut names: Vec<&str> = carriers.iter().map(String::as_str).collect();
    names.sort_unstable();
    let Some(place) = names.iter().position(|name| *name == me) else { return Vec::new() };
    shards.skip(place).step_by(names.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_has_exactly_one_carrier_and_the_shares_differ_by_one_at_most() {
        let shards = || (0..4).map(Shard);
        let names = ["c", "a", "b"].map(str::to_owned);
        let shares = names.each_ref().map(|me| share(&names, me, shards()));
        let mut all: Vec<_> = shares.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, shards().collect::<Vec<_>>());
        let sizes = shares.map(|s| s.len());
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        assert!(share(&names, "stranger", shards()).is_empty());
    }
}
