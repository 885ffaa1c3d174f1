//! Pages of jobs for lists and exports: the cursor, the page, and a job as it is listed, exported or found by its key.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::job::{ContentHash, Delivery, Job};

/// The most jobs that one call reads.
pub const MAX_PAGE: usize = 1000;

/// A position between two jobs. A job that exists from the first page to the last is on one of the
/// pages, whatever moves meanwhile. A job that comes or ends meanwhile may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub shard: u16,
    /// The position in the shard, as the backend counts.
    pub at: u64,
    /// Identifies the start of the server. After a restart the position is not valid any more.
    pub run: u32,
}

impl Cursor {
    /// The position before all jobs. The start of a shard stays valid after a restart.
    pub const START: Self = Self { shard: 0, at: 0, run: 0 };
}

impl Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}", self.shard, self.at, self.run)
    }
}

/// A text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor that a page ended with")]
pub struct InvalidCursor;

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<_> = text.splitn(4, '-').collect();
        let [shard, at, run] = parts[..] else { return Err(InvalidCursor) };
        // The parser of numbers would accept a sign too.
        let number = |part: &str| u64::from_str_radix(part, 16).ok().filter(|_| !part.starts_with('+'));
        let parse = || {
            let (shard, run) = (number(shard)?.try_into().ok()?, number(run)?.try_into().ok()?);
            Some(Self { shard, at: number(at)?, run })
        };
        parse().ok_or(InvalidCursor)
    }
}

/// Some jobs, and the position of the next ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The jobs. May be empty although there are more pages.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last page.
    pub next: Option<Cursor>,
    /// How many jobs were looked at.
    pub examined: usize,
}

/// A job that has not ended, and where it is delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedJob {
    pub job: Job,
    /// Scheme and authority of its callback; empty for a pull job.
    pub origin: Box<str>,
}

/// A job that has not ended, with everything that is stored of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredJob {
    pub job: Job,
    /// What to deliver, and how.
    pub delivery: Delivery,
    /// The hash of its fields; recognises a repeated submit.
    pub content: ContentHash,
}

/// A job that was looked up by its key.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundJob {
    /// It has not ended, and everything is there.
    Stored(Box<StoredJob>),
    /// It has ended: only its tombstone is kept.
    Ended(Job),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = Cursor { shard: 3, at: u64::MAX, run: 0xdead_beef };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }

    #[test]
    fn other_texts_are_not_cursors() {
        for text in ["", "0", "0-0", "0-0-0-0", "10000-0-0", "0-0-100000000", "x-0-0", "+1-0-0", "0-0-"] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
