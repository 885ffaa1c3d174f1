//! Queries to a database with ended jobs: filters, cursors, pages, the trait [`History`], and reading a page in parts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ringback_core::job::{JobId, Topic};
use ringback_core::store_types::InvalidCursor;
use ringback_wire::end_state;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::ended_job_row::EndedJobRow;
use crate::erasure::Erasure;
use crate::sink::SinkError;

/// The most ended jobs of a page.
pub const MAX_PAGE: usize = 1000;
/// About how many bytes a page has that shows attempts or requests, before it ends.
pub const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// The end of the year 9999, in ms.
const MAX_TIME: i64 = 253_402_300_799_999;
/// For how long a page is read, before it ends with what it has.
const READ_FOR: Duration = Duration::from_secs(2);

/// The ended jobs of a tenant to find. Times are in ms since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryFilter {
    /// The tenant, empty for none.
    pub tenant: String,
    pub topics: Vec<String>,
    /// Topics that are left out.
    pub not_topics: Vec<String>,
    /// Only ended jobs with this id.
    pub id: Option<String>,
    /// Only ended jobs with this tag.
    pub tag: Option<String>,
    /// Only ended jobs in this state.
    pub state: Option<String>,
    /// Only ended jobs with this reason.
    pub reason: Option<String>,
    /// Only ended jobs for this host.
    pub host: Option<String>,
    /// Only ended jobs at this time or later.
    pub after: Option<i64>,
    /// Only ended jobs before this time.
    pub before: Option<i64>,
}

/// The order of ended jobs by the time at which they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    #[default]
    Newest,
    Oldest,
}

/// The unit of which a page shows only the last end, and none if it was done or cancelled after that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastOf {
    /// Each generation of a job.
    Generation,
    Id,
}

/// The place of an ended job among those of its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// When it ended.
    pub finished_at: i64,
    /// The topic, without its tenant.
    pub topic: String,
    pub id: String,
    /// When the job was accepted.
    pub generation: i64,
    /// How many attempts it had.
    pub attempts: u32,
    pub state: String,
}

/// The text of the cursor: postcard in URL-safe base64.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packed = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(packed))
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let packed = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
        let (place, rest) = postcard::take_from_bytes(&packed).map_err(|_| InvalidCursor)?;
        let Self { finished_at, topic, id, generation, state, .. } = &place;
        let are_times = [*finished_at, *generation].iter().all(|time| (0..=MAX_TIME).contains(time));
        let are_names =
            topic.parse::<Topic>().is_ok() && id.parse::<JobId>().is_ok() && end_state(state).is_some();
        if rest.is_empty() && are_times && are_names { Ok(place) } else { Err(InvalidCursor) }
    }
}

impl From<&EndedJobRow> for Cursor {
    fn from(row: &EndedJobRow) -> Self {
        let EndedJobRow { finished_at, generation, attempts, .. } = *row;
        let (topic, id, state) = (row.topic.clone(), row.id.clone(), row.state.clone());
        Self { finished_at, topic, id, generation, attempts, state }
    }
}

/// The page of ended jobs to find, and which parts of them to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRequest {
    pub filter: HistoryFilter,
    pub order: Order,
    /// Of the matching jobs, only the last one of each.
    pub last_of: Option<LastOf>,
    /// The page begins after this place.
    pub after: Option<Cursor>,
    /// The most ended jobs.
    pub limit: usize,
    /// Whether to read the logs of attempts. Without, they are empty.
    pub with_attempts: bool,
    /// Whether to read what was submitted, with the body.
    pub with_requests: bool,
}

impl HistoryRequest {
    /// How many ended jobs to read at a time, so that they take a bounded amount of memory.
    const fn chunk(&self) -> usize {
        match (self.with_requests, self.with_attempts) {
            (true, _) => 16,
            (false, true) => 100,
            (false, false) => MAX_PAGE,
        }
    }
}

/// A page of ended jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPage {
    pub rows: Vec<EndedJobRow>,
    /// Whether there may be more behind them.
    pub has_more: bool,
}

/// Why a query has no answer. The texts are public, so they have no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum QueryError {
    /// The database, or the process that has it, cannot be used now.
    #[error("the archive cannot be read now: {0}")]
    Unavailable(String),
    /// The database takes too long.
    #[error("the archive did not answer in time")]
    Slow,
}

impl From<SinkError> for QueryError {
    fn from(SinkError(text): SinkError) -> Self {
        Self::Unavailable(text)
    }
}

/// A database that has kept ended jobs.
pub trait History: Send {
    /// The first ended jobs after the place in `ask`, at most as many as that allows.
    ///
    /// # Errors
    /// If they cannot be read.
    fn rows(
        &mut self,
        ask: &HistoryRequest,
    ) -> impl Future<Output = Result<Vec<EndedJobRow>, QueryError>> + Send;

    /// Erases ended jobs, in one call or several, and keeps them out of the archive if they come later. Returns how
    /// many this call has erased; 0 if none is left.
    ///
    /// # Errors
    /// If they cannot be erased. Some may have been.
    fn erase(&mut self, erasure: &Erasure) -> impl Future<Output = Result<u64, QueryError>> + Send;
}

/// Reads a page in parts. It ends after [`MAX_PAGE`] rows, after about [`MAX_PAGE_BYTES`] if it has attempts or
/// requests, or when reading has taken `READ_FOR`.
///
/// # Errors
/// If a part cannot be read.
pub async fn page(history: &mut impl History, ask: &HistoryRequest) -> Result<HistoryPage, QueryError> {
    let (mut page, mut bytes) = (HistoryPage::default(), 0);
    let (limit, mut part, begun) = (ask.limit.min(MAX_PAGE), ask.clone(), Instant::now());
    loop {
        part.limit = ask.chunk().min(limit - page.rows.len());
        let rows = history.rows(&part).await?;
        let is_last = rows.len() < part.limit;
        for row in rows {
            bytes += row.size();
            page.rows.push(row);
            if bytes >= MAX_PAGE_BYTES && (ask.with_attempts || ask.with_requests) {
                page.has_more = true;
                return Ok(page);
            }
        }
        page.has_more = !is_last;
        if is_last || page.rows.len() == limit || begun.elapsed() > READ_FOR {
            return Ok(page);
        }
        part.after = page.rows.last().map(Into::into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended_job_row::tests::row;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = Cursor::from(&row());
        assert_eq!(place.to_string().parse(), Ok(place.clone()));
        let text = place.to_string();
        for other in ["", "x", "!", &text[..text.len() - 1], &format!("{text}AAAA")] {
            assert_eq!(other.parse::<Cursor>(), Err(InvalidCursor), "{other}");
        }
        for other in [
            Cursor { topic: "a\0".to_owned(), ..place.clone() },
            Cursor { state: "lost".to_owned(), ..place.clone() },
            Cursor { finished_at: i64::MAX, ..place.clone() },
            Cursor { generation: -1, ..place },
        ] {
            assert_eq!(other.to_string().parse::<Cursor>(), Err(InvalidCursor), "{other:?}");
        }
    }

    /// A database with so many ended jobs.
    struct Many(usize);

    impl History for Many {
        async fn rows(&mut self, ask: &HistoryRequest) -> Result<Vec<EndedJobRow>, QueryError> {
            let begin = ask.after.as_ref().map_or(0, |place| place.attempts as usize);
            let numbers = (begin + 1..=self.0).take(ask.limit);
            Ok(numbers
                .map(|n| EndedJobRow { attempts: n as u32, body: Some(vec![0; 100_000]), ..row() })
                .collect())
        }

        async fn erase(&mut self, _: &Erasure) -> Result<u64, QueryError> {
            Ok(0)
        }
    }

    #[tokio::test]
    async fn a_page_is_full_or_ends_with_the_last_end_or_after_its_bytes() {
        for (all, limit, with_requests, expected) in [
            (7, 10, false, (7, false)),
            (7, 7, false, (7, true)),
            (7, 3, false, (3, true)),
            (50, 40, false, (40, true)),
            (50, 40, true, (11, true)),
            (5, 40, true, (5, false)),
        ] {
            let ask = HistoryRequest { limit, with_requests, ..HistoryRequest::default() };
            let page = page(&mut Many(all), &ask).await.unwrap();
            assert_eq!((page.rows.len(), page.has_more), expected, "{all}, {limit}, {with_requests}");
            let numbers: Vec<_> = page.rows.iter().map(|row| row.attempts as usize).collect();
            assert_eq!(numbers, (1..=expected.0).collect::<Vec<_>>());
        }
    }
}
