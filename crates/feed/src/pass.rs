//! A pass over the rows of a query: reads those that are due soon, page by page, loads new and changed ones, cancels
//! the jobs of those that went, and then moves the position of the feed.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::clock::{Clock, Timestamp};
use ringback_core::crash_point;
use ringback_core::duration::format_duration;
use ringback_core::job::JobId;
use ringback_core::store_types::{FeedPosition, StoredFeed};
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::config::{Feed, READ_BACK, Window};
use crate::lease::{Lease, Lost};
use crate::load::{LoadError, Loader, SubmittedRow};
use crate::metrics::{Metrics, RowResult};
use crate::query::Query;
use crate::row::{BadRow, Candidate, Columns, content_hash, id_hash};
use crate::seen::SeenRows;
use crate::source::{PAGE_BYTES, Page, PageRequest, Source, SourceError, Value};

/// The most rows of a page.
const MAX_PAGE: usize = 1_000;
/// The rows of the first page, before it is known how large rows are.
const FIRST_PAGE: usize = 100;
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
    #[error(
        "rows due since {from} would be read again, and jobs that ended are known only for {known}: set RINGBACK_KEEP_DONE of all processes longer by more than {missing} for the next time, and choose with `ringback-feed seek` from which due time the feed goes on"
    )]
    TooLate { from: Timestamp, known: String, missing: String },
}

/// A pass: its feed, and what it works with.
pub(crate) struct Pass<'a> {
    pub(crate) feed: &'a Feed,
    pub(crate) window: &'a Window,
    pub(crate) source: &'a mut Source,
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) lease: &'a Lease,
    pub(crate) seen: &'a mut SeenRows,
    pub(crate) metrics: &'a Metrics,
    pub(crate) clock: &'a Arc<dyn Clock>,
    /// For how long jobs that ended are known.
    pub(crate) keep_done: Duration,
    /// Until when rows wait for the quota of the tenant before the pass goes on without them.
    pub(crate) quota_deadline: Instant,
    /// The rows that a later pass has to load.
    pub(crate) waiting: Option<Waiting>,
}

/// Rows that the store or the quota does not take yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) why: String,
    /// When the first of them is due.
    due: Timestamp,
}

/// The result of a complete pass.
pub(crate) struct Passed {
    pub(crate) stored: StoredFeed,
    /// From when on rows may not be loaded.
    pub(crate) since: Timestamp,
    pub(crate) waiting: Option<Waiting>,
}

impl Pass<'_> {
    /// Makes a pass, and moves the position of the feed to its beginning, or further back for rows that have to wait.
    /// `stored` is the feed as this process knows it.
    ///
    /// # Errors
    /// If the pass is not complete. Then the position stays.
    pub(crate) async fn run(mut self, stored: StoredFeed) -> Result<Passed, PassError> {
        let begun = self.clock.now();
        let (from, to) = (self.from(stored.position, begun)?, begun.plus(self.window.ahead));
        self.load_rows(from, to).await?;
        if let Some(gone) = &self.window.gone {
            self.cancel_gone(gone, first_change(stored.position, begun), to).await?;
        }
        crash_point!("feed.before_step");
        // Rows that wait are read again, also once they are long due.
        let read_back = self.waiting.as_ref().map(|waiting| waiting.due.plus(READ_BACK));
        let since = read_back.into_iter().fold(begun, Timestamp::min);
        let next = FeedPosition { at: since, passed: None };
        let stored = self.lease.renew(Some((stored.position, next))).await?;
        self.seen.end_pass();
        Ok(Passed { stored, since, waiting: self.waiting })
    }

    /// The due time from which rows are read. [`PassError::TooLate`] if jobs that have ended since then may be
    /// forgotten, by this process and by the store, unless an operator has set the position.
    fn from(&self, position: Option<FeedPosition>, now: Timestamp) -> Result<Timestamp, PassError> {
        let from = first_due(position, now);
        // A job may have ended as soon as it was loaded, which is the window before it was due.
        let (read_again, known) = (now.since(from) + self.window.ahead, self.keep_done);
        let is_known = self.seen.is_complete || read_again < known;
        match position {
            Some(FeedPosition { passed: None, .. }) if !is_known => {
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

    /// Loads the rows that are not known in the store, and waits until [`Self::quota_deadline`] if the quota is used
    /// up. Rows that it still does not allow then are left to a later pass.
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
                Some(LoadError::Quota(_)) if Instant::now() < self.quota_deadline => sleep(PAUSE).await,
                Some(LoadError::Quota(why)) => {
                    left.iter().for_each(|(_, _, row)| self.wait_for(row, &why));
                    return Ok(());
                }
                Some(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn note(&mut self, id: u128, content: u64, row: &Candidate, loaded: SubmittedRow) {
        let result = match loaded {
            SubmittedRow::Submitted => RowResult::Submitted,
            SubmittedRow::Replaced => RowResult::Replaced,
            SubmittedRow::Known => RowResult::Unchanged,
            SubmittedRow::Kept => RowResult::Kept,
            SubmittedRow::InFlight => return self.metrics.rows(&self.feed.name, RowResult::Postponed, 1),
            SubmittedRow::Full(why) => return self.wait_for(row, &why),
            SubmittedRow::Refused(why) => return self.refuse(&BadRow { id: row.id.clone(), why }, content),
        };
        self.metrics.rows(&self.feed.name, result, 1);
        self.seen.loaded.note(id, content);
        // Once it goes again its job is cancelled again.
        self.seen.gone.forget(id);
    }

    /// Counts a row as postponed, and records that a later pass has to load it.
    fn wait_for(&mut self, row: &Candidate, why: &str) {
        self.metrics.rows(&self.feed.name, RowResult::Postponed, 1);
        let due = row.due.unwrap_or_else(|| self.clock.now());
        let waiting = self.waiting.get_or_insert_with(|| Waiting { why: why.to_owned(), due });
        waiting.due = waiting.due.min(due);
    }

    /// Counts a row that is not a job, and logs it if that is new.
    fn refuse(&mut self, bad: &BadRow, content: u64) {
        self.metrics.rows(&self.feed.name, RowResult::Refused, 1);
        let why = content_hash(bad.why.as_bytes());
        let id = id_hash(&bad.id) ^ u128::from(why);
        if !self.seen.refused.knows(id, content) {
            self.seen.refused.note(id, content);
            warn!(feed = %self.feed.name, row.id = bad.id, why = bad.why, "a row is not a job and is left out");
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

/// The due time from which rows are read: the one that an operator has set, else 15 min before the position, or before
/// now without a position.
pub(crate) fn first_due(position: Option<FeedPosition>, now: Timestamp) -> Timestamp {
    let back = |at: Timestamp| at.minus(READ_BACK);
    match position {
        None => back(now),
        Some(FeedPosition { at, passed: Some(_) }) => at,
        Some(FeedPosition { at, passed: None }) => back(at),
    }
}

/// The time from which changes are read: 15 min before the last complete pass, or before now without one, also where an
/// operator has set the due time.
pub(crate) fn first_change(position: Option<FeedPosition>, now: Timestamp) -> Timestamp {
    let passed = position.map(|position| position.passed.unwrap_or(position.at));
    first_due(passed.map(|at| FeedPosition { at, passed: None }), now)
}

/// The pages of a query.
pub(crate) struct Pages<'a> {
    pub(crate) query: &'a Query,
    pub(crate) ask: PageRequest,
}

impl<'a> Pages<'a> {
    fn new(query: &'a Query, from: Timestamp, to: Timestamp) -> Self {
        Self { query, ask: PageRequest { from, to, after: None, limit: FIRST_PAGE } }
    }

    /// Reads the next page; `None` after the last. Fails if the source does, or the query ignores `:limit`.
    pub(crate) async fn next(&mut self, source: &mut Source) -> Result<Option<Page>, PassError> {
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

    /// Moves behind a page, and sets the limit of the next one by the size of its rows. Fails if the query ignores
    /// `:after`, or its ids are missing or do not ascend.
    pub(crate) fn turn(&mut self, columns: &Columns, page: &Page) -> Result<(), PassError> {
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
