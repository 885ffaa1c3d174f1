//! The types of the lines of a backup: the header, the kinds in their order, and the last line; and their limits.

use std::collections::BTreeMap;

use ringback_core::job::{MAX_JOB, Tenant};
use serde::{Deserialize, Serialize};

/// The version of the format. A reader refuses others.
pub(super) const FORMAT: u32 = 1;
/// The longest line, in bytes. A job has at most [`MAX_JOB`].
pub(super) const MAX_LINE: usize = 2 * MAX_JOB;
/// The kind of the first line.
pub(super) const HEADER: &str = "backup";
/// The kind of the last line.
pub(super) const END: &str = "end";

/// The kinds of the lines between the first and the last, in the order in which they come. A line of a tenant names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Kind {
    /// A credential: a line of `GET /v1/export/credentials`.
    Credential,
    /// A paused destination: a line of `GET /v1/export/destinations`.
    Destination,
    /// The policy and the pause of a topic: a line of `GET /v1/export/topics`.
    Topic,
    /// A pending or dead job: a line of `GET /v1/export`.
    Job,
    /// A schedule: a line of `GET /v1/export/schedules`.
    Schedule,
}

/// The value of the first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: u32,
    /// The version of the command line that wrote it.
    pub(crate) version: String,
    /// The kind of the store that was read: `redis`, `redis-sentinel`, `redis-cluster` or `embedded`.
    pub(crate) store: String,
    pub(crate) layout: u64,
    /// When the backup began.
    pub(crate) at: String,
    /// The tenant that was chosen; absent for a backup of everything that the key reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
}

impl Header {
    /// The header of a backup that begins.
    pub(crate) fn new(store: String, layout: u64, at: String, tenant: Option<&Tenant>) -> Self {
        let (version, tenant) = (env!("CARGO_PKG_VERSION").to_owned(), tenant.map(ToString::to_string));
        Self { format: FORMAT, version, store, layout, at, tenant }
    }
}

/// The number of lines by kind.
pub(super) type Counts = BTreeMap<Kind, u64>;

/// The counts before the first line. Topics and jobs are counted also if there are none.
pub(super) fn no_counts() -> Counts {
    [(Kind::Topic, 0), (Kind::Job, 0)].into()
}

/// The value of the last line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) counts: Counts,
    /// The SHA-256 of all lines before this one, with their line breaks, in hexadecimal digits.
    pub(super) sha256: String,
}
