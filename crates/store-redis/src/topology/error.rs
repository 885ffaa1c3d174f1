//! Converts errors of the Redis client to store errors, and recognizes answers by their text or code: a library that is
//! not loaded, a redirection in a cluster, a rewrite that is under way.

use std::sync::Arc;

use redis::ErrorKind::{AuthenticationFailed, Extension, Server};
use redis::RedisError;
use redis::ServerErrorKind::{Ask, NoPerm, ReadOnly, ResponseError, TryAgain};
use ringback_core::store_types::StoreError;

use super::CONNECT;
use super::diagnosis::is_of_certificate;

/// Returns the store error for an error of the client, which becomes its source except for `Full` and `Replica`.
pub(super) fn classify(error: RedisError) -> StoreError {
    match (error.kind(), error.code()) {
        (Extension, Some("OOM")) => StoreError::Full,
        (Server(ReadOnly), _) => StoreError::Replica,
        (AuthenticationFailed, _) | (Extension, Some("NOAUTH" | "WRONGPASS")) => {
            StoreError::Unauthorized(Arc::new(error))
        }
        // It closes the connection then.
        _ if error.detail().is_some_and(|detail| detail.contains("max number of clients")) => {
            StoreError::Away(Arc::new(error))
        }
        // DENIED is the word of a server in protected mode, asked from another machine.
        (Extension, Some("DENIED")) | (Server(ResponseError | NoPerm), _) => {
            StoreError::Refused(Arc::new(error))
        }
        // Lost connections, LOADING, CLUSTERDOWN, MISCONF (the disk is full), BUSY and the like pass by themselves.
        _ => StoreError::Away(Arc::new(error)),
    }
}

/// Returns the store error for a connection that could not be made: `Slow` after the time limit; `Unauthorized` if the
/// server refuses the user, the password or the number of the database, or a certificate is rejected.
pub(super) fn classify_connect(error: RedisError) -> StoreError {
    if error.is_timeout() {
        return StoreError::Slow(CONNECT);
    }
    if is_of_certificate(&error) {
        return StoreError::Unauthorized(Arc::new(error));
    }
    match classify(error) {
        StoreError::Refused(source) => StoreError::Unauthorized(source),
        other => other,
    }
}

/// Whether a call failed because the function library is not loaded. Redis has no error code for that, only this text.
pub(crate) fn is_not_loaded(error: &StoreError) -> bool {
    refusal(error) == Some("Function not found")
}

/// Returns what a server said when it refused a call; `None` for other errors.
pub(super) fn refusal(error: &StoreError) -> Option<&str> {
    let StoreError::Refused(source) = error else { return None };
    source.downcast_ref::<RedisError>().and_then(RedisError::detail)
}

/// Whether a cluster refused a call because its slot is moving between two nodes.
pub(super) fn is_half_moved(error: &StoreError) -> bool {
    let StoreError::Away(source) = error else { return false };
    let kind = source.downcast_ref::<RedisError>().map(RedisError::kind);
    matches!(kind, Some(Server(Ask | TryAgain)))
}

/// Whether a rewrite of the append-only file was refused because one is under way. Redis has no error code for that
/// either.
pub(crate) fn is_under_way(error: &StoreError) -> bool {
    refusal(error).is_some_and(|detail| detail.contains("already in progress"))
}

/// Returns the host and the port to which a node of a cluster redirected a call (MOVED); `None` for other errors.
pub(super) fn moved_to(error: &StoreError) -> Option<(&str, u16)> {
    let StoreError::Away(source) = error else { return None };
    let error = source.downcast_ref::<RedisError>()?;
    if error.code() != Some("MOVED") {
        return None;
    }
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

pub(super) fn unfit(error: &RedisError) -> StoreError {
    StoreError::Unfit(format!("the store's URL cannot be used: {error}"))
}
