//! Maps errors of the HTTP library to a [`PostError`], by the causes behind them.

use std::error::Error;
use std::io;

use hyper::client::conn::TrySendError;

use super::error::{PostError, is_out_of_resources};
use super::metered::TooMuch;
use super::tls;

/// Why a request over HTTP/2 has no response; [`PostError::Unprocessed`] if the library returns it unsent and nothing
/// else is known.
pub(super) fn of_stream<T>(mut failed: TrySendError<T>) -> PostError {
    let is_unsent = failed.take_message().is_some();
    match of_request(&failed.into_error()) {
        PostError::Broken if is_unsent => PostError::Unprocessed,
        error => error,
    }
}

/// Why a request has no response, or the handshake of HTTP on a connection failed.
pub(super) fn of_request(error: &hyper::Error) -> PostError {
    let kind = known(error).unwrap_or(PostError::Broken);
    if kind == PostError::Broken && error.is_parse() { PostError::NotHttp } else { kind }
}

/// Why a body is not complete: [`PostError::Body`], unless a more specific cause is known.
pub(super) fn of_body(error: &hyper::Error) -> PostError {
    match known(error) {
        None | Some(PostError::Unprocessed | PostError::Reset) => PostError::Body,
        Some(kind) => kind,
    }
}

/// The error that one of the causes identifies, beginning with the outermost; `None` if none does.
fn known(error: &(dyn Error + 'static)) -> Option<PostError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large) {
            return Some(PostError::HeadTooLarge);
        }
        if error.downcast_ref::<h2::Error>().is_some_and(is_unprocessed) {
            return Some(PostError::Unprocessed);
        }
        if error.downcast_ref::<h2::Error>().is_some_and(is_of_stream) {
            return Some(PostError::Reset);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if is_out_of_resources(error) {
                return Some(PostError::Local);
            }
            if error.get_ref().is_some_and(|inner| inner.is::<TooMuch>()) {
                return Some(PostError::ResponseTooLarge);
            }
            if let Some(kind) = tls::refused(error) {
                return Some(kind);
            }
        }
        cause = error.source();
    }
    None
}

/// Whether the receiver says that it has not processed the request (RFC 9113, section 8.7).
fn is_unprocessed(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

/// Whether a stream was reset, or the connection ended by a GOAWAY of either side.
fn is_of_stream(error: &h2::Error) -> bool {
    error.is_reset() || error.is_go_away()
}
