//! An outbox in PostgreSQL: a table into which business transactions insert jobs. Rows are locked, loaded, and then
//! deleted or marked, in one transaction of the database, so a row is a job or still there. A notification wakes the
//! feed at once.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use ringback_core::crash_point;
use ringback_core::limits::truncated;
use ringback_postgres::Connection;
use tokio::time::{sleep, timeout};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use tracing::warn;

use crate::config::{Feed, Outbox};
use crate::load::{LoadError, Loader, SubmittedRow};
use crate::metrics::{Metrics, RowResult};
use crate::pass::PassError;
use crate::row::{BadRow, Candidate, Columns, id_hash};
use crate::source::{Page, Postgres, SourceError, Value, query, wait};

/// Why a row whose id is taken stays.
const TAKEN: &str = "another job has this id, with other content, and keeps it";
/// The longest reason that is written into a row, in bytes.
const MAX_REASON: usize = 500;
/// How many rows are loaded in one transaction at most.
const BATCH: i64 = 500;
/// The pause before rows that have to wait are tried again.
const PAUSE: Duration = Duration::from_millis(500);

impl Outbox {
    /// The SQL condition of rows that wait.
    const fn waits(&self) -> &'static str {
        if self.marks { "error is null and loaded_at is null" } else { "error is null" }
    }

    /// The statement that reads and locks the rows that wait behind a place. Rows that others have locked are skipped.
    fn select(&self) -> String {
        let (table, waits) = (&self.table, self.waits());
        format!(
            "select * from {table} where seq > $1 and {waits} order by seq limit $2 for update skip locked"
        )
    }

    /// The statement that deletes or marks the rows that were loaded.
    fn finish(&self) -> String {
        let table = &self.table;
        if self.marks {
            format!("update {table} set loaded_at = now() where seq = any($1)")
        } else {
            format!("delete from {table} where seq = any($1)")
        }
    }

    /// The statement that subscribes to the notifications of inserts.
    fn listen(&self) -> String {
        format!("listen {}", self.channel)
    }

    /// The statement that writes into a row why it is not a job.
    fn note(&self) -> String {
        format!("update {} set error = $2 where seq = $1", self.table)
    }

    /// Reads the first rows that wait, and changes nothing. Also tries all other statements of a feed and rolls them
    /// back.
    ///
    /// # Errors
    /// If the database cannot be reached, or refuses one of the statements.
    pub(crate) async fn first(&self, database: &mut Postgres, rows: i64) -> Result<Page, SourceError> {
        let connection = database.connect().await?;
        wait(connection.client.batch_execute(&self.listen())).await?;
        let txn = wait(connection.client.transaction()).await?;
        let page = query(&txn, &self.select(), &[&i64::MIN, &rows]).await?;
        let (none, error): (&[i64], Option<String>) = (&[], None);
        wait(txn.execute(&self.finish(), &[&none])).await?;
        // What this changes is rolled back.
        wait(txn.execute(&self.note(), &[&i64::MIN, &error])).await?;
        wait(txn.rollback()).await?;
        Ok(page)
    }
}

/// An outbox that is being loaded.
pub(crate) struct OutboxFeed<'a> {
    pub(crate) feed: &'a Feed,
    pub(crate) outbox: &'a Outbox,
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) metrics: &'a Metrics,
}

/// One scan over all rows that wait.
#[derive(Default)]
struct Scan {
    /// The last row that was read.
    after: Option<i64>,
    /// Why some rows have to wait.
    why: Option<String>,
    /// The ids of these rows. Later rows with the same id wait too, or they would be changed back.
    waiting: HashSet<u128>,
}

impl Scan {
    fn wait_for(&mut self, row: &Candidate, why: &str) {
        self.why.get_or_insert_with(|| why.to_owned());
        self.waiting.insert(id_hash(&row.id));
    }
}

/// How far the loading of an outbox has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Rows may wait.
    Begins,
    /// Some rows have to wait. Why.
    Waits(String),
    /// Nothing waits.
    CaughtUp,
}

impl OutboxFeed<'_> {
    /// Loads the rows that wait in the table, and then those that come, and reports its progress. Returns the first
    /// error.
    pub(crate) async fn run(&self, database: &mut Postgres, mut progress: impl FnMut(Progress)) -> PassError {
        let connection = match database.connect().await {
            Ok(connection) => connection,
            Err(error) => return error.into(),
        };
        match self.listen(connection, &mut progress).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn listen(
        &self,
        connection: &mut Connection,
        progress: &mut impl FnMut(Progress),
    ) -> Result<Infallible, PassError> {
        // Before the first look, so that no row is missed.
        wait(connection.client.batch_execute(&self.outbox.listen())).await?;
        loop {
            progress(Progress::Begins);
            let mut scan = Scan::default();
            while self.batch(connection, &mut scan).await? {}
            match scan.why {
                Some(why) => {
                    progress(Progress::Waits(why));
                    sleep(PAUSE).await;
                }
                None => {
                    progress(Progress::CaughtUp);
                    // Also without a notification, as one may have been lost with a connection.
                    timeout(self.feed.every, connection.notified()).await.ok();
                }
            }
        }
    }

    /// Loads up to 500 of the next rows in one transaction. Returns whether there may be more; false also if the quota
    /// is used up. If the store fails, rows that were loaded before are committed.
    async fn batch(&self, connection: &mut Connection, scan: &mut Scan) -> Result<bool, PassError> {
        let mut txn = wait(connection.client.transaction()).await?;
        let after = scan.after.unwrap_or(i64::MIN);
        let page = query(&txn, &self.outbox.select(), &[&after, &BATCH]).await?;
        let columns = Columns::of_outbox(&page).map_err(PassError::Query)?;
        let place = page.columns.iter().position(|name| name == "seq").unwrap_or_default();
        let seq = |row: &[Value]| match row.get(place) {
            Some(Value::Int(seq)) => Ok(*seq),
            _ => Err(PassError::Query("seq must be a bigint that is not null".to_owned())),
        };
        let Some(last) = page.rows.last() else { return Ok(false) };
        scan.after = Some(seq(last)?);

        let (mut candidates, mut bad, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for row in &page.rows {
            match columns.candidate(&self.feed.topic, row) {
                Ok(candidate) if scan.waiting.contains(&id_hash(&candidate.id)) => self.postponed(),
                Ok(candidate) => candidates.push((seq(row)?, candidate)),
                Err(row_is_bad) => bad.push((seq(row)?, row_is_bad)),
            }
        }
        let jobs: Vec<_> = candidates.iter().map(|(_, candidate)| candidate).collect();
        let loading = self.loader.load(&jobs).await;
        for ((seq, candidate), loaded) in candidates.iter().zip(loading.results) {
            let result = match loaded {
                Some(SubmittedRow::Submitted) => RowResult::Submitted,
                Some(SubmittedRow::Replaced) => RowResult::Replaced,
                Some(SubmittedRow::Known) => RowResult::Unchanged,
                // The row has to stay: nothing else knows of its content.
                Some(SubmittedRow::Kept) => {
                    bad.push((*seq, BadRow { id: candidate.id.clone(), why: TAKEN.to_owned() }));
                    continue;
                }
                Some(SubmittedRow::Refused(why)) => {
                    bad.push((*seq, BadRow { id: candidate.id.clone(), why }));
                    continue;
                }
                Some(SubmittedRow::InFlight) => {
                    self.postponed();
                    scan.wait_for(candidate, "jobs with the ids of rows are being delivered");
                    continue;
                }
                Some(SubmittedRow::Full(why)) => {
                    self.postponed();
                    scan.wait_for(candidate, &why);
                    continue;
                }
                None => continue,
            };
            self.metrics.rows(&self.feed.name, result, 1);
            done.push(*seq);
        }
        crash_point!("feed.before_delete");
        self.finish(&mut txn, &done, &bad).await?;
        wait(txn.commit()).await?;
        match loading.error {
            None => Ok(true),
            // Nothing behind these rows would be let through.
            Some(LoadError::Quota(why)) => {
                scan.why = Some(why);
                Ok(false)
            }
            Some(error) => Err(error.into()),
        }
    }

    fn postponed(&self) {
        self.metrics.rows(&self.feed.name, RowResult::Postponed, 1);
    }

    /// Deletes or marks the rows `done`, and writes into the rows `bad` why they are not jobs, which it also logs and
    /// counts. If a row does not accept its reason, that is only logged.
    async fn finish(
        &self,
        txn: &mut Transaction<'_>,
        done: &[i64],
        bad: &[(i64, BadRow)],
    ) -> Result<(), PassError> {
        if !done.is_empty() {
            wait(txn.execute(&self.outbox.finish(), &[&done])).await?;
        }
        for (seq, BadRow { id, why }) in bad {
            self.metrics.rows(&self.feed.name, RowResult::Refused, 1);
            warn!(feed = %self.feed.name, row.id = id, row.seq = seq, why, "a row is not a job and stays in the outbox");
            let why = storable(why);
            let arguments: [&(dyn ToSql + Sync); 2] = [seq, &why];
            // So that a reason that the table does not take is not the end of the others.
            let savepoint = wait(txn.transaction()).await?;
            match wait(savepoint.execute(&self.outbox.note(), &arguments)).await {
                Ok(_) => wait(savepoint.commit()).await?,
                Err(error) => {
                    wait(savepoint.rollback()).await?;
                    warn!(feed = %self.feed.name, row.seq = seq, %error, "the reason cannot be noted in the row");
                }
            }
        }
        Ok(())
    }
}

/// A reason without control characters, cut to [`MAX_REASON`].
fn storable(why: &str) -> String {
    truncated(&why.replace(char::is_control, " "), MAX_REASON).to_owned()
}
