//! The error type inside this store, so that `?` works on the errors of redb and of files. It is
//! converted to a [`StoreError`] where a call leaves the store.

use std::sync::Arc;

use ringback_core::contract::StoreError;

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

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(redb::Error::Io(error))
    }
}

macro_rules! from_redb {
    ($($error:ident),*) => { $(
        impl From<redb::$error> for Error {
            fn from(error: redb::$error) -> Self {
                Self::Disk(error.into())
            }
        }
    )* };
}

from_redb!(StorageError, TableError, TransactionError, CommitError, DatabaseError);
