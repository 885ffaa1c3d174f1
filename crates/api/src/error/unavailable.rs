//! `Unavailable`: why a call has no answer from the store, and whether it may have taken effect.
//! Also how errors of the store are logged, and what callers see of them.

use std::sync::Arc;

use ringback_core::store_types::StoreError;
use ringback_store::{ConfigUnknown, Shortage};

/// Why a call has no answer from the store.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// The store call failed. It may have been executed all the same.
    #[error("{}", public_message(.0))]
    Store(#[source] Arc<StoreError>),
    #[error("{0}")]
    NearlyFull(Shortage),
    /// The call did not end in time, or could not begin in time.
    #[error("the store did not answer in time")]
    TooLate,
    /// The task that made the call ended.
    #[error("the call to the store was given up")]
    GivenUp,
    /// The topic policies have not been read yet.
    #[error(transparent)]
    Policies(#[from] ConfigUnknown),
    /// An earlier call of the same request failed.
    #[error("an earlier call of the same request failed")]
    NotTried,
}

impl Unavailable {
    pub(crate) fn outcome_is_unknown(&self) -> bool {
        match self {
            Self::TooLate | Self::GivenUp => true,
            Self::NotTried | Self::NearlyFull(_) | Self::Policies(_) => false,
            Self::Store(error) => outcome_is_unknown(error),
        }
    }
}

/// Logs the error.
impl From<StoreError> for Unavailable {
    fn from(error: StoreError) -> Self {
        log(&error);
        Self::Store(Arc::new(error))
    }
}

/// Whether a call that failed with this error may have taken effect.
pub(super) fn outcome_is_unknown(error: &StoreError) -> bool {
    match error {
        StoreError::Away(_)
        | StoreError::Slow(_)
        | StoreError::Disk(_)
        | StoreError::Removed(_)
        | StoreError::Unreplicated
        | StoreError::Unreadable(_) => true,
        StoreError::Unprepared
        | StoreError::Moving(_)
        | StoreError::Replica
        | StoreError::Full
        | StoreError::ArchiveBehind
        | StoreError::Lost(_)
        | StoreError::Weaker(_)
        | StoreError::NoReplica
        | StoreError::Closed
        | StoreError::Outdated
        | StoreError::Unfit(_)
        | StoreError::Unauthorized(_)
        | StoreError::Refused(_) => false,
    }
}

/// The message of a store's error for callers, which hides how the store is set up.
pub(super) fn public_message(error: &StoreError) -> String {
    match error {
        StoreError::Away(_)
        | StoreError::Slow(_)
        | StoreError::Unprepared
        | StoreError::Moving(_)
        | StoreError::Replica
        | StoreError::Full
        | StoreError::ArchiveBehind
        | StoreError::Lost(_)
        | StoreError::Disk(_)
        | StoreError::Removed(_)
        | StoreError::NoReplica
        | StoreError::Unreplicated
        | StoreError::Closed
        | StoreError::Outdated => error.to_string(),
        StoreError::Weaker(_) => "the store keeps data less safely than it has to".to_owned(),
        StoreError::Unfit(_)
        | StoreError::Unreadable(_)
        | StoreError::Unauthorized(_)
        | StoreError::Refused(_) => "the store cannot be used as it is set up".to_owned(),
    }
}

/// Logs an error of the store. A transient one is only a debug line, since the readiness check
/// reports it; any other needs an operator.
pub(crate) fn log(error: &StoreError) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    if error.is_transient() {
        tracing::debug!(%error, source, "a store call failed for now");
    } else {
        tracing::error!(%error, source, "a store call failed and will keep failing");
    }
}
