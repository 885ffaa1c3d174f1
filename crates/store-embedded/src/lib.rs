//! The embedded store, in one directory, for one process: a redb database with a redo log before it, and one writer
//! that runs calls in groups. This file opens a store, checks that it answers, and passes calls on to the writer.
//! `transitions` has the calls that change jobs, `queries` those that only read, `check` the consistency check.

mod answers;
mod call_faults;
mod check;
mod clock_consent;
mod compact;
mod error;
mod files;
mod location;
mod mutex;
mod open_files;
mod places;
mod queries;
mod redo_log;
mod streams;
mod tables;
#[cfg(test)]
mod tests;
mod transitions;
mod txn;
mod write_behind;
mod writer;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redb::ReadTransaction;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::store_types::{AcceptLoss, Options, Profile, Shard, StoreError};
use tokio::time::timeout;

pub use self::call_faults::{CallFault, CallFaults};
pub use self::compact::{Compacted, compact};
use self::error::Result;
pub use self::streams::{Events, PolicyChanges, Wakes};
use self::tables::Tables;
use self::transitions::quota::QuotasGranted;
use self::txn::{KeepTombstones, Txn};
pub use self::writer::shared::Memory;
use self::writer::shared::{Handle, SharedWriter};

/// The beginning of a store's URL; the directory follows.
pub const SCHEME: &str = "embedded:";
/// About how many bytes a tombstone takes, with its entries and the slack of pages.
const TOMBSTONE_BYTES: u64 = 256;
/// The shard for calls that concern no shard, such as those about policies and bulk operations.
const ANY_SHARD: Shard = Shard(0);
/// About how many bytes a transition writes for one job without its body.
const TRANSITION_BYTES: usize = 256;

pub struct EmbeddedStore {
    shared: Arc<SharedWriter>,
    options: Options,
    quotas_granted: QuotasGranted,
    /// Set by `prepare`, which opens the file and checks it.
    writer: OnceLock<Arc<Handle>>,
    /// Chooses the faults of the calls, in simulations.
    faults: Option<Arc<dyn CallFaults>>,
}

impl EmbeddedStore {
    pub const LAYOUT: u64 = tables::format::VERSION;

    /// Returns the store in a directory, whose file is named after the prefix. [`Self::prepare`] opens the file.
    pub fn open(directory: &str, options: Options) -> Self {
        let file = Path::new(directory).join(format!("{}.redb", options.prefix));
        Self::on(SharedWriter::of_file(&file), options)
    }

    pub fn in_memory(memory: &Memory, options: Options) -> Self {
        Self { faults: memory.faults.clone(), ..Self::on(Arc::clone(&memory.shared), options) }
    }

    fn on(shared: Arc<SharedWriter>, options: Options) -> Self {
        Self {
            shared,
            options,
            quotas_granted: QuotasGranted::default(),
            writer: OnceLock::new(),
            faults: None,
        }
    }

    pub const fn layout(&self) -> u64 {
        Self::LAYOUT
    }

    pub const fn kind(&self) -> &'static str {
        "embedded"
    }

    /// Returns no addresses, since there are no servers.
    pub fn addresses(&self) -> Vec<(String, u16)> {
        Vec::new()
    }

    /// Returns no shards, since none moves to another server.
    pub fn moving(&self) -> Vec<Shard> {
        Vec::new()
    }

    /// Returns 0: no other server can take the place of this store.
    pub const fn losses_noticed(&self) -> u64 {
        0
    }

    /// Accepts nothing and returns that the loss is unknown, see [`Self::losses_noticed`].
    pub async fn accept_loss(&self, _run_id: &str) -> Result<AcceptLoss, StoreError> {
        Ok(AcceptLoss::Unknown(None))
    }

    /// Returns 0: the limit is the disk, not memory.
    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        Ok(0.0)
    }

    pub const fn evicts(&self) -> bool {
        false
    }

    pub fn profile(&self) -> Profile {
        self.shared.location.profile()
    }

    /// Opens the file, or is a [`ping`](Self::ping) if this store has opened it. Fails if the file cannot be opened or
    /// has another number of shards, if a higher durability is required, or once the writer has ended.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        if let Some(writer) = self.writer.get() {
            return if writer.has_ended() { Err(StoreError::Closed) } else { self.ping().await };
        }
        let found = self.profile();
        if let Some(asked) = self.options.durability.filter(|asked| *asked > found) {
            return Err(StoreError::Weaker(format!(
                "RINGBACK_DURABILITY is {asked}, and an embedded store is {found}: set it to {found}, or leave it unset"
            )));
        }
        let (shared, shards) = (Arc::clone(&self.shared), self.options.shards);
        let writer = self.shared.run_blocking(move || shared.handle(shards)).await??;
        if writer.shards != shards {
            return Err(self.options.shard_mismatch(writer.shards));
        }
        // A concurrent call may have set the same writer.
        let _ = self.writer.set(writer);
        Ok(())
    }

    /// Whether the disk has less free space than `keep_free_mib` of the options; false if that is 0, or in memory.
    pub async fn has_little_room(&self) -> Result<bool, StoreError> {
        let least = u64::from(self.options.keep_free_mib) * 1024 * 1024;
        if least == 0 {
            return Ok(false);
        }
        let location = Arc::clone(&self.shared.location);
        let free = self.shared.run_blocking(move || location.free_bytes()).await??;
        Ok(free.is_some_and(|free| free < least))
    }

    /// Checks that the writer answers and, if the last write has failed, that files can be written again.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let location = Arc::clone(&self.shared.location);
        let look = move |txn: &mut Txn<'_>| {
            if location.is_failing() {
                txn.touch();
            }
            Ok(())
        };
        self.call(ANY_SHARD, 0, look).await
    }

    pub fn wakes(&self) -> Wakes {
        Wakes::new(self.shared.location.wakes.clone())
    }

    pub fn events(&self) -> Events {
        self.shared.location.events.listen()
    }

    /// Watches the events of a shard for a time, and returns since when the shard is watched without a gap.
    pub async fn watch(&self, shard: Shard, lasts: Duration) -> Result<Timestamp, StoreError> {
        let (location, lasts) = (Arc::clone(&self.shared.location), millis_up(lasts));
        let watch = move |txn: &mut Txn<'_>| {
            let (now, until) = (txn.now(), txn.now().saturating_add(lasts));
            Ok(Timestamp::from_millis(location.events.watch(txn.shard(), now, until)))
        };
        self.call(shard, 0, watch).await
    }

    fn writer(&self) -> Result<&Arc<Handle>, StoreError> {
        self.writer.get().ok_or(StoreError::Unprepared)
    }

    /// Runs `work` in the writer's transaction. `bytes` is about how much it writes. Fails with `Unprepared` before the
    /// file is open, and with `Slow` after the call timeout, although `work` may still run then.
    async fn call<T: Send + 'static>(
        &self,
        shard: Shard,
        bytes: usize,
        work: impl FnMut(&mut Txn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (limit, writer) = (self.options.call_timeout, self.writer()?);
        let answer = match &self.faults {
            None => timeout(limit, writer.call(shard, bytes, work)).await,
            Some(faults) => {
                let writer = Arc::clone(writer);
                let call = async move { writer.call(shard, bytes, work).await };
                timeout(limit, faults.next().around(call)).await
            }
        };
        answer.map_err(|_elapsed| StoreError::Slow(limit))?
    }

    /// Returns a snapshot with the effects of all calls that were answered before. Reading it does not block the
    /// writer. Fails with `Unprepared` before the file is open, and with `Slow` after the call timeout.
    async fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let limit = self.options.call_timeout;
        timeout(limit, self.writer()?.snapshot()).await.map_err(|_elapsed| StoreError::Slow(limit))?
    }

    /// Runs `read` on a snapshot, on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        snapshot: ReadTransaction,
        read: impl FnOnce(&Tables<ReadTransaction>) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        Ok(self.shared.run_blocking(move || read(&Tables::open(&snapshot)?)).await??)
    }

    /// Returns how long tombstones are kept.
    pub const fn shortest_keep_done(&self) -> Duration {
        self.options.keep_done
    }

    fn keep_tombstones(&self) -> KeepTombstones {
        KeepTombstones {
            time: millis_up(self.options.keep_done),
            count: self.options.tombstones(TOMBSTONE_BYTES),
        }
    }
}
