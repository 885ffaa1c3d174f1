//! What can go wrong between an edge and its store.

use std::sync::Arc;
use std::time::Duration;

/// What a backend says of a fault, kept as the source of a [`StoreError`].
pub type Source = Arc<dyn std::error::Error + Send + Sync>;

/// Why the store did not carry out a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or is not able to serve now. Nothing was done, or what was
    /// done is not known.
    #[error("the store cannot be reached")]
    Away(#[source] Source),
    /// It did not answer in time. Whether the call took effect is not known.
    #[error("the store did not answer within {0:?}")]
    Slow(Duration),
    /// Its checks at the start have not succeeded yet. Nothing was done.
    #[error("the store has not been reached since the start")]
    Unprepared,
    /// It is a replica, as after a fail-over. Nothing was done.
    #[error("the store is a replica and takes no writes")]
    Replica,
    /// It has reached its memory limit. Nothing was done.
    #[error("the store has reached its memory limit")]
    Full,
    /// The embedded store's file cannot be read or written, as when the disk is full.
    /// Whether the call took effect is not known.
    #[error("the store's file cannot be read or written")]
    Disk(#[source] Source),
    /// The embedded store's writer has ended, by a fault of this program: the process has to
    /// begin anew. Whether the call took effect is not known.
    #[error("the store's writer has ended")]
    Closed,
    /// It is set up in a way that would lose jobs, or belongs to another installation.
    #[error("{0}")]
    Unfit(String),
    /// A place in the jobs that belongs to an earlier life of the store: reading has to begin
    /// again.
    #[error("the store was restarted since the place was given")]
    Outdated,
    /// It answered in a way that this version cannot read.
    #[error("the store's answer cannot be read: {0}")]
    Unreadable(&'static str),
    /// It refused the call.
    #[error("the store refused the call")]
    Refused(#[source] Source),
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing a setting.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Away(_) | Self::Slow(_) | Self::Unprepared | Self::Replica | Self::Full | Self::Disk(_) => {
                true
            }
            Self::Closed | Self::Outdated | Self::Unfit(_) | Self::Unreadable(_) | Self::Refused(_) => false,
        }
    }
}
