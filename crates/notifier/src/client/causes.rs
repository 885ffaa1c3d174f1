//! Finds the reason why an attempt failed among the causes of an error of the HTTP library.

use std::error::Error;
use std::io;

use super::connector::ConnectError;
use super::error::{PostError, is_out_of_resources};
use super::metered::TooMuch;

/// Why a request has no response.
pub(super) fn of_request(error: &hyper_util::client::legacy::Error) -> PostError {
    known(error).unwrap_or(PostError::Broken)
}

/// Why a body is not complete.
pub(super) fn of_body(error: &hyper::Error) -> PostError {
    known(error).unwrap_or(PostError::Body)
}

/// What one of the causes says.
fn known(error: &(dyn Error + 'static)) -> Option<PostError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<ConnectError>() {
            return Some(error.kind);
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large) {
            return Some(PostError::HeadTooLarge);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if is_out_of_resources(error) {
                return Some(PostError::Local);
            }
            if error.get_ref().is_some_and(|inner| inner.is::<TooMuch>()) {
                return Some(PostError::ResponseTooLarge);
            }
        }
        cause = error.source();
    }
    None
}
