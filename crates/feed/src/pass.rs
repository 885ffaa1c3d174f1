//! A pass over the rows of a query: reads those that are due soon, page by page, loads what is new or changed, cancels what
//! went, and then moves the position of the feed.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::clock::{Clock, Timestamp, millis};
use ringback_core::contract::{FeedPosition, StoredFeed};
use ringback_core::crash_point;
use ringback_core::duration::format_duration;
use ringback_core::job::JobId;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::{Feed, READ_BACK, Window};
use crate::lease::{Lease, Lost};
use crate::load::{LoadError, Loaded, Loader};
use crate::metrics::{Metrics, RowResult};
use crate::query::Query;
use crate::row::{BadRow, Candidate, Columns, content_hash, id_hash};
use crate::seen::Seen;
use crate::source::{Page, PageAsk, Source, SourceError, Value};

/// The most rows of a page.
const MAX_PAGE: usize = 1_000;
/// The rows of the first page, before it is known how large rows are.
const FIRST_PAGE: usize = 100;
/// About how many bytes a page has at most.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// The pause before rows that could not be loaded are tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a pass could not be completed. Another one is made later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Query(String),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Lease(#[from] Lost),
    #[error("some rows wait, and all others are loaded: {0}")]
    Full(String),
    #[error(
        "rows due since {from} would be read again, and jobs that ended are known only for {known}: set RINGBACK_KEEP_DONE of all processes longer by more than {missing} for the next time, and choose with `ringback-feed seek` from which due time the feed goes on"
    )]
    TooLate { from: Timestamp, known: String, missing: String },
}

/// What a pass needs.
pub(crate) struct Pass<'a> {
    pub(crate) feed: &'a Feed,
    pub(crate) window: &'a Window,
    pub(crate) source: &'a mut Source,
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) lease: &'a Lease,
    pub(crate) seen: &'a mut Seen,
    pub(crate) metrics: &'a Metrics,
    pub(crate) clock: &'a Arc<dyn Clock>,
    /// For how long jobs that ended are known.
    pub(crate) keep_done: Duration,
    /// Why some rows could not be loaded, for which another pass reads them from the same time on.
    pub(crate) full: Option<String>,
}

impl Pass<'_> {
    /// Makes a pass. `stored` is the feed as this process knows it. Returns it as it is afterwards.
    ///
    /// # Errors
    /// If the pass is not complete. Then the position stays.
    pub(crate) async fn run(mut self, stored: StoredFeed) -> Result<StoredFeed, PassError> {
        let begun = self.clock.now();
        let (from, to) = (self.from(stored.position, begun)?, begun.plus(self.window.ahead));
        self.load_rows(from, to).await?;
        if let Some(gone) = &self.window.gone {
            self.cancel_gone(gone, from, to).await?;
        }
        if let Some(why) = self.full {
            return Err(PassError::Full(why));
        }
        crash_point!("feed.before_step");
        let next = FeedPosition { at: begun, is_set: false };
        let stored = self.lease.renew(Some((stored.position, next))).await?;
        self.seen.end_pass();
        Ok(stored)
    }

    /// From which due time rows are read, unless jobs that have ended since may be forgotten. Where an operator has set that,
    /// it is as it was decided.
    fn from(&self, position: Option<FeedPosition>, now: Timestamp) -> Result<Timestamp, PassError> {
        let from = first_due(position, now);
        // A job may have ended as soon as it was loaded, which is the window before it was due.
        let (read_again, known) = (now.since(from) + self.window.ahead, self.keep_done);
        match position {
            Some(FeedPosition { is_set: false, .. }) if read_again >= known => {
                let [missing, known] = [read_again - known, known].map(format_duration);
                Err(PassError::TooLate { from, known, missing })
            }
            _ => Ok(from),
        }
    }

    async fn load_rows(&mut self, from: Timestamp, to: Timestamp) -> Result<(), PassError> {
        let mut pages = Pages::new(&self.window.query, from, to);
        while let Some(page) = pages.next(self.source).await? {
            let columns = Columns::of_jobs(&page).map_err(PassError::Query)?;
            let mut rows = Vec::with_capacity(page.rows.len());
            for row in &page.rows {
                match columns.candidate(&self.feed.topic, row) {
                    Ok(candidate) => rows.push(candidate),
                    Err(bad) => self.refuse(&bad, 0),
                }
            }
            pages.turn(&columns, &page)?;
            self.load(rows).await?;
            crash_point!("feed.after_page");
        }
        Ok(())
    }

    /// Loads the rows that are not known, and waits until the store and the quota take them.
    async fn load(&mut self, rows: Vec<Candidate>) -> Result<(), PassError> {
        let (seen, mut unchanged) = (&mut self.seen.loaded, 0);
        let hashed = rows.into_iter().map(|row| (id_hash(&row.id), content_hash(&row.json), row));
        let mut left: Vec<_> = hashed
            .filter(|(id, content, _)| {
                let is_known = seen.knows(*id, *content);
                unchanged += u64::from(is_known);
                !is_known
            })
            .collect();
        self.metrics.rows(&self.feed.name, RowResult::Unchanged, unchanged);
        let mut has_waited = false;
        while !left.is_empty() {
            let rows: Vec<_> = left.iter().map(|(_, _, row)| row).collect();
            let loading = self.loader.load(&rows).await;
            let (mut later, mut results) = (Vec::new(), loading.results.into_iter());
            for (id, content, row) in left {
                match results.next().flatten() {
                    Some(loaded) => self.note(id, content, &row, loaded),
                    None => later.push((id, content, row)),
                }
            }
            left = later;
            match loading.error {
                None => {}
                Some(LoadError::Quota(why)) => {
                    if !std::mem::replace(&mut has_waited, true) {
                        info!(feed = %self.feed.name, rows = left.len(), why, "rows wait for the quota of the tenant");
                    }
                    sleep(PAUSE).await;
                }
                Some(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn note(&mut self, id: u128, content: u64, row: &Candidate, loaded: Loaded) {
        let result = match loaded {
            Loaded::Submitted => RowResult::Submitted,
            Loaded::Replaced => RowResult::Replaced,
            Loaded::Known => RowResult::Unchanged,
            Loaded::Kept => RowResult::Kept,
            Loaded::InFlight => return self.metrics.rows(&self.feed.name, RowResult::Postponed, 1),
            Loaded::Full(why) => {
                self.full = Some(why);
                return self.metrics.rows(&self.feed.name, RowResult::Postponed, 1);
            }
            Loaded::Refused(why) => return self.refuse(&BadRow { id: row.id.clone(), why }, content),
        };
        self.metrics.rows(&self.feed.name, result, 1);
        self.seen.loaded.note(id, content);
        self.seen.refused.forget(id);
        // Once it goes again its job is cancelled again.
        self.seen.gone.forget(id);
    }

    /// Counts a row that is no job, and logs it if that is new.
    fn refuse(&mut self, bad: &BadRow, content: u64) {
        self.metrics.rows(&self.feed.name, RowResult::Refused, 1);
        let (id, content) = (id_hash(&bad.id), content ^ content_hash(bad.why.as_bytes()));
        if !self.seen.refused.knows(id, content) {
            self.seen.refused.note(id, content);
            warn!(feed = %self.feed.name, row.id = bad.id, why = bad.why, "a row is no job and is left out");
        }
    }

    async fn cancel_gone(&mut self, gone: &Query, from: Timestamp, to: Timestamp) -> Result<(), PassError> {
        let mut pages = Pages::new(gone, from, to);
        while let Some(page) = pages.next(self.source).await? {
            let columns = Columns::of_ids(&page).map_err(PassError::Query)?;
            let mut ids = Vec::new();
            for row in &page.rows {
                let id = columns.id_text(row).and_then(|id| match id.parse::<JobId>() {
                    Ok(parsed) => Ok(parsed),
                    Err(allowed) => Err(BadRow { why: format!("id must be {allowed}"), id }),
                });
                match id {
                    Ok(id) if self.seen.gone.knows(id_hash(id.as_str()), 0) => {}
                    Ok(id) => ids.push(id),
                    Err(bad) => self.refuse(&bad, 0),
                }
            }
            pages.turn(&columns, &page)?;
            let cancelled = self.loader.cancel(&ids).await.map_err(LoadError::from)?;
            self.metrics.rows(&self.feed.name, RowResult::Cancelled, cancelled);
            for id in ids {
                self.seen.gone.note(id_hash(id.as_str()), 0);
                self.seen.loaded.forget(id_hash(id.as_str()));
            }
        }
        Ok(())
    }
}

/// The due time from which the rows of a feed with a position are read.
pub(crate) fn first_due(position: Option<FeedPosition>, now: Timestamp) -> Timestamp {
    let back = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_sub(millis(READ_BACK)));
    match position {
        None => back(now),
        Some(FeedPosition { at, is_set: true }) => at,
        Some(FeedPosition { at, is_set: false }) => back(at),
    }
}

/// The pages of a query.
struct Pages<'a> {
    query: &'a Query,
    ask: PageAsk,
}

impl<'a> Pages<'a> {
    fn new(query: &'a Query, from: Timestamp, to: Timestamp) -> Self {
        Self { query, ask: PageAsk { from, to, after: None, limit: FIRST_PAGE } }
    }

    /// Reads the next page; `None` after the last.
    async fn next(&mut self, source: &mut Source) -> Result<Option<Page>, PassError> {
        let page = source.page(self.query, &self.ask).await?;
        if page.rows.len() > self.ask.limit {
            return Err(PassError::Query(format!(
                "the query yields {} rows, and :limit is {}: limit it by that",
                page.rows.len(),
                self.ask.limit
            )));
        }
        Ok(Some(page).filter(|page| !page.rows.is_empty()))
    }

    /// Goes behind a page, whose rows say how many the next one may have.
    fn turn(&mut self, columns: &Columns, page: &Page) -> Result<(), PassError> {
        let Some(last) = page.rows.last() else { return Ok(()) };
        let last = columns.id(last);
        if self.ask.after.as_ref() == Some(last) || matches!(last, Value::Null | Value::Unreadable(_)) {
            return Err(PassError::Query(
                "the query does not go on behind :after: it needs `id > :after`, `order by id`, and an id in every row"
                    .to_owned(),
            ));
        }
        let ids = page.rows.iter().filter_map(|row| match columns.id(row) {
            Value::Int(id) => Some(*id),
            _ => None,
        });
        // Texts have the order of the database, which is not known here.
        if !ids.is_sorted_by(|a, b| a < b) {
            let why = "the query yields ids that do not ascend: it needs `order by id`, and each id once";
            return Err(PassError::Query(why.to_owned()));
        }
        let bytes: usize = page.rows.iter().flatten().map(Value::size).sum();
        self.ask.limit = (PAGE_BYTES / (bytes / page.rows.len()).max(1)).clamp(1, MAX_PAGE);
        self.ask.after = Some(last.clone());
        Ok(())
    }
}
