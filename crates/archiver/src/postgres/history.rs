//! Pages of ends from PostgreSQL, and erasures.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ringback_archive::EndRow;
use ringback_archive::erasure::Erasure;
use ringback_archive::history::{History, HistoryFilter, LastOf, Order, PageAsk, Place, QueryError};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::server::{Connection, Server};
use super::{Failed, erase, migrations, too_slow};

/// How long a statement may take, and how long an answer.
const STATEMENT: Duration = Duration::from_secs(4);
const ANSWER: Duration = Duration::from_secs(10);
/// How long a statement waits for a lock.
const LOCK: Duration = Duration::from_secs(2);

/// The history in a PostgreSQL database.
pub(crate) struct PostgresHistory {
    server: Server,
    connection: Option<Connection>,
}

impl PostgresHistory {
    /// Reads the URL, and does not connect.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read. The message does not have the URL.
    pub(crate) fn new(url: &str, authorities: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self { server: Server::new(url, authorities)?, connection: None })
    }

    /// The connection, which is made if there is none.
    async fn client(&mut self) -> Result<&mut Client, Failed> {
        if self.connection.as_ref().is_none_or(|connection| connection.client.is_closed()) {
            let connected = timeout(STATEMENT, self.server.connect(STATEMENT, LOCK)).await;
            let connection = connected.map_err(|_elapsed| too_slow(STATEMENT))??;
            migrations::check(&connection.client).await?;
            self.connection = Some(connection);
        }
        let connection = self.connection.as_mut().map(|connection| &mut connection.client);
        connection.ok_or_else(|| Failed::Other("it is not connected".to_owned()))
    }

    /// The result within its time. After an error the connection is made anew.
    fn done<T>(
        &mut self,
        done: Result<Result<T, Failed>, tokio::time::error::Elapsed>,
    ) -> Result<T, QueryError> {
        if matches!(done, Ok(Err(_)) | Err(_)) {
            self.connection = None;
        }
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failed::Database(error))) if is_too_slow(&error) => Err(QueryError::Slow),
            Ok(Err(error)) => Err(QueryError::Unavailable(format!("PostgreSQL: {error}"))),
            Err(_elapsed) => Err(QueryError::Slow),
        }
    }
}

/// Whether a statement was ended because it took too long, or waited for a lock for too long.
fn is_too_slow(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(code))
}

impl History for PostgresHistory {
    async fn rows(&mut self, ask: &PageAsk) -> Result<Vec<EndRow>, QueryError> {
        let rows = async {
            let client = self.client().await?;
            let Statement { text, arguments } = select(ask);
            let arguments: Vec<_> =
                arguments.iter().map(|argument| &**argument as &(dyn ToSql + Sync)).collect();
            let found = client.query(&text, &arguments).await?;
            found.iter().map(|row| read(row, ask)).collect::<Result<Vec<_>, _>>().map_err(Failed::from)
        };
        let rows = timeout(ANSWER, rows).await;
        self.done(rows)
    }

    async fn erase(&mut self, erasure: &Erasure) -> Result<u64, QueryError> {
        let erased = timeout(ANSWER, async { erase::erase(self.client().await?, erasure).await }).await;
        self.done(erased)
    }
}

/// A statement and its arguments.
#[derive(Default)]
struct Statement {
    text: String,
    arguments: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Statement {
    /// Adds an argument, and returns its name in the text.
    fn argument(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.arguments.push(Box::new(value));
        format!("${}", self.arguments.len())
    }

    /// Adds a time in ms, and returns it as an expression.
    fn time(&mut self, ms: i64) -> String {
        let argument = self.argument(ms);
        format!("('epoch'::timestamptz + {argument}::bigint * interval '1 millisecond')")
    }

    /// The conditions of a filter on the rows of a table with this name.
    fn filter(&mut self, filter: &HistoryFilter, of: &str) -> String {
        let mut text = format!("{of}.tenant = {}", self.argument(filter.tenant.clone()));
        let mut and = |condition: String| {
            let _ = write!(text, " and {condition}");
        };
        match filter.topics.as_slice() {
            [] => {}
            // So that the index by topic and time gives them in their order.
            [topic] => and(format!("{of}.topic = {}", self.argument(topic.clone()))),
            topics => and(format!("{of}.topic = any({})", self.argument(topics.to_vec()))),
        }
        for (column, value) in
            [("id", &filter.id), ("state", &filter.state), ("reason", &filter.reason), ("host", &filter.host)]
        {
            if let Some(value) = value {
                and(format!("{of}.{column} = {}", self.argument(value.clone())));
            }
        }
        if let Some(tag) = &filter.tag {
            and(format!("{of}.tags @> array[{}]::text[]", self.argument(tag.clone())));
        }
        if let Some(after) = filter.after {
            and(format!("{of}.finished_at >= {}", self.time(after)));
        }
        if let Some(before) = filter.before {
            and(format!("{of}.finished_at < {}", self.time(before)));
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
        let time = self.time(*finished_at);
        let parts = [
            time.clone(),
            self.argument(topic.clone()),
            self.argument(id.clone()),
            format!("{}::bigint", self.argument(*life)),
            format!("{}::bigint", self.argument(i64::from(*attempts))),
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
    let ms = |column: &str| format!("(extract(epoch from e.{column}) * 1000)::bigint");
    let log = if ask.with_attempts { "e.attempt_log::text" } else { "'[]'" };
    let (request, body, join) = if ask.with_requests {
        let keys = ["tenant", "topic", "id", "life", "attempts", "state", "finished_at"];
        let same = keys.map(|key| format!("b.{key} = e.{key}")).join(" and ");
        ("e.request::text", "b.content_type, b.body", format!("left join ringback_bodies b on {same}"))
    } else {
        ("null::text", "null::text, null::bytea", String::new())
    };
    statement.text = format!(
        "select e.tenant, e.topic, e.id, e.life, e.attempts, e.state, {finished}, {first_due}, {due}, e.failures, e.reason, e.url, \
        e.host, {last}, e.last_status, e.last_error, e.last_duration_ms, e.tags, e.attempts_complete, {log}, {request}, {body} \
        from (select * from ringback_ends m where {condition} order by {inner} limit {limit}) e {join} order by {outer}",
        finished = ms("finished_at"),
        first_due = ms("first_due_at"),
        due = ms("due_at"),
        last = ms("last_at"),
        inner = order("m."),
        outer = order("e."),
    );
    statement
}

fn read(row: &Row, ask: &PageAsk) -> Result<EndRow, tokio_postgres::Error> {
    let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let status: Option<i32> = row.try_get(14)?;
    Ok(EndRow {
        tenant: row.try_get(0)?,
        topic: row.try_get(1)?,
        id: row.try_get(2)?,
        life: row.try_get(3)?,
        attempts: count(row.try_get(4)?),
        state: row.try_get(5)?,
        finished_at: row.try_get(6)?,
        first_due_at: row.try_get(7)?,
        due_at: row.try_get(8)?,
        failures: count(row.try_get(9)?),
        reason: row.try_get(10)?,
        url: row.try_get(11)?,
        host: row.try_get(12)?,
        last_at: row.try_get(13)?,
        last_status: status.and_then(|status| status.try_into().ok()),
        last_error: row.try_get(15)?,
        last_duration_ms: row.try_get(16)?,
        tags: row.try_get(17)?,
        is_attempts_complete: row.try_get(18)?,
        attempt_log: row.try_get(19)?,
        request: row.try_get(20)?,
        content_type: row.try_get(21)?,
        body: if ask.with_requests { row.try_get(22)? } else { None },
    })
}
