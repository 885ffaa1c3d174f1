//! Which shards are held here. Every carrier sends one heartbeat and learns who else is
//! alive; from that list alone each knows which shards are its own. A shard is taken by
//! raising its epoch, which fences whoever held it: so two carriers that disagree for a
//! moment do no harm, and nobody has to wait for a lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rand::RngExt as _;
use ringback_core::contract::{Epoch, LiveCarriers, Shard, StoreError};
use ringback_service::backoff::Backoff;
use ringback_service::{Context, random};
use ringback_store::{Retries, Store};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::bells::Bells;
use crate::holder::Holder;
use crate::metrics::Metrics;

/// A little after another carrier's time is over, so that the store agrees that it is.
const AFTER: Duration = Duration::from_millis(2);

/// The times that a carrier lives by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How long it keeps its shards while it is silent.
    pub(crate) ttl: Duration,
    /// How long one call to the store may take.
    pub(crate) patience: Duration,
}

/// The shards of this carrier.
pub(crate) struct Shards {
    store: Store,
    bells: Arc<Bells>,
    metrics: Metrics,
    context: Context,
    retries: Retries,
    name: String,
    ttl: Duration,
    /// How long one call to the store may take.
    patience: Duration,
    held: HashMap<Shard, (Epoch, AbortHandle)>,
    holders: JoinSet<Shard>,
    ids: HashMap<Id, Shard>,
}

impl Shards {
    pub(crate) fn new(
        store: Store,
        bells: Arc<Bells>,
        times: Times,
        retries: Retries,
        metrics: Metrics,
        context: Context,
    ) -> Self {
        let Times { ttl, patience } = times;
        let name = format!("{:016x}", random::generator().random::<u64>());
        let (held, holders, ids) = (HashMap::new(), JoinSet::new(), HashMap::new());
        Self { store, bells, metrics, context, retries, name, ttl, patience, held, holders, ids }
    }

    /// Holds what is to be held until the shutdown, then hands everything over.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let mut backoff = Backoff::new(random::generator());
        let mut away = false;
        while !self.context.shutdown.is_stopping() {
            let sent = Instant::now();
            let wait = match self.heartbeat().await {
                Ok(members) => {
                    if std::mem::take(&mut away) {
                        info!(carrier = self.name, "heartbeats reach the store again");
                    }
                    backoff.reset();
                    let next = members.next_change.map_or(Duration::MAX, |change| change + AFTER);
                    next.min((self.ttl / 3).saturating_sub(sent.elapsed()))
                }
                Err(error) => {
                    let known = matches!(error, StoreError::Unprepared);
                    if !known && !std::mem::replace(&mut away, true) {
                        warn!(
                            carrier = self.name,
                            error = crate::cause(&error),
                            "no heartbeat; trying again"
                        );
                    }
                    backoff.next()
                }
            };
            self.rest(wait).await?;
        }
        self.farewell().await;
        Ok(())
    }

    /// Tells the others that this carrier lives, and holds its share.
    async fn heartbeat(&mut self) -> Result<LiveCarriers, StoreError> {
        let members = self.store.heartbeat(&self.name, self.ttl).await?;
        members.next_redrive.iter().for_each(|after| self.bells.ring_revival(*after));
        let mine = share(&members.carriers, &self.name, self.store.shards());
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
            members.carriers.len()
        );
        self.context.health.set("shards", true, detail);
        Ok(members)
    }

    async fn claim(&mut self, shard: Shard) -> Result<(), StoreError> {
        let epoch = self.store.claim(shard, &self.name).await?;
        info!(carrier = self.name, shard = shard.number(), "holds the shard");
        let holder = Holder {
            store: self.store.clone(),
            bells: Arc::clone(&self.bells),
            metrics: self.metrics.clone(),
            shard,
            epoch: epoch.clone(),
            retries: self.retries.clone(),
        };
        let handle = self.holders.spawn(async move {
            holder.run().await;
            shard
        });
        self.ids.insert(handle.id(), shard);
        self.held.insert(shard, (epoch, handle));
        Ok(())
    }

    /// Stops working on shards and gives them back, all at once. If that fails, whoever
    /// claims them next fences this carrier anyway.
    ///
    /// Between the two nobody is fenced: a pass that was sent before its holder was stopped
    /// may still run. It is one whole script under this carrier's epoch, as good as one that
    /// ran a moment earlier, and its answer is heard by nobody.
    async fn release(&mut self, shards: Vec<Shard>) {
        let mut given = Vec::new();
        for shard in shards {
            let Some((epoch, handle)) = self.held.remove(&shard) else { continue };
            handle.abort();
            info!(carrier = self.name, shard = shard.number(), "gives the shard back");
            given.push((shard, epoch));
        }
        let store = &self.store;
        join_all(given.iter().map(|(shard, epoch)| store.release_shard(*shard, epoch))).await;
    }

    /// Waits for the next heartbeat's time, or for a reason to send it earlier.
    async fn rest(&mut self, wait: Duration) -> anyhow::Result<()> {
        let shutdown = self.context.shutdown.clone();
        tokio::select! {
            () = sleep(wait) => Ok(()),
            () = self.bells.members_changed() => Ok(()),
            () = shutdown.stopping() => Ok(()),
            Some(ended) = self.holders.join_next_with_id() => match ended {
                Ok((id, shard)) => {
                    // Fenced: the list of carriers tells whose it is now.
                    self.ids.remove(&id);
                    self.forget(shard, id);
                    Ok(())
                }
                Err(error) if error.is_cancelled() => {
                    self.ids.remove(&error.id());
                    Ok(())
                }
                Err(error) => Err(anyhow::Error::new(error).context("a shard's holder died")),
            },
        }
    }

    /// Forgets a holder that has ended, unless the shard is held anew already.
    fn forget(&mut self, shard: Shard, id: Id) {
        if self.held.get(&shard).is_some_and(|(_, handle)| handle.id() == id) {
            self.held.remove(&shard);
        }
    }

    /// Gives all shards back and says so: two rounds of calls, for which the grace must do.
    async fn farewell(&mut self) {
        let within = (2 * self.patience).min(self.context.shutdown.grace());
        let goodbye = async {
            self.release(self.held.keys().copied().collect()).await;
            self.store.heartbeat(&self.name, Duration::ZERO).await
        };
        match timeout(within, goodbye).await {
            Ok(Ok(_)) => info!("handed all shards over"),
            Ok(Err(_)) | Err(_) => {
                info!("left without a farewell; the shards are taken over after the lock's time");
            }
        }
    }
}

/// The shards that are `me`'s when the live carriers are these: every carrier sorts the
/// same names and deals the shards out in turn.
fn share(carriers: &[String], me: &str, shards: impl Iterator<Item = Shard>) -> Vec<Shard> {
    let mut names: Vec<&str> = carriers.iter().map(String::as_str).collect();
    names.sort_unstable();
    let Some(place) = names.iter().position(|name| *name == me) else { return Vec::new() };
    shards.skip(place).step_by(names.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringback_store::settings;

    #[tokio::test]
    async fn every_shard_is_dealt_to_exactly_one_carrier_and_the_shares_differ_by_one_at_most() {
        let store = Store::open(settings::defaults(Duration::from_secs(1))).unwrap();
        let names = ["c", "a", "b"].map(str::to_owned);
        let shares = names.each_ref().map(|me| share(&names, me, store.shards()));
        let mut all: Vec<_> = shares.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, store.shards().collect::<Vec<_>>());
        let sizes = shares.map(|s| s.len());
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        assert!(share(&names, "stranger", store.shards()).is_empty());
    }
}
