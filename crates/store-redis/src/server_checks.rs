//! Checks whether the store is fit to keep jobs: before it is used, and again and again while it is. A store that becomes
//! less durable than required still delivers its jobs, but accepts no new ones.

mod findings;
mod risk;

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use ringback_core::store_types::{Profile, Shard, StoreError};
use tokio::time::Instant;

use crate::accepted_counts::{KnownCount, SeenRow};

pub(crate) use self::findings::{AofServer, Eviction, Findings, memory};
pub(crate) use self::risk::Risk;

use crate::durability::{self, Durability};
use crate::keys::KeySpace;
use crate::redis_store::{RedisStore, ServerChecks};

/// How often a check reads settings of servers: whether they remove jobs when memory is short, and how durable they are.
/// They were right at the start, and change by hand or with a start, which the run ids show.
const LOOK_AT_SETTINGS: Duration = Duration::from_secs(3);
/// How often a check tests whether replicas sync in time, after they did not. Confirmed calls wait meanwhile.
const TRY_SYNC: Duration = Duration::from_secs(10);

impl RedisStore {
    /// Checks the servers, the settings of the installation, and whether jobs were lost. Until this has succeeded once,
    /// calls fail with [`StoreError::Unprepared`]. Fails with [`StoreError::Lost`] while a loss of jobs has to be
    /// accepted, and with [`StoreError::Weaker`] or [`StoreError::NoReplica`] while the store is less durable than
    /// required; then submits fail with the same error.
    ///
    /// One call at a time: the first one after a promotion knows that losses of the last moment are expected.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let _alone = self.preparing.lock().await;
        self.prepare_alone().await
    }

    /// Handles a loss that the answer to a call with `known` has shown, by a [`Self::prepare`], unless another call has
    /// handled it meanwhile. Fails if the loss has to be accepted, or the check fails.
    pub(crate) async fn take_note_of_loss(&self, shard: Shard, known: KnownCount) -> Result<(), StoreError> {
        let _alone = self.preparing.lock().await;
        if self.loss().is_some() || self.accepted_counts.is_outdated(shard, known) {
            return self.check_no_loss();
        }
        self.prepare_alone().await
    }

    async fn prepare_alone(&self) -> Result<(), StoreError> {
        let had_loss = self.loss().is_some();
        if had_loss {
            // Data that are back are checked before they get new jobs.
            self.set_weakness(Some(StoreError::Unprepared));
        }
        let prepared = self.prepare_once().await;
        // It may be another server, whose settings were not checked while the loss had to be accepted.
        if had_loss && self.loss().is_none() { self.prepare_once().await } else { prepared }
    }

    async fn prepare_once(&self) -> Result<(), StoreError> {
        // A master that was cut off from its replicas stays unfit, and another one may have taken its place.
        self.topology.look().await;
        let was_prepared = self.found_profile().is_some();
        // The servers were checked when the loss was noticed.
        let findings = if was_prepared && self.loss().is_some() {
            None
        } else {
            let checked = findings::servers(&self.topology).await;
            Some(match checked {
                // A server without TLS waits for the end of a line when it is spoken to in TLS.
                Err(error @ (StoreError::Away(_) | StoreError::Slow(_))) if !was_prepared => {
                    return Err(self.topology.diagnosis().await.unwrap_or(error));
                }
                checked => checked?,
            })
        };
        let is_asked = findings.as_ref().map_or(Ok(()), |found| self.check_durability(&found.durability));
        if matches!(is_asked, Err(StoreError::Weaker(_))) && !was_prepared {
            return is_asked;
        }
        if let Some(findings) = &findings {
            match &findings.eviction {
                Some(eviction) if !was_prepared => return Err(StoreError::Unfit(eviction.to_string())),
                eviction => self.note_eviction(eviction.clone()),
            }
        }
        self.look_at_installation().await?;
        self.note_losses(findings.as_ref()).await?;
        if let Some(findings) = findings {
            self.accepted_counts.installation().replication = findings.replication_ids();
            self.rewrite_after_start(&findings.rewritten).await;
            self.take_findings(findings, is_asked.is_ok()).await;
        }
        self.set_weakness(is_asked.err());
        self.check_strength()?;
        // First, because it frees the masters that take writes.
        let replicas = self.check_replicas().await;
        if self.topology.has_several_servers() {
            findings::all_take_writes(&self.topology).await?;
        }
        replicas?;
        self.check_no_loss()
    }

    /// Checks that the store answers, is the same and has lost no jobs; if it has changed, is a [`Self::prepare`].
    /// Writes, so that it fails on a server that takes no writes: a replica after a failover, or one with a full disk.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.topology.look().await;
        // First, because it frees the masters that take writes.
        let replicas = self.check_replicas().await;
        self.look_at_eviction().await?;
        let SeenRow { is_another, run_id } = self.look_at_installation().await?;
        let has_several = self.topology.has_several_servers();
        if has_several {
            self.look_at_moves().await?;
            findings::all_take_writes(&self.topology).await?;
        }
        let (run_ids, is_asked) = if self.is_durability_due() {
            let findings::Look { run_ids, durability } = findings::look(&self.topology).await?;
            (run_ids, self.is_as_before(&durability))
        } else if has_several {
            (findings::current_run_ids(&self.topology).await?, true)
        } else {
            (BTreeSet::from([run_id]), true)
        };
        let has_changed = {
            let server_checks = self.server_checks.read().unwrap_or_else(PoisonError::into_inner);
            server_checks.as_ref().is_some_and(|found| found.run_ids != run_ids)
        };
        // A server that has started again between two calls may have other settings, and other data.
        let is_other = has_changed || is_another || !is_asked || self.check_strength().is_err();
        if is_other {
            return self.prepare().await;
        }
        replicas?;
        if self.has_next_shard_lost().await? {
            return self.prepare().await;
        }
        self.try_sync_again().await;
        self.check_no_loss()
    }

    /// Checks, at most every 3 s, whether servers remove jobs when memory is short.
    async fn look_at_eviction(&self) -> Result<(), StoreError> {
        let looked = self.eviction.read().unwrap_or_else(PoisonError::into_inner).1;
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_AT_SETTINGS) {
            self.memory_share().await?;
        }
        Ok(())
    }

    /// Whether the check has to read how durable servers are. Replicas come and go at any time, so they are looked at in
    /// each check.
    fn is_durability_due(&self) -> bool {
        let Some(asked) = self.options.durability else { return false };
        let mut server_checks = self.server_checks.write().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = server_checks.as_mut() else { return true };
        let is_due = asked == Profile::Replicated || found.durability_read.elapsed() >= LOOK_AT_SETTINGS;
        if is_due {
            found.durability_read = Instant::now();
        }
        is_due
    }

    /// Records the setting that removes jobs when memory is short, or that there is none, and logs a change. With such a
    /// setting jobs are delivered, and submits are refused.
    pub(crate) fn note_eviction(&self, found: Option<Eviction>) {
        let mut known = self.eviction.write().unwrap_or_else(PoisonError::into_inner);
        known.1 = Some(Instant::now());
        if known.0 == found {
            return;
        }
        match &found {
            Some(eviction) => tracing::error!("{eviction}; submits are refused until then"),
            None => tracing::info!("the store removes no jobs when memory is short; submits are accepted"),
        }
        known.0 = found;
    }

    /// Whether a server removes jobs when memory is short, by the last check.
    pub fn evicts(&self) -> bool {
        self.eviction.read().unwrap_or_else(PoisonError::into_inner).0.is_some()
    }

    /// Whether servers keep data as durably as required and, unless replicas confirm changes, as durably as before.
    fn is_as_before(&self, servers: &[Durability]) -> bool {
        let found = match self.found_profile() {
            Some(Profile::Replicated) => Profile::Replicated,
            _ => durability::least(servers),
        };
        self.check_durability(servers).is_ok() && Some(found) == self.found_profile()
    }

    /// Stores the findings, so that calls can be made, and logs the risks if they are others than before. Tests whether
    /// replicas sync, if changes have to be replicated.
    async fn take_findings(&self, mut findings: Findings, is_asked: bool) {
        let is_replicated = is_asked && self.options.durability == Some(Profile::Replicated);
        if is_replicated && !self.can_wait_for_sync(&findings).await {
            findings.risks.insert(Risk::ReplicasNotSynced);
        }
        let profile = if is_replicated { Profile::Replicated } else { findings.profile() };
        let Findings { risks, run_ids, .. } = findings;
        let mut server_checks = self.server_checks.write().unwrap_or_else(PoisonError::into_inner);
        if server_checks.as_ref().is_none_or(|before| before.risks != risks) {
            risks.iter().for_each(|risk| tracing::warn!(profile = <&str>::from(profile), "{risk}"));
        }
        let now = Instant::now();
        *server_checks =
            Some(ServerChecks { profile, risks, run_ids, durability_read: now, sync_tried: now });
    }

    /// Tests whether replicas sync changes in time, and makes confirmed calls wait for the sync if they do. False only if
    /// replicas have changes in time without syncing them.
    async fn can_wait_for_sync(&self, findings: &Findings) -> bool {
        self.topology.wait_for_sync(findings.can_wait_for_sync);
        if !findings.can_wait_for_sync {
            return true;
        }
        if self.topology.check_replicas().await.is_ok() {
            return true;
        }
        self.topology.wait_for_sync(false);
        let is_only_not_synced = self.topology.check_replicas().await.is_ok();
        self.topology.wait_for_sync(!is_only_not_synced);
        !is_only_not_synced
    }

    /// Makes confirmed calls wait for syncs again if replicas sync in time now, which is tested every 10 s. A replica that
    /// has just copied the data does not sync before it has rewritten its file.
    async fn try_sync_again(&self) {
        let is_due = {
            let mut server_checks = self.server_checks.write().unwrap_or_else(PoisonError::into_inner);
            let found = server_checks.as_mut().filter(|found| found.risks.contains(&Risk::ReplicasNotSynced));
            let found = found.filter(|found| found.sync_tried.elapsed() >= TRY_SYNC);
            found.map(|found| found.sync_tried = Instant::now()).is_some()
        };
        if !is_due || self.topology.check_replicas_synced().await.is_err() {
            return;
        }
        self.topology.wait_for_sync(true);
        if let Some(found) = self.server_checks.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            found.risks.remove(&Risk::ReplicasNotSynced);
        }
        tracing::info!("replicas sync in time again: a change is acknowledged when one has it on disk");
    }

    /// Fails if servers keep data less durably than required.
    fn check_durability(&self, servers: &[Durability]) -> Result<(), StoreError> {
        self.options.durability.map_or(Ok(()), |asked| durability::check(asked, servers))
    }

    /// Whether acknowledged jobs must not get lost, by the durability found or by the required one.
    pub(crate) fn keeps_all(&self) -> bool {
        self.found_profile().is_some_and(|profile| {
            profile.keeps_all() || self.options.durability.is_some_and(Profile::keeps_all)
        })
    }

    fn set_weakness(&self, weakness: Option<StoreError>) {
        *self.weakness.write().unwrap_or_else(PoisonError::into_inner) = weakness;
    }

    /// Fails while the store removes jobs when memory is short, or is less durable than required.
    fn check_strength(&self) -> Result<(), StoreError> {
        if let Some(eviction) = &self.eviction.read().unwrap_or_else(PoisonError::into_inner).0 {
            return Err(StoreError::Weaker(eviction.to_string()));
        }
        self.weakness.read().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }

    /// Fails with `NoReplica` if replicas have to have all changes and do not.
    async fn check_replicas(&self) -> Result<(), StoreError> {
        no_replica(self.topology.check_replicas().await)
    }

    /// Fails while a shard accepts no new jobs: while a loss has to be accepted, the store is not durable enough, or the
    /// replicas of the shard's server are behind.
    pub(crate) fn check_takes_jobs(&self, shard: Shard) -> Result<(), StoreError> {
        self.check_no_loss()?;
        self.check_strength()?;
        if self.topology.is_behind(KeySpace::Shard(shard)) { Err(StoreError::NoReplica) } else { Ok(()) }
    }
}

/// Converts `Unreplicated` to `NoReplica`, for a check: it changes nothing, so its outcome is not unknown.
pub(crate) fn no_replica<T>(checked: Result<T, StoreError>) -> Result<T, StoreError> {
    checked.map_err(|error| match error {
        StoreError::Unreplicated => StoreError::NoReplica,
        error => error,
    })
}
