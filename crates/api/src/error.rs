//! What a caller gets instead of an answer: problem details (RFC 9457). A 503 says when
//! to come again. Nothing that a caller can send ends in a 500.

use std::any::Any;
use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use ringback_core::contract::StoreError;
use ringback_core::wire::Problem;
use ringback_store::PoliciesUnknown;
use tokio::time::error::Elapsed;

use crate::submit::Unavailable;

/// The media type of problems.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";
/// When to come again after a 503, in seconds.
const RETRY_AFTER: &str = "1";

/// A problem on its way out.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Problem);

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Problem::new(status, detail))
    }

    fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Of a batch of which nothing is known to have been accepted.
    pub(crate) fn of_batch(error: &Unavailable) -> Self {
        let advice = if error.outcome_is_unknown() {
            "which jobs were accepted is not known; to submit those with ids of their own again is safe"
        } else {
            "no job was accepted; submit them again later"
        };
        Self::unavailable(format!("{error}: {advice}"))
    }

    /// Of a call that moves one job by its name.
    pub(crate) fn of_move(error: &Unavailable) -> Self {
        let advice = if error.outcome_is_unknown() {
            "whether it took effect is not known; look at the job before asking again"
        } else {
            "nothing was changed; ask again later"
        };
        Self::unavailable(format!("{error}: {advice}"))
    }

    /// Of a call that is to revive many jobs.
    pub(crate) fn of_revival(error: &Unavailable) -> Self {
        let advice = if error.outcome_is_unknown() {
            "whether it began is not known; look at the revivals of the topic before asking again"
        } else {
            "nothing was changed; ask again later"
        };
        Self::unavailable(format!("{error}: {advice}"))
    }

    /// For a submit that was not looked at for lack of room or of a turn.
    pub(crate) fn busy() -> Self {
        Self::unavailable("too many large requests at once: nothing was accepted; submit it again later")
    }

    /// For what so many others are at already, in words.
    pub(crate) fn too_many(others: impl Display) -> Self {
        Self::unavailable(format!("{others}: ask again later"))
    }

    /// Of a reserve. What it may have reserved is given back, or runs out.
    pub(crate) fn of_reserve(error: &Unavailable) -> Self {
        Self::unavailable(format!("{error}: ask again later"))
    }

    /// For what changes nothing, or does the same when asked again.
    pub(crate) fn too_late(_: Elapsed) -> Self {
        Self::unavailable("the store did not answer in time: ask again later")
    }
}

/// Passes within moments of the start.
impl From<PoliciesUnknown> for ApiError {
    fn from(error: PoliciesUnknown) -> Self {
        Self::unavailable(format!("{error}: ask again later"))
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

/// Of one job.
impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        let advice = if error.outcome_is_unknown() {
            "whether the job was accepted is not known; to submit it again is safe if it brings its own id"
        } else {
            "the job was not accepted; submit it again later"
        };
        Self::unavailable(format!("{error}: {advice}"))
    }
}

/// For what changes nothing, or does the same when asked again.
impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        Self::unavailable(format!("{}: ask again later", brief(error)))
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        log(&error);
        Self::from(&error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).expect("plain data always serialises");
        let mut response =
            (status, [(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    }
}

/// What of a store's error callers may see: not how it is set up.
pub(crate) fn brief(error: &StoreError) -> String {
    match error {
        StoreError::Away(_)
        | StoreError::Slow(_)
        | StoreError::Unprepared
        | StoreError::Replica
        | StoreError::Full
        | StoreError::Disk(_)
        | StoreError::Closed
        | StoreError::Outdated => error.to_string(),
        StoreError::Unfit(_) | StoreError::Unreadable(_) | StoreError::Refused(_) => {
            "the store cannot be used as it is set up".to_owned()
        }
    }
}

/// An error that passes by itself is told by the readiness check; one that does not needs
/// somebody who reads this.
pub(crate) fn log(error: &StoreError) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    if error.is_transient() {
        tracing::debug!(%error, source, "the store did not carry out a call");
    } else {
        tracing::error!(%error, source, "the store cannot carry out a call");
    }
}

/// The answer of the routes that do not exist.
pub(crate) async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "there is nothing here; the calls are listed in /openapi.json")
}

/// The answer to a method that a route does not have; the router adds Allow.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here; see the Allow header")
}

/// The answer where a handler panicked.
#[expect(clippy::needless_pass_by_value, reason = "the signature is given")]
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    tracing::error!(panic = what, "a request made its handler panic");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "a fault of the server; it has been logged")
        .into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn detail(error: StoreError) -> String {
        ApiError::from(Unavailable::Store(Arc::new(error))).0.detail
    }

    #[test]
    fn a_503_says_when_to_come_again_and_others_do_not() {
        let response = ApiError::from(&StoreError::Unprepared).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
        let other = ApiError::new(StatusCode::NOT_FOUND, "").into_response();
        assert!(!other.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn the_detail_tells_whether_the_outcome_is_known() {
        assert!(detail(StoreError::Slow(Duration::from_secs(1))).contains("is not known"));
        assert!(detail(StoreError::Full).contains("was not accepted"));
        assert!(detail(StoreError::Unprepared).contains("was not accepted"));
    }

    #[test]
    fn how_the_store_is_set_up_is_kept_from_callers() {
        assert!(!detail(StoreError::Unfit("secret layout".to_owned())).contains("secret"));
    }

    #[test]
    fn a_panic_is_a_problem_that_tells_nothing_of_it() {
        let response = panicked(Box::new("out of luck"));
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
    }
}
