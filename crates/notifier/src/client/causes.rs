//! Finds the reason why an attempt failed among the causes of an error of the HTTP library.

use std::error::Error;
use std::io;

use hyper::client::conn::TrySendError;

use super::error::{PostError, is_out_of_resources};
use super::metered::TooMuch;
use super::tls;

/// Why a request over HTTP/2 has no response. It comes back if none of it was sent.
pub(super) fn of_stream<T>(mut failed: TrySendError<T>) -> PostError {
    let is_unsent = failed.take_message().is_some();
    match of_request(&failed.into_error()) {
        PostError::Broken if is_unsent => PostError::Unprocessed,
        error => error,
    }
}

/// Why a request has no response, or a connection does not begin.
pub(super) fn of_request(error: &hyper::Error) -> PostError {
    let kind = known(error).unwrap_or(PostError::Broken);
    if kind == PostError::Broken && error.is_parse() { PostError::NotHttp } else { kind }
}

/// Why a body is not complete.
pub(super) fn of_body(error: &hyper::Error) -> PostError {
    match known(error) {
        None | Some(PostError::Unprocessed | PostError::Reset) => PostError::Body,
        Some(kind) => kind,
    }
}

/// What one of the causes says.
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

/// Whether the error is of this stream alone, or of what the receiver sends.
fn is_of_stream(error: &h2::Error) -> bool {
    error.is_reset() || error.is_go_away()
}
