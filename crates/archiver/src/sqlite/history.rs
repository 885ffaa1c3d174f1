//! Pages of ends from a SQLite file, and erasures.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringback_archive::EndRow;
use ringback_archive::erasure::Erasure;
use ringback_archive::history::{History, HistoryFilter, LastOf, Order, PageAsk, Place, QueryError};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, InterruptHandle, OpenFlags, Row, params_from_iter};
use tokio::time::timeout;

use super::{MIGRATIONS, erase};

/// How long a query may take.
const QUERY: Duration = Duration::from_secs(4);
/// How long a writer of the file is waited for.
const BUSY: Duration = Duration::from_secs(2);

/// The history in a SQLite file.
pub(crate) struct SqliteHistory {
    file: PathBuf,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl SqliteHistory {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, connection: Arc::default() }
    }

    /// Runs `work` on a thread that may block, and ends it after its time. After an error the file is opened again.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Connection>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, QueryError> {
        let (file, slot) = (self.file.clone(), Arc::clone(&self.connection));
        let handle = Arc::new(Mutex::new(None::<InterruptHandle>));
        let shared = Arc::clone(&handle);
        let mut done = tokio::task::spawn_blocking(move || {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_none() {
                *slot = Some(open(&file)?);
            }
            let interrupt = slot.as_ref().map(Connection::get_interrupt_handle);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = interrupt;
            let done = work(&mut slot);
            if done.is_err() {
                *slot = None;
            }
            done.map_err(|error| failed(&error))
        });
        let done = match timeout(QUERY, &mut done).await {
            Ok(done) => done,
            Err(_elapsed) => {
                if let Some(handle) = &*handle.lock().unwrap_or_else(PoisonError::into_inner) {
                    handle.interrupt();
                }
                done.await
            }
        };
        let done = done.unwrap_or_else(|error| Err(QueryError::Unavailable(error.to_string())));
        done.map_err(|error| match error {
            QueryError::Unavailable(why) => {
                QueryError::Unavailable(format!("{}: {why}", self.file.display()))
            }
            QueryError::Slow => QueryError::Slow,
        })
    }
}

fn failed(error: &rusqlite::Error) -> QueryError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy) => QueryError::Slow,
        _ => QueryError::Unavailable(error.to_string()),
    }
}

/// Opens the file, if an archiver has made it and has brought its schema up to date.
fn open(file: &PathBuf) -> Result<Connection, QueryError> {
    let flags = OpenFlags::default() & !OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(file, flags).map_err(|error| failed(&error))?;
    connection.busy_timeout(BUSY).map_err(|error| failed(&error))?;
    // Erased content is overwritten, and does not stay in free pages.
    connection.pragma_update(None, "secure_delete", "on").map_err(|error| failed(&error))?;
    let version = "select coalesce(max(version), 0) from ringback_migrations";
    let version: i64 = connection.query_row(version, [], |row| row.get(0)).map_err(|error| failed(&error))?;
    if version == MIGRATIONS.len() as i64 {
        return Ok(connection);
    }
    Err(QueryError::Unavailable(format!(
        "it has version {version} of the schema, and this version of Ringback needs {}: an archiver of the same version brings it there",
        MIGRATIONS.len()
    )))
}

impl History for SqliteHistory {
    async fn rows(&mut self, ask: &PageAsk) -> Result<Vec<EndRow>, QueryError> {
        let ask = ask.clone();
        self.blocking(move |connection| {
            let connection = connection.as_ref().ok_or(rusqlite::Error::InvalidQuery)?;
            let Statement { text, arguments } = select(&ask);
            let mut statement = connection.prepare(&text)?;
            let rows = statement.query_map(params_from_iter(arguments), |row| read(row, &ask))?;
            rows.collect()
        })
        .await
    }

    async fn erase(&mut self, erasure: &Erasure) -> Result<u64, QueryError> {
        let erasure = erasure.clone();
        self.blocking(move |connection| erase::erase(connection, &erasure)).await
    }
}

/// A statement and its arguments.
#[derive(Default)]
struct Statement {
    text: String,
    arguments: Vec<Value>,
}

impl Statement {
    /// Adds an argument, and returns its name in the text.
    fn argument(&mut self, value: impl Into<Value>) -> String {
        self.arguments.push(value.into());
        format!("?{}", self.arguments.len())
    }

    /// The conditions of a filter on the rows of a table with this name.
    fn filter(&mut self, filter: &HistoryFilter, of: &str) -> String {
        let tenant = self.argument(filter.tenant.clone());
        // SQLite has no statistics, and would take the indexes by tenant and time where others lead to few rows. With a plus it
        // does not.
        let is_one = filter.id.is_some() || filter.tag.is_some();
        let is_few = filter.topics.is_empty() && (filter.reason.is_some() || filter.host.is_some());
        let plus = |is_wanted: bool| if is_wanted { "+" } else { "" };
        let (of_tenant, of_topic) = (plus(is_one || is_few), plus(is_one));
        let mut text = format!("{of_tenant}{of}.tenant = {tenant}");
        let mut and = |condition: String| {
            let _ = write!(text, " and {condition}");
        };
        if !filter.topics.is_empty() {
            let topics: Vec<_> = filter.topics.iter().map(|topic| self.argument(topic.clone())).collect();
            and(format!("{of_topic}{of}.topic in ({})", topics.join(", ")));
        }
        for (column, value) in
            [("id", &filter.id), ("state", &filter.state), ("reason", &filter.reason), ("host", &filter.host)]
        {
            if let Some(value) = value {
                and(format!("{of}.{column} = {}", self.argument(value.clone())));
            }
        }
        if let Some(tag) = &filter.tag {
            let tag = self.argument(tag.clone());
            and(format!(
                "({of}.topic, {of}.id, {of}.life, {of}.attempts, {of}.state, {of}.finished_at) in \
                (select topic, id, life, attempts, state, finished_at from ringback_tags where tenant = {tenant} and tag = {tag})"
            ));
        }
        if let Some(after) = filter.after {
            and(format!("{of}.finished_at >= {}", self.argument(after)));
        }
        if let Some(before) = filter.before {
            and(format!("{of}.finished_at < {}", self.argument(before)));
        }
        text
    }

    /// The condition that no later end of the same life, or of the same id, matches the filter.
    fn is_last(&mut self, of: LastOf, filter: &HistoryFilter) -> String {
        let filter = self.filter(filter, "later");
        let life = match of {
            LastOf::Life => " and later.life = m.life",
            LastOf::Id => "",
        };
        let rank = |of: &str| {
            ["life", "finished_at", "attempts", "state"].map(|column| format!("{of}.{column}")).join(", ")
        };
        format!(
            "not exists (select 1 from ringback_ends later where later.topic = m.topic and later.id = m.id{life} \
            and ({}) > ({}) and {filter})",
            rank("later"),
            rank("m")
        )
    }

    /// The condition of ends behind a place. The first part leads to the index.
    fn behind(
        &mut self,
        Place { finished_at, topic, id, life, attempts, state }: &Place,
        than: char,
    ) -> String {
        let time = self.argument(*finished_at);
        let parts = [
            time.clone(),
            self.argument(topic.clone()),
            self.argument(id.clone()),
            self.argument(*life),
            self.argument(i64::from(*attempts)),
            self.argument(state.clone()),
        ];
        format!(
            "m.finished_at {than}= {time} and (m.finished_at, m.topic, m.id, m.life, m.attempts, m.state) {than} ({})",
            parts.join(", ")
        )
    }
}

fn select(ask: &PageAsk) -> Statement {
    let mut statement = Statement::default();
    let mut condition = statement.filter(&ask.filter, "m");
    if let Some(last_of) = ask.last_of {
        condition = format!("{condition} and {}", statement.is_last(last_of, &ask.filter));
    }
    let (than, direction) = match ask.order {
        Order::Newest => ('<', " desc"),
        Order::Oldest => ('>', ""),
    };
    if let Some(place) = &ask.after {
        condition = format!("{condition} and {}", statement.behind(place, than));
    }
    let order = |of: &str| {
        let columns = ["finished_at", "topic", "id", "life", "attempts", "state"];
        columns.map(|column| format!("{of}{column}{direction}")).join(", ")
    };
    let limit = statement.argument(i64::try_from(ask.limit).unwrap_or(i64::MAX));
    let log = if ask.with_attempts { "e.attempt_log" } else { "'[]'" };
    let (request, body, join) = if ask.with_requests {
        let keys = ["tenant", "topic", "id", "life", "attempts", "state", "finished_at"];
        let same = keys.map(|key| format!("b.{key} = e.{key}")).join(" and ");
        ("e.request", "b.content_type, b.body", format!("left join ringback_bodies b on {same}"))
    } else {
        ("null", "null, null", String::new())
    };
    statement.text = format!(
        "select e.tenant, e.topic, e.id, e.life, e.attempts, e.state, e.finished_at, e.first_due_at, e.due_at, e.failures, e.reason, \
        e.url, e.host, e.last_at, e.last_status, e.last_error, e.last_duration_ms, e.tags, e.attempts_complete, {log}, {request}, \
        {body} from (select * from ringback_ends m where {condition} order by {} limit {limit}) e {join} order by {}",
        order("m."),
        order("e."),
    );
    statement
}

fn read(row: &Row<'_>, ask: &PageAsk) -> rusqlite::Result<EndRow> {
    let tags: String = row.get(17)?;
    Ok(EndRow {
        tenant: row.get(0)?,
        topic: row.get(1)?,
        id: row.get(2)?,
        life: row.get(3)?,
        attempts: row.get(4)?,
        state: row.get(5)?,
        finished_at: row.get(6)?,
        first_due_at: row.get(7)?,
        due_at: row.get(8)?,
        failures: row.get(9)?,
        reason: row.get(10)?,
        url: row.get(11)?,
        host: row.get(12)?,
        last_at: row.get(13)?,
        last_status: row.get(14)?,
        last_error: row.get(15)?,
        last_duration_ms: row.get(16)?,
        tags: serde_json::from_str(&tags).unwrap_or_default(),
        is_attempts_complete: row.get(18)?,
        attempt_log: row.get(19)?,
        request: row.get(20)?,
        content_type: row.get(21)?,
        body: if ask.with_requests { row.get(22)? } else { None },
    })
}
