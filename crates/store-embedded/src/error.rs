//! The error type inside this store, so that `?` works on the errors of redb and of files. It is
//! converted to a [`StoreError`] where a call leaves the store.

use std::sync::Arc;

use ringback_core::store_types::StoreError;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Error {
    /// A file cannot be read or written. The open transaction must be thrown away.
    Disk(redb::Error),
    /// Any other failure, as callers see it.
    Store(StoreError),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Disk(error) => Self::Disk(Arc::new(error)),
            Error::Store(error) => error,
        }
    }
}

macro_rules! from_disk {
    ($($error:path),*) => { $(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Disk(error.into())
            }
        }
    )* };
}

from_disk!(
    std::io::Error,
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::DatabaseError,
    redb::CompactionError
);
