//! The lines of a backup: the header, the kinds, and the last line.

use std::collections::BTreeMap;

use ringback_core::job::MAX_JOB;
use serde::{Deserialize, Serialize};

/// The version of the format. A reader refuses later ones.
pub(super) const FORMAT: u32 = 1;
/// The longest line, in bytes. A job has at most [`MAX_JOB`].
pub(super) const MAX_LINE: usize = 2 * MAX_JOB;
/// The kind of the first line.
pub(super) const HEADER: &str = "backup";
/// The kind of the last line.
pub(super) const END: &str = "end";

/// The kinds of the lines between the first and the last, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What is set for a topic: a line of `GET /v1/export/topics`.
    Topic,
    /// A pending or dead job: a line of `GET /v1/export`.
    Job,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Topic, Self::Job];

    /// Its name in a line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Job => "job",
        }
    }
}

/// The value of the first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the format.
    pub(crate) format: u32,
    /// The version of the command line that wrote it.
    pub(crate) version: String,
    /// The kind of the store that was read: `redis`, `redis-sentinel`, `redis-cluster` or `embedded`.
    pub(crate) store: String,
    /// The layout of that store.
    pub(crate) layout: u64,
    /// When the backup began.
    pub(crate) at: String,
}

impl Header {
    /// The header of a backup that this version begins to write.
    pub(crate) fn new(store: String, layout: u64, at: String) -> Self {
        Self { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), store, layout, at }
    }
}

/// The number of lines by kind.
pub(super) type Counts = BTreeMap<String, u64>;

/// The value of the last line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) counts: Counts,
    /// The SHA-256 of all lines before this one, with their line breaks, in hexadecimal digits.
    pub(super) sha256: String,
}
