//! [`StoreError`]: why a store call has failed, whether it may have taken effect, and which errors pass by themselves.

use std::sync::Arc;
use std::time::Duration;

use super::loss::Loss;

/// A backend's own error, kept as the source of a [`StoreError`].
pub type Source = Arc<dyn std::error::Error + Send + Sync>;

/// Why the store did not carry out a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached or cannot serve now. It is not known whether the call took effect.
    #[error("the store cannot be reached")]
    Away(#[source] Source),
    /// The store did not reply in time. It is not known whether the call took effect.
    #[error("the store did not answer within {0:?}")]
    Slow(Duration),
    /// The checks at the start have not succeeded yet. Nothing was done.
    #[error("the store has not been reached since the start")]
    Unprepared,
    /// The slot of this part of the store is on its way from one node of a cluster to another, key by key. Nothing was
    /// done.
    #[error("{0} is refused while its slot moves to another node of the cluster")]
    Moving(String),
    /// The server is a replica, as after a fail-over. Nothing was done.
    #[error("the store is a replica and takes no writes")]
    Replica,
    /// The store has reached its memory limit. Nothing was done.
    #[error("the store has reached its memory limit")]
    Full,
    /// The archive does not keep up, and its outbox is full. Nothing was done.
    #[error("the outbox of the archive is full, because its database is away or slow")]
    ArchiveBehind,
    /// The embedded store's file cannot be read or written, for example because the disk is full. It is
    /// not known whether the call took effect.
    #[error("the store's file cannot be read or written")]
    Disk(#[source] Source),
    /// A file of the embedded store was removed, moved or replaced while the store was open. It is not known whether the
    /// call took effect.
    #[error("a file of the store was removed, moved or replaced while it was open")]
    Removed(#[source] Source),
    /// The embedded store's writer has ended because of a bug. The process has to be restarted. It is not
    /// known whether the call took effect.
    #[error("the store's writer has ended")]
    Closed,
    /// The store has lost jobs that it had accepted, and takes no more until the loss is accepted. Nothing was done.
    #[error(
        "the store has lost {0}; submits are refused until the loss is accepted with `ringback check --accept-loss`"
    )]
    Lost(Loss),
    /// The store keeps data less safely than [`Options::durability`](super::Options::durability) asks. Jobs are
    /// delivered and settled, but no new ones are taken.
    #[error("{0}")]
    Weaker(String),
    /// Too few replicas keep up with the store, and acknowledged changes have to be on them. Nothing was done.
    #[error("too few replicas keep up with the store for RINGBACK_DURABILITY=replicated")]
    NoReplica,
    /// Too few replicas have confirmed the change in time. The change was made, but it is lost if the server is.
    #[error("too few replicas of the store have confirmed the change in time")]
    Unreplicated,
    /// The store is set up in a way that would lose jobs, or belongs to another installation.
    #[error("{0}")]
    Unfit(String),
    /// The cursor was made before the store was restarted. Reading has to begin again.
    #[error("the store was restarted since the place was given")]
    Outdated,
    /// The store's reply cannot be read by this version.
    #[error("the store's answer cannot be read: {0}")]
    Unreadable(&'static str),
    /// The store does not accept the user, the password or the certificate of this process, or this process does not
    /// accept the store: its certificate, or what it is at all. Nothing was done.
    #[error("the store does not accept this process, or cannot be trusted by it")]
    Unauthorized(#[source] Source),
    #[error("the store refused the call")]
    Refused(#[source] Source),
}

impl StoreError {
    /// The error for a store whose layout is not the one that this build reads.
    pub fn other_layout(stored: impl std::fmt::Display, ours: u64) -> Self {
        Self::Unfit(format!(
            "the store has layout {stored}, and this build reads layout {ours}; set another RINGBACK_PREFIX, or use the build that wrote it"
        ))
    }

    /// Whether the same call may succeed later without anybody changing a setting of this process. This includes
    /// [`Self::Unauthorized`], because a password is not changed everywhere at once, and [`Self::Weaker`].
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Away(_)
            | Self::Slow(_)
            | Self::Unprepared
            | Self::Moving(_)
            | Self::Replica
            | Self::Full
            | Self::ArchiveBehind
            | Self::Disk(_)
            | Self::Removed(_)
            | Self::Lost(_)
            | Self::Weaker(_)
            | Self::NoReplica
            | Self::Unreplicated
            | Self::Unauthorized(_) => true,
            Self::Closed | Self::Outdated | Self::Unfit(_) | Self::Unreadable(_) | Self::Refused(_) => false,
        }
    }

    /// Whether the store refuses this process or its call, cannot be trusted, or keeps data less safely than the
    /// settings of this process ask.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Unauthorized(_) | Self::Refused(_) | Self::Weaker(_))
    }
}
