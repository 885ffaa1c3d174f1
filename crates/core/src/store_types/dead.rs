//! Dead jobs: the filter, the cursor and the pages, in the order in which the jobs became dead.
//!
//! Dead jobs are indexed by time alone, so a call skips those that do not match. It reads a bounded
//! number of entries, and may return none although there are more.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::page::InvalidCursor;
use crate::clock::Timestamp;
use crate::hex::Hex;
use crate::job::{Job, Topic};

/// The most jobs that one call finds in a shard, revives or purges.
pub const MAX_DEAD: usize = 500;

/// Which dead jobs to find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadFilter {
    pub topic: Topic,
    /// Only jobs with this reason.
    pub reason: Option<String>,
    /// Only jobs that died at this time or later.
    pub after: Option<Timestamp>,
    /// Only jobs that died before this time.
    pub before: Option<Timestamp>,
}

/// The position of a dead job in the order of death, by which calls about many dead jobs identify each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadCursor {
    /// When the job died, in ms.
    pub at: u64,
    /// Orders jobs of the same millisecond; the backend chooses it.
    pub tie: [u8; 12],
}

impl DeadCursor {
    /// When the job died.
    pub const fn died(self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }
}

impl Display for DeadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.at, Hex(&self.tie))
    }
}

impl FromStr for DeadCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, tie) = text.split_once('-').ok_or(InvalidCursor)?;
        let is_hex = |text: &str, max| text.len() <= max && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex(at, 12) || !is_hex(tie, 24) || tie.len() < 24 {
            return Err(InvalidCursor);
        }
        let at = u64::from_str_radix(at, 16).map_err(|_| InvalidCursor)?;
        let number = u128::from_str_radix(tie, 16).map_err(|_| InvalidCursor)?.to_be_bytes();
        Ok(Self { at, tie: number[4..].try_into().map_err(|_| InvalidCursor)? })
    }
}

/// A dead job and when it died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadJob {
    pub job: Job,
    /// When it died, by the store's clock.
    pub died: Timestamp,
    /// Its position, with which a page after it begins.
    pub cursor: DeadCursor,
}

/// A page of dead jobs, in order of death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadPage<T> {
    /// The jobs. May be empty although there are more pages.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last page.
    pub next: Option<DeadCursor>,
    /// The store's time when it read them.
    pub now: Timestamp,
}

/// One shard's part of a page: each job with its position.
pub type DeadShardPage<T> = DeadPage<(DeadCursor, T)>;

#[cfg(test)]
mod tests {
    use super::super::page::Cursor;
    use super::*;

    const fn cursor(at: u64, tie: u8) -> DeadCursor {
        DeadCursor { at, tie: [tie; 12] }
    }

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for cursor in [cursor(0, 0), cursor((1 << 48) - 1, 0xff), cursor(1_763_600_000_123, 0x0a)] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        let good = cursor(1, 1).to_string();
        let long = format!("{good}0");
        for text in ["", "-", "1", "x-0", &good[..good.len() - 1], &long, "+1-000000000000000000000000"] {
            assert_eq!(text.parse::<DeadCursor>(), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn random_texts_are_no_cursors_or_are_read_as_they_are_written() {
        let sample = cursor(1_763_600_000_123, 0x0a).to_string();
        ringback_fuzz::run_texts(&[&sample, "2-0-0", "ffff-ffffffffffffffff-ffffffff"], |text| {
            if let Ok(cursor) = text.parse::<DeadCursor>() {
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
            if let Ok(cursor) = text.parse::<Cursor>() {
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        });
    }
}
