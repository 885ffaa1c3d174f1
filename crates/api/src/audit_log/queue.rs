//! The bounded queue of entries: logs each entry and writes entries to the store, many in one call. An entry that is
//! not stored is logged as an error and counted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::clock::Clock;
use ringback_core::store_types::{
    AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_ENTRY, MAX_AUDIT_LOG_ROWS, StoreError,
};
use ringback_service::telemetry::AUDIT_LOG;
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use ringback_wire::{AuditLogEntry, AuditLogOutcome};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};

use super::entry;
use crate::limits::Deadline;
use crate::metrics::Metrics;

/// The most entries that wait for the store: 4 MiB.
const MAX_WAITING: usize = 1_024;
/// How long entries are collected before they are written.
const COLLECT: Duration = Duration::from_millis(50);
/// How long one call of the store may take that writes entries.
const CALL: Duration = Duration::from_secs(5);
/// How long a failed write is repeated while the store is away, and how long to pause before each repetition.
const TRY_FOR: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);
/// How long a call waits for room if its own deadline comes earlier.
const WAIT_AT_LEAST: Duration = Duration::from_millis(200);
/// How much longer than the grace period of the shutdown entries may be written.
const LAST_CALL: Duration = Duration::from_millis(500);

/// Room for an entry, kept until it is stored.
pub(super) type Room = OwnedSemaphorePermit;

/// The queue. Once it is dropped, the entries that wait are written, and its task ends.
pub(crate) struct Queue {
    waiting: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    rng: Mutex<StdRng>,
}

struct Waiting {
    row: AuditLogRow,
    metrics: Arc<Metrics>,
    is_stored: bool,
    _room: Option<Room>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_stored {
            self.metrics.audit_log_failed();
            tracing::error!(
                    target: AUDIT_LOG,
                { audit.entry = &*self.row.written },
                "an entry is missing in the audit log of the store"
            );
        }
    }
}

impl Queue {
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        clock: &Arc<dyn Clock>,
        rng: StdRng,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let (sender, waiting) = mpsc::unbounded_channel();
        let (store, shutdown) = (store.clone(), shutdown.clone());
        tasks.spawn("api's audit log", async move {
            let cut = async {
                shutdown.expired().await;
                sleep(LAST_CALL).await;
            };
            tokio::select! {
                biased;
                () = write_all(&store, waiting) => {}
                () = cut => {}
            }
        });
        Self {
            waiting: sender,
            room: Arc::new(Semaphore::new(MAX_WAITING)),
            metrics: Arc::clone(metrics),
            clock: Arc::clone(clock),
            rng: Mutex::new(rng),
        }
    }

    /// Waits for room for an entry until `deadline`, but at least 200 ms; `None` if there is none by then.
    pub(super) async fn room(&self, deadline: Deadline) -> Option<Room> {
        let acquired = deadline.later(WAIT_AT_LEAST).bound(Arc::clone(&self.room).acquire_owned()).await;
        acquired.ok().and_then(Result::ok)
    }

    pub(super) fn room_now(&self) -> Option<Room> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// Gives an entry its id and time, logs it, and queues it for the store. Without `room`, only logs it, and logs and
    /// counts that it is missing in the store.
    pub(super) fn note(&self, owner: AuditLogOwner, mut entry: AuditLogEntry, room: Option<Room>) {
        let now = self.clock.now();
        let random = self.rng.lock().unwrap_or_else(PoisonError::into_inner).random::<u128>();
        let id = AuditLogId::new(now, random);
        (entry.id, entry.at) = (id.to_string(), now.to_string());
        let row = entry::row(id, owner, &mut entry);
        log(&entry);
        let has_room = room.is_some();
        let waiting = Waiting { row, metrics: Arc::clone(&self.metrics), is_stored: false, _room: room };
        if has_room {
            // Otherwise the process is ending, and what comes back is dropped.
            self.waiting.send(waiting).ok();
        }
    }
}

fn log(entry: &AuditLogEntry) {
    let part = |name| entry.target.parts().find(|(of, _)| *of == name).map(|(_, part)| part);
    let others: Vec<_> = entry.target.parts().filter(|(name, _)| !["topic", "id"].contains(name)).collect();
    let others = others.iter().map(|(name, part)| format!("{name}:{part}")).collect::<Vec<_>>().join(" ");
    let shown = |value: &Option<serde_json::Value>| value.as_ref().map(ToString::to_string);
    tracing::info!(
        target: AUDIT_LOG,
        {
            audit.id = entry.id, audit.operation = entry.operation, audit.who = entry.who,
        audit.address = entry.address, audit.tenant = entry.tenant,
        job.topic = part("topic"), job.id = part("id"),
        audit.target = Some(others).filter(|others| !others.is_empty()),
        audit.before = shown(&entry.before), audit.after = shown(&entry.after), audit.count = entry.count,
        audit.done = entry.outcome == AuditLogOutcome::Done, trace.id = entry.trace_id,
        },
        "a call has changed something"
    );
}

/// Writes entries until the queue is dropped and none waits. Entries that cannot be written are dropped.
async fn write_all(store: &Store, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
    let mut is_full = false;
    while let Some(first) = waiting.recv().await {
        if !is_full {
            sleep(COLLECT).await;
        }
        let mut entries = vec![first];
        while entries.len() < MAX_AUDIT_LOG_ROWS
            && let Ok(next) = waiting.try_recv()
        {
            entries.push(next);
        }
        is_full = entries.len() == MAX_AUDIT_LOG_ROWS;
        let rows: Vec<_> = entries.iter().map(|entry| entry.row.clone()).collect();
        match write(store, &rows).await {
            Ok(()) => entries.iter_mut().for_each(|entry| entry.is_stored = true),
            Err(error) => {
                tracing::error!(%error, entries = rows.len(), "the store does not take entries of the audit log");
            }
        }
    }
}

/// Writes entries in one call to the store. Repeats the call after transient errors, for up to 30 s.
async fn write(store: &Store, rows: &[AuditLogRow]) -> Result<(), StoreError> {
    let until = Instant::now() + TRY_FOR;
    loop {
        let written = timeout(CALL, store.append_audit_log(rows)).await;
        match written.unwrap_or(Err(StoreError::Slow(CALL))) {
            Err(error) if error.is_transient() && Instant::now() + PAUSE < until => sleep(PAUSE).await,
            written => return written,
        }
    }
}

const _: () = assert!(MAX_WAITING * MAX_AUDIT_LOG_ENTRY == 4 * 1024 * 1024);
