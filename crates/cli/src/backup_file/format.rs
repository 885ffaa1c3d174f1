//! The lines of a backup: the header, the kinds, and the last line.

use std::collections::BTreeMap;

use ringback_core::job::{MAX_JOB, Tenant};
use serde::{Deserialize, Serialize};

/// The version of the format. A reader refuses later ones.
pub(super) const FORMAT: u32 = 1;
/// The longest line, in bytes. A job has at most [`MAX_JOB`].
pub(super) const MAX_LINE: usize = 2 * MAX_JOB;
/// The kind of the first line.
pub(super) const HEADER: &str = "backup";
/// The kind of the last line.
pub(super) const END: &str = "end";

/// The kinds of the lines between the first and the last, in the order in which they come. A line of a tenant names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A credential of a tenant, or of none: a line of `GET /v1/export/credentials`.
    Credential,
    /// A paused destination, for the jobs of a tenant, of none or of all: a line of `GET /v1/export/destinations`.
    Destination,
    /// What is set for a topic without a tenant: a line of `GET /v1/export/topics`.
    Topic,
    /// What is set for a topic of a tenant.
    TenantTopic,
    /// A pending or dead job without a tenant: a line of `GET /v1/export`.
    Job,
    /// A pending or dead job of a tenant.
    TenantJob,
    /// A schedule of a tenant, or of none: a line of `GET /v1/export/schedules`.
    Schedule,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::Credential,
        Self::Destination,
        Self::Topic,
        Self::TenantTopic,
        Self::Job,
        Self::TenantJob,
        Self::Schedule,
    ];

    /// The kind of a topic.
    pub(crate) const fn of_topic(tenant: Option<&Tenant>) -> Self {
        match tenant {
            None => Self::Topic,
            Some(_) => Self::TenantTopic,
        }
    }

    /// The kind of a job.
    pub(crate) const fn of_job(tenant: Option<&Tenant>) -> Self {
        match tenant {
            None => Self::Job,
            Some(_) => Self::TenantJob,
        }
    }

    /// Whether its lines are jobs.
    pub(crate) const fn is_job(self) -> bool {
        match self {
            Self::Credential | Self::Destination | Self::Topic | Self::TenantTopic | Self::Schedule => false,
            Self::Job | Self::TenantJob => true,
        }
    }

    /// Whether its lines are topics.
    pub(crate) const fn is_topic(self) -> bool {
        match self {
            Self::Topic | Self::TenantTopic => true,
            Self::Credential | Self::Destination | Self::Job | Self::TenantJob | Self::Schedule => false,
        }
    }

    /// Whether its lines belong to tenants; `None` if some do.
    pub(super) const fn is_of_tenants(self) -> Option<bool> {
        match self {
            Self::Credential | Self::Destination | Self::Schedule => None,
            Self::Topic | Self::Job => Some(false),
            Self::TenantTopic | Self::TenantJob => Some(true),
        }
    }

    /// Its name in a line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Destination => "destination",
            Self::Topic => "topic",
            Self::TenantTopic => "tenant_topic",
            Self::Job => "job",
            Self::TenantJob => "tenant_job",
            Self::Schedule => "schedule",
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
    /// The tenant that was chosen; absent for a backup of everything that the key reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
}

impl Header {
    /// The header of a backup that this version begins to write.
    pub(crate) fn new(store: String, layout: u64, at: String, tenant: Option<&Tenant>) -> Self {
        let (version, tenant) = (env!("CARGO_PKG_VERSION").to_owned(), tenant.map(ToString::to_string));
        Self { format: FORMAT, version, store, layout, at, tenant }
    }
}

/// The number of lines by kind.
pub(super) type Counts = BTreeMap<String, u64>;

/// The counts before the first line. Kinds of tenants are counted where there are some, as versions from before there
/// were tenants know the other two alone.
pub(super) fn no_counts() -> Counts {
    [Kind::Topic, Kind::Job].map(|kind| (kind.name().to_owned(), 0)).into()
}

/// The value of the last line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) counts: Counts,
    /// The SHA-256 of all lines before this one, with their line breaks, in hexadecimal digits.
    pub(super) sha256: String,
}
