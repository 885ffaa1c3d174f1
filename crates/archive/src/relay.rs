//! The archive relay: takes the ended jobs of some shards out of the store, writes them to the sink as rows, and then
//! removes them from the store. What is taken and not removed, after a crash for example, is taken and written again;
//! the sink keeps each row once. One relay of an archiver writes the audit log too, which stays in the store.

use std::time::Duration;

use futures_util::future::join_all;
use ringback_core::crash_point;
use ringback_core::store_types::{
    ArchiveEntries, MAX_ARCHIVE_ENTRIES, OutboxPart, Shard, StoreError, TakeEntries,
};
use ringback_service::Context;
use ringback_service::outage::{Outage, PartialOutage};
use ringback_service::shutdown::Shutdown;
use ringback_service::telemetry::with_causes;
use ringback_store::{SharedConfig, Store};
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::audit_log::AuditLogReader;
use crate::config::Config;
use crate::ended_job_row::EndedJobRow;
use crate::metrics::Metrics;
use crate::sink::{Sink, SinkError};

/// For how long the taken jobs of a shard are held by this archiver; jobs of one that was killed wait for as long. If
/// a write takes longer, another archiver may make it too, which does no harm.
const LASTS: Duration = Duration::from_secs(5);
/// Fewer rows than this are waited for a moment to become more.
const FEW: usize = 1_000;
const GATHER: Duration = Duration::from_millis(100);
/// How many shards are taken from at a time, so that rows take a bounded amount of memory.
const SHARDS: usize = 8;
/// The longest pause while no job ends.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How many entries of the audit log are written at a time.
const CHECK_ENTRIES: usize = 1_000;
/// How often the sink removes what was kept long enough.
const MAINTAIN: Duration = Duration::from_secs(60 * 60);

/// The name of the readiness check.
const CHECK: &str = "archive";

pub(crate) struct Relay<S> {
    pub(crate) store: Store,
    pub(crate) policies: SharedConfig,
    /// Which ended jobs are archived.
    pub(crate) config: Config,
    pub(crate) sink: S,
    /// The shards whose ended jobs this relay archives.
    pub(crate) shards: Vec<Shard>,
    pub(crate) name: String,
    pub(crate) metrics: Metrics,
    /// The readiness check, the clock and the shutdown.
    pub(crate) context: Context,
    /// Whether the process is not ready while the database is away.
    pub(crate) is_essential: bool,
    /// The shards that the store does not give.
    pub(crate) outages: PartialOutage<Shard>,
    /// How many ended jobs of a shard are taken at a time.
    pub(crate) limit: usize,
    /// What is known of the audit log; `None` if another relay writes it.
    pub(crate) audit_log: Option<AuditLogReader>,
}

/// The result of a try to remove what is old.
enum Maintained {
    /// The store was not there to say what time it is.
    StoreAway,
    Tried(Result<(), SinkError>),
}

impl<S: Sink> Relay<S> {
    /// Runs until the shutdown. May be dropped at any time.
    pub(crate) async fn run(mut self) {
        let shutdown = self.context.shutdown.clone();
        self.report(false, "not reached yet");
        tokio::select! {
            biased;
            () = shutdown.stopping() => {}
            () = self.work(&shutdown) => {}
        }
    }

    async fn work(&mut self, shutdown: &Shutdown) {
        let (mut outage, mut pause, mut maintained, mut is_new) = (Outage::new(), GATHER, None, true);
        while !shutdown.is_stopping() {
            let found = match self.sink.prepare().await {
                Ok(found) => found,
                Err(error) => {
                    self.failed(&error, &mut outage).await;
                    continue;
                }
            };
            let error = loop {
                if maintained.is_none_or(|at: Instant| at.elapsed() >= MAINTAIN) {
                    match self.maintain().await {
                        // Its time is asked for again in the next round.
                        Maintained::StoreAway => {}
                        // If it fails it is not tried again soon, so that ended jobs are archived meanwhile.
                        Maintained::Tried(result) => {
                            maintained = Some(Instant::now());
                            if let Err(error) = result {
                                break Some(error);
                            }
                        }
                    }
                }
                let rows = match self.round().await {
                    Ok(0) => match self.sink.write(&[]).await {
                        // So that it is noticed while no job ends.
                        Err(error) => break Some(error),
                        Ok(_) => 0,
                    },
                    Ok(rows) => rows,
                    Err(error) => break Some(error),
                };
                if !self.archive_audit_log().await {
                    // Ends go on, over another connection.
                    break None;
                }
                // A database that can be reached may still not take what waits.
                if std::mem::take(&mut is_new) {
                    let again = if outage.ends() { " again" } else { "" };
                    info!(%found, "the archive is available{again}");
                    self.report(true, &found);
                }
                match rows {
                    rows if rows >= FEW => pause = GATHER,
                    rows => {
                        pause = if rows > 0 { GATHER } else { (2 * pause).min(MAX_PAUSE) };
                        sleep(pause).await;
                    }
                }
            };
            if let Some(error) = error {
                is_new = true;
                self.failed(&error, &mut outage).await;
            }
        }
    }

    async fn failed(&self, error: &SinkError, outage: &mut Outage) {
        self.metrics.failures.add(1, &[]);
        self.report(false, &error.to_string());
        if outage.begins() {
            warn!(%error, "the archive is unavailable; ended jobs wait in the store");
        }
        sleep(outage.wait()).await;
    }

    fn report(&self, is_ready: bool, text: &str) {
        self.context.health.set(CHECK, is_ready || !self.is_essential, text);
    }

    /// Archives what waits in the shards, from each at most `limit` entries, which shrinks after a failure and grows
    /// again. Returns how many entries were taken out, wanted or not.
    async fn round(&mut self) -> Result<usize, SinkError> {
        self.policies.known().await;
        let mut total = 0;
        let shards = self.shards.clone();
        let mut left = shards.as_slice();
        while !left.is_empty() {
            let at_once = if self.limit < MAX_ARCHIVE_ENTRIES { 1 } else { SHARDS.min(left.len()) };
            let (now, later) = left.split_at(at_once);
            match self.archive(now).await {
                Ok(rows) => total += rows,
                Err(error) => {
                    // A database that is slow gets less at a time, at last one end.
                    self.limit = (self.limit / 4).max(1);
                    return Err(error);
                }
            }
            self.limit = (2 * self.limit).min(MAX_ARCHIVE_ENTRIES);
            left = later;
        }
        Ok(total)
    }

    async fn archive(&mut self, shards: &[Shard]) -> Result<usize, SinkError> {
        let taken = join_all(shards.iter().map(|shard| self.take(*shard))).await;
        // A shard that cannot be read does not hold up the others.
        let taken: Vec<_> =
            taken.into_iter().zip(shards).filter_map(|(taken, shard)| self.of_store(*shard, taken)).collect();
        crash_point!("archiver.after_take");
        let (mut rows, mut parts, mut oldest) = (Vec::new(), Vec::new(), None);
        for (shard, ArchiveEntries { part, jobs }) in taken.into_iter().flatten() {
            parts.push((shard, part));
            for end in jobs {
                let Some(end) = end else {
                    self.metrics.unreadable.add(1, &[]);
                    continue;
                };
                let policy = self.policies.get(&end.job.key.topic).ok().flatten();
                let archive = policy.map(|policy| policy.archive).unwrap_or_default();
                if !archive.wants(end.kind, self.config.states) {
                    self.metrics.unwanted.add(1, &[]);
                    continue;
                }
                oldest = oldest.into_iter().chain([end.at]).min();
                rows.push(EndedJobRow::new(end, archive.bodies.unwrap_or(self.config.with_bodies)));
            }
        }
        let total = parts.iter().map(|(_, part): &(_, OutboxPart)| part.count as usize).sum();
        if !rows.is_empty() {
            let begun = Instant::now();
            let written = self.sink.write(&rows).await?;
            self.metrics.write.record(begun.elapsed().as_secs_f64(), &[]);
            self.metrics.archived.add(written.new, &[]);
            if written.refused > 0 {
                self.metrics.refused.add(written.refused, &[]);
                error!(
                    refused = written.refused,
                    "ended jobs are not archived: the database refuses what is in them"
                );
            }
            if let Some(oldest) = oldest {
                self.metrics.lag.record(self.context.clock.now().since(oldest).as_secs_f64(), &[]);
            }
            crash_point!("archiver.after_write");
        }
        let remove = parts.iter().map(|(shard, part)| self.store.remove_ended(*shard, &self.name, part));
        let removed = join_all(remove).await;
        // What stays is taken again.
        for (left, (shard, _)) in removed.into_iter().zip(&parts) {
            self.of_store(*shard, left);
        }
        crash_point!("archiver.after_remove");
        Ok(total)
    }

    /// Removes from the archive what was kept long enough. Does nothing if the store's time differs from this
    /// machine's: by a wrong clock everything is old.
    async fn maintain(&mut self) -> Maintained {
        match self.store.is_time_sure(Shard(0)).await {
            Err(_) => return Maintained::StoreAway,
            Ok(false) => {
                warn!(
                    "nothing is removed from the archive while it is not sure what time it is; trying later"
                );
                return Maintained::Tried(Ok(()));
            }
            Ok(true) => {}
        }
        let result = self.sink.maintain().await;
        if let Err(error) = &result {
            warn!(%error, "what was kept long enough cannot be removed from the archive; trying later");
        }
        Maintained::Tried(result)
    }

    /// Archives the new entries of the audit log, if that is due. Returns false if the database does not take them.
    async fn archive_audit_log(&mut self) -> bool {
        let Some(reader) = self.audit_log.as_mut().filter(|reader| reader.is_due()) else { return true };
        let now = self.context.clock.now();
        // By a wrong clock nothing is too old.
        let keep = self.config.keep.filter(|_| self.store.clock_gap().is_none());
        let oldest = keep.map(|keep| now.minus(keep));
        let Some(found) = reader.read(&self.store, now, oldest).await else { return true };
        // The oldest first.
        for rows in found.rows.rchunks(CHECK_ENTRIES) {
            match self.sink.write_audit_log(rows).await {
                Ok(written) => {
                    self.metrics.audit_entries.add(written.new, &[]);
                    self.metrics.lost_audit_entries.add(written.refused, &[]);
                }
                Err(error) => {
                    self.metrics.failures.add(1, &[]);
                    reader.refused(&error);
                    return false;
                }
            }
        }
        crash_point!("archiver.after_audit_log");
        self.metrics.lost_audit_entries.add(found.unreadable, &[]);
        reader.written(found);
        true
    }

    /// The answer of the store for a shard; `None` for an error. The begin and the end of an outage are logged once.
    fn of_store<T>(&mut self, shard: Shard, answer: Result<T, StoreError>) -> Option<T> {
        match answer {
            Ok(answer) => {
                if self.outages.succeeded(&shard) {
                    info!("ended jobs are taken out of the store again");
                }
                Some(answer)
            }
            Err(error) => {
                if self.outages.failed(shard) {
                    let (shard, error) = (shard.number(), with_causes(&error));
                    warn!(shard, error, "cannot take ended jobs out of the store; retrying");
                }
                None
            }
        }
    }

    /// Takes the first ended jobs of a shard, at most `limit`; `None` if there are none, or another archiver has them.
    async fn take(&self, shard: Shard) -> Result<Option<(Shard, ArchiveEntries)>, StoreError> {
        match self.store.take_ended(shard, &self.name, LASTS, self.limit).await? {
            TakeEntries::Taken(taken) if !taken.jobs.is_empty() => Ok(Some((shard, taken))),
            TakeEntries::Taken(_) | TakeEntries::Busy(_) => Ok(None),
        }
    }
}
