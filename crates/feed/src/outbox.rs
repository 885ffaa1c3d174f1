//! An outbox in PostgreSQL: a table into which business transactions insert jobs. Rows are locked, loaded, and then deleted or
//! marked, in one transaction of the database, so a row is a job or still there. A notification wakes the feed at once.

use std::time::Duration;

use ringback_core::crash_point;
use ringback_postgres::Connection;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tracing::warn;

use crate::config::{Feed, Outbox};
use crate::load::{LoadError, Loaded, Loader};
use crate::metrics::{Metrics, RowResult};
use crate::pass::PassError;
use crate::row::{BadRow, Columns};
use crate::source::{Page, Postgres, SourceError, Value, query, wait};

/// How many rows are loaded in one transaction.
const BATCH: i64 = 500;
/// The pause before rows that have to wait are looked at again.
const PAUSE: Duration = Duration::from_millis(500);

impl Outbox {
    /// The condition of rows that wait.
    const fn waits(&self) -> &'static str {
        if self.marks { "error is null and loaded_at is null" } else { "error is null" }
    }

    /// The first rows that wait, without taking them out.
    ///
    /// # Errors
    /// If the database cannot be reached, or refuses the query.
    pub(crate) async fn first(&self, database: &mut Postgres, rows: i64) -> Result<Page, SourceError> {
        let (table, waits) = (&self.table, self.waits());
        let sql = format!("select * from {table} where {waits} order by seq limit $1");
        query(&database.connect().await?.client, &sql, &[&rows]).await
    }
}

/// An outbox that is being loaded.
pub(crate) struct OutboxFeed<'a> {
    pub(crate) feed: &'a Feed,
    pub(crate) outbox: &'a Outbox,
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) metrics: &'a Metrics,
}

/// What one transaction has done.
struct Batch {
    /// The last row; `None` if there was none.
    last: Option<i64>,
    /// Whether some rows have to wait.
    waits: bool,
}

impl OutboxFeed<'_> {
    /// Loads what waits in the table, and then what comes. Calls `progress` with true each time nothing waits, and with false
    /// when rows may wait again. Returns when something fails.
    pub(crate) async fn run(&self, database: &mut Postgres, mut progress: impl FnMut(bool)) -> PassError {
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
        progress: &mut impl FnMut(bool),
    ) -> Result<std::convert::Infallible, PassError> {
        // Before the first look, so that no row is missed.
        wait(connection.client.batch_execute(&format!("listen {}", self.outbox.channel))).await?;
        loop {
            let (mut after, mut waits) = (i64::MIN, false);
            while let Batch { last: Some(last), waits: some_wait } = self.batch(connection, after).await? {
                // Rows that have to wait do not stop those behind them.
                (after, waits) = (last, waits || some_wait);
            }
            let pause = if waits {
                PAUSE
            } else {
                progress(true);
                self.feed.every
            };
            // Without a notification the table is looked at all the same, as one may have been lost with a connection.
            timeout(pause, connection.notified()).await.ok();
            progress(false);
        }
    }

    /// Loads the rows behind `after`, as many as one transaction takes.
    async fn batch(&self, connection: &mut Connection, after: i64) -> Result<Batch, PassError> {
        let txn = wait(connection.client.transaction()).await?;
        let Outbox { table, .. } = self.outbox;
        let waits = self.outbox.waits();
        let select = format!(
            "select * from {table} where seq > $1 and {waits} order by seq limit $2 for update skip locked"
        );
        let page = query(&txn, &select, &[&after, &BATCH]).await?;
        let columns = Columns::of_outbox(&page).map_err(PassError::Query)?;
        let place = page.columns.iter().position(|name| name == "seq").unwrap_or_default();
        let seq = |row: &[Value]| match row.get(place) {
            Some(Value::Int(seq)) => Ok(*seq),
            _ => Err(PassError::Query("seq must be a bigint that is not null".to_owned())),
        };
        let Some(last) = page.rows.last() else { return Ok(Batch { last: None, waits: false }) };
        let last = Some(seq(last)?);

        let (mut candidates, mut bad, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for row in &page.rows {
            match columns.candidate(&self.feed.topic, row) {
                Ok(candidate) => candidates.push((seq(row)?, candidate)),
                Err(row_is_bad) => bad.push((seq(row)?, row_is_bad)),
            }
        }
        let jobs: Vec<_> = candidates.iter().map(|(_, candidate)| candidate).collect();
        let loading = self.loader.load(&jobs).await;
        let mut waits = false;
        for ((seq, candidate), loaded) in candidates.iter().zip(loading.results) {
            let result = match loaded {
                Some(Loaded::Submitted) => RowResult::Submitted,
                Some(Loaded::Replaced) => RowResult::Replaced,
                Some(Loaded::Known) => RowResult::Unchanged,
                // The row has to stay: nothing else knows of its content.
                Some(Loaded::Kept) => {
                    let why = "another job has this id, with other content, and keeps it".to_owned();
                    bad.push((*seq, BadRow { id: candidate.id.clone(), why }));
                    continue;
                }
                Some(Loaded::Refused(why)) => {
                    bad.push((*seq, BadRow { id: candidate.id.clone(), why }));
                    continue;
                }
                Some(Loaded::InFlight | Loaded::Full(_)) | None => {
                    waits = true;
                    continue;
                }
            };
            self.metrics.rows(&self.feed.name, result, 1);
            done.push(*seq);
        }
        crash_point!("feed.before_delete");
        self.finish(&txn, &done, &bad).await?;
        wait(txn.commit()).await?;
        match loading.error {
            None | Some(LoadError::Quota(_)) => Ok(Batch { last, waits }),
            Some(error) => Err(error.into()),
        }
    }

    /// Deletes or marks the rows that were loaded, and notes in the others why they are no jobs.
    async fn finish(
        &self,
        txn: &tokio_postgres::Transaction<'_>,
        done: &[i64],
        bad: &[(i64, BadRow)],
    ) -> Result<(), PassError> {
        let table = &self.outbox.table;
        if !done.is_empty() {
            let sql = if self.outbox.marks {
                format!("update {table} set loaded_at = now() where seq = any($1)")
            } else {
                format!("delete from {table} where seq = any($1)")
            };
            wait(txn.execute(&sql, &[&done])).await?;
        }
        for (seq, BadRow { id, why }) in bad {
            self.metrics.rows(&self.feed.name, RowResult::Refused, 1);
            warn!(feed = %self.feed.name, row.id = id, row.seq = seq, why, "a row is no job and stays in the outbox");
            let sql = format!("update {table} set error = $2 where seq = $1");
            let arguments: [&(dyn ToSql + Sync); 2] = [seq, why];
            wait(txn.execute(&sql, &arguments)).await?;
        }
        Ok(())
    }
}
