//! The reader of the audit log: finds in the store the entries that the database does not have.

use std::collections::BTreeSet;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{AuditLogId, AuditLogRow, MAX_AUDIT_LOG_ROWS, StoreError};
use ringback_service::outage::PartialOutage;
use ringback_service::telemetry::with_causes;
use ringback_store::Store;
use tokio::time::Instant;

use crate::audit_entry::AuditEntryRow;
use crate::sink::SinkError;

/// How often the audit log is read, and how often while many calls leave entries: the store keeps a limited number.
const EVERY: Duration = Duration::from_secs(5);
const EVERY_OF_MANY: Duration = Duration::from_secs(1);
/// From how many new entries on they are many.
const MANY: usize = 1_000;
/// How much later than the time in its id an entry is in the store: an API that cannot reach the store tries for 30 s.
const LATE: Duration = Duration::from_secs(40);
/// How often all entries of the store are read: those of an API whose clock is wrong may be older than others by more.
const WHOLE: Duration = Duration::from_secs(60 * 60);
/// How many entries are read first: mostly none is new.
const FIRST: usize = 16;
/// How many entries are remembered: more than the store keeps.
const MOST_KNOWN: usize = 20_000;
/// How often the pause doubles while the database takes no entries: to five minutes.
const LONGEST_PAUSE: u32 = 6;

/// What can be away.
const STORE: &str = "store";
const DATABASE: &str = "database";

/// Reads the audit log of a store, newest entries first, as far back as an entry can be new.
#[derive(Debug, Default)]
pub(crate) struct AuditLogReader {
    /// The entries that were read last from `floor` on, and those from before it that are known. The database has them.
    known: BTreeSet<AuditLogId>,
    /// Entries before this are in the database; `None` if that is not known.
    floor: Option<AuditLogId>,
    /// When the log is to be read next, and when the whole of it; `None` for now.
    next: Option<Instant>,
    next_whole: Option<Instant>,
    /// What does not work: the store does not give entries, or the database does not take them.
    outage: PartialOutage<&'static str>,
    /// For how many readings in a row the database has taken nothing.
    refusals: u32,
}

/// The result of a reading.
pub(crate) struct NewEntries {
    /// Rows of the entries that are new, the newest first.
    pub(crate) rows: Vec<AuditEntryRow>,
    /// How many are new and cannot be read.
    pub(crate) unreadable: u64,
    /// Entries that were read, new or not.
    seen: BTreeSet<AuditLogId>,
    /// Where the reading has begun, and what the next one may leave out.
    from: Option<AuditLogId>,
    floor: Option<AuditLogId>,
    is_whole: bool,
}

impl AuditLogReader {
    /// Whether it is time to read again.
    pub(crate) fn is_due(&self) -> bool {
        self.next.is_none_or(|at| Instant::now() >= at)
    }

    /// Reads entries that the database may not have, but none from before `oldest`. `None` after an error of the store,
    /// whose begin and end are logged once; the next reading then covers the same entries.
    pub(crate) async fn read(
        &mut self,
        store: &Store,
        now: Timestamp,
        oldest: Option<Timestamp>,
    ) -> Option<NewEntries> {
        self.next = Some(Instant::now() + EVERY);
        match self.read_back(store, now, oldest).await {
            Ok(found) => {
                if self.outage.succeeded(&STORE) {
                    tracing::info!("the audit log is archived again");
                }
                Some(found)
            }
            Err(error) => {
                if self.outage.failed(STORE) {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot read the audit log for the archive; retrying"
                    );
                }
                None
            }
        }
    }

    async fn read_back(
        &self,
        store: &Store,
        now: Timestamp,
        oldest: Option<Timestamp>,
    ) -> Result<NewEntries, StoreError> {
        let is_whole = self.next_whole.is_none_or(|at| Instant::now() >= at);
        let floor = self.floor.clone().filter(|_| !is_whole);
        let from = floor.max(oldest.map(AuditLogId::least_of));
        let (mut before, mut limit) = (None, FIRST);
        let mut found = NewEntries {
            rows: Vec::new(),
            unreadable: 0,
            seen: BTreeSet::new(),
            from: from.clone(),
            floor: None,
            is_whole,
        };
        'pages: loop {
            let page = store.audit_log(None, before.as_ref(), limit).await?;
            let is_last = page.len() < limit;
            for row in &page {
                if from.as_ref().is_some_and(|from| row.id < *from) {
                    break 'pages;
                }
                found.add(row, self.known.contains(&row.id));
            }
            if is_last {
                break;
            }
            before = page.last().map(|row| row.id.clone());
            limit = MAX_AUDIT_LOG_ROWS;
        }
        // By this clock or by those of the entries, whichever is behind.
        let newest = found.seen.last().map(|id| id.time().min(now));
        found.floor = newest.map(|newest| AuditLogId::least_of(newest.minus(LATE))).or(self.floor.clone());
        Ok(found)
    }

    /// Records that the database has the entries that were found.
    pub(crate) fn written(&mut self, found: NewEntries) {
        if self.outage.succeeded(&DATABASE) {
            tracing::info!("the audit log is archived again");
        }
        self.refusals = 0;
        if found.rows.len() >= MANY {
            self.next = Some(Instant::now() + EVERY_OF_MANY);
        }
        if found.is_whole {
            self.next_whole = Some(Instant::now() + WHOLE);
            self.known.clear();
        }
        if let Some(from) = &found.from {
            // What was not read any more is not in the store.
            drop(self.known.split_off(from));
        }
        self.known.extend(found.seen);
        while self.known.len() > MOST_KNOWN {
            self.known.pop_first();
        }
        self.floor = found.floor;
    }

    /// Records that the database has refused what was found, and doubles the pause before the next try, up to five
    /// minutes. The begin of the outage is logged once.
    pub(crate) fn refused(&mut self, error: &SinkError) {
        if self.outage.failed(DATABASE) {
            tracing::warn!(%error, "the database does not take the audit log; retrying");
        }
        self.next = Some(Instant::now() + EVERY * 2_u32.pow(self.refusals.min(LONGEST_PAUSE)));
        self.refusals += 1;
    }
}

impl NewEntries {
    fn add(&mut self, row: &AuditLogRow, is_known: bool) {
        self.seen.insert(row.id.clone());
        if is_known {
            return;
        }
        match AuditEntryRow::read(row) {
            Ok(entry) => self.rows.push(entry),
            Err(error) => {
                tracing::error!(audit.id = %row.id, %error, "an entry of the audit log is not archived");
                self.unreadable += 1;
            }
        }
    }
}
