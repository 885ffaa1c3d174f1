//! Converts errors of the Redis client into store errors.

use std::sync::Arc;

use redis::ErrorKind::{AuthenticationFailed, Extension, Server};
use redis::RedisError;
use redis::ServerErrorKind::{NoPerm, ReadOnly, ResponseError};
use ringback_core::contract::StoreError;

/// The store error for an error of the client. The client's error becomes its source.
pub(crate) fn classify(error: RedisError) -> StoreError {
    match (error.kind(), error.code()) {
        (Extension, Some("OOM")) => StoreError::Full,
        (Server(ReadOnly), _) => StoreError::Replica,
        (Server(ResponseError | NoPerm) | AuthenticationFailed, _)
        | (Extension, Some("NOAUTH" | "WRONGPASS")) => StoreError::Refused(Arc::new(error)),
        // Lost connections, LOADING, CLUSTERDOWN, MISCONF (the disk is full), BUSY and the like pass by
        // themselves.
        _ => StoreError::Away(Arc::new(error)),
    }
}

/// Whether a call failed because the function library is not loaded. Redis has no error code for that, only
/// this text.
pub(crate) fn is_not_loaded(error: &StoreError) -> bool {
    let StoreError::Refused(source) = error else { return false };
    source.downcast_ref::<RedisError>().and_then(RedisError::detail) == Some("Function not found")
}
