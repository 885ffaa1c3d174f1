//! `Source`: the database that a feed reads, PostgreSQL or SQLite. Also the types that both return: pages of rows, with
//! values of a few types.

mod answer_watch;
mod postgres;
mod postgres_values;
mod sqlite;

use std::path::Path;

use ringback_core::clock::Timestamp;

pub(crate) use self::answer_watch::Asked;
pub(crate) use self::postgres::{Postgres, query, wait};
use self::sqlite::Sqlite;
use crate::config::SourceUrl;
use crate::query::Query;

/// About how many bytes the rows of a page have at most. A page ends behind the row that reaches this.
pub(crate) const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    Text(String),
    /// JSON, as text.
    Json(String),
    /// Bytes.
    Bytes(Vec<u8>),
    Time(Timestamp),
    /// An array of texts.
    List(Vec<Option<String>>),
    /// A text of SQLite that is not UTF-8.
    NotUtf8(Vec<u8>),
    /// Why a value cannot be read.
    Unreadable(String),
}

impl Value {
    /// About how many bytes it has.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Unreadable(text) => text.len(),
            Self::Bytes(bytes) | Self::NotUtf8(bytes) => bytes.len(),
            Self::List(texts) => texts.iter().flatten().map(String::len).sum(),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Time(_) => 8,
        }
    }
}

/// Rows of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) columns: Vec<String>,
    /// The values of each row, in the order of the columns.
    pub(crate) rows: Vec<Vec<Value>>,
}

/// The arguments of a query for a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PageRequest {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// `:after`: the id of the last row of the page before; `None` on the first page.
    pub(crate) after: Option<Value>,
    pub(crate) limit: usize,
}

/// Why the database could not be read. It is read again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SourceError(pub(crate) String);

/// A database, connected when it is first read and again after an error.
pub(crate) enum Source {
    Postgres(Box<Postgres>),
    Sqlite(Sqlite),
}

impl Source {
    /// Reads the settings of a database, and does not connect.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read.
    pub(crate) fn new(url: &SourceUrl, authorities: Option<&Path>) -> anyhow::Result<Self> {
        Ok(match url {
            SourceUrl::Postgres(url) => Self::Postgres(Box::new(Postgres::new(url, authorities)?)),
            SourceUrl::Sqlite(file) => Self::Sqlite(Sqlite::new(file.clone())),
        })
    }

    /// Reads a page. After a page with no rows there are no more.
    ///
    /// # Errors
    /// If the database cannot be reached, or refuses the query.
    pub(crate) async fn page(&mut self, query: &Query, ask: &PageRequest) -> Result<Page, SourceError> {
        match self {
            Self::Postgres(database) => database.page(query, ask).await,
            Self::Sqlite(database) => database.page(query, ask).await,
        }
    }
}
