//! Reading many jobs bit by bit: which ones, from where on, and what was found.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::job::{ContentHash, Delivery, Job, Topic};
use crate::state::State;

/// The most jobs that one call looks at.
pub const MAX_PAGE: usize = 1000;

/// Which jobs are wanted. Ended jobs have left and cannot be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this topic only.
    pub topic: Option<Topic>,
    /// In this state only.
    pub state: Option<State>,
}

/// A place between two jobs. A job that is there from the first page to the last is on one of
/// them, whatever moves meanwhile; one that came or ended meanwhile may be or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which shard is being read.
    pub(super) shard: u16,
    /// Where in the shard, as its backend counts.
    pub(super) at: u64,
    /// Which life of the backend the place belongs to; in another one it means nothing.
    pub(super) life: u32,
}

impl Cursor {
    /// The start of all; that of a shard is the same in every life too.
    pub(super) const START: Self = Self { shard: 0, at: 0, life: 0 };
}

impl Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}", self.shard, self.at, self.life)
    }
}

/// What is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor that a page ended with")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('-');
        // The parser of numbers would take a sign too.
        let mut part = || {
            parts
                .next()
                .filter(|part| !part.starts_with('+'))
                .and_then(|part| u64::from_str_radix(part, 16).ok())
        };
        let (shard, at, life) = (part(), part(), part());
        match (shard, at, life, parts.next()) {
            (Some(shard), Some(at), Some(life), None) => Ok(Self {
                shard: shard.try_into().map_err(|_| NoCursor)?,
                at,
                life: life.try_into().map_err(|_| NoCursor)?,
            }),
            _ => Err(NoCursor),
        }
    }
}

/// Some jobs, and where the next ones are.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The jobs; none where none of those looked at is wanted.
    pub items: Vec<T>,
    /// Where to go on; `None` after the last one.
    pub next: Option<Cursor>,
}

/// All that is known of a job that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What is known of it.
    pub job: Job,
    /// What it brought along.
    pub delivery: Delivery,
    /// What its submit is known by.
    pub content: ContentHash,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_being_written_down() {
        let cursor = Cursor { shard: 3, at: u64::MAX, life: 0xdead_beef };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }

    #[test]
    fn what_no_page_ended_with_is_refused() {
        for text in ["", "0", "0-0", "0-0-0-0", "10000-0-0", "0-0-100000000", "x-0-0", "+1-0-0", "0-0-"] {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
