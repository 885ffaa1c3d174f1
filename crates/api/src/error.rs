//! `ApiError`: errors as callers see them, as problem details (RFC 9457), and whether the failed call may have changed
//! something. Also the answers to unknown paths and methods, and to panics, which alone cause a 500.

mod unavailable;

use std::any::Any;
use std::fmt::Display;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use ringback_admission::QuotaError;
use ringback_core::job::JobKey;
use ringback_core::store_types::StoreError;
use ringback_store::ConfigUnknown;
use ringback_wire::{JobReference, Problem};
use tokio::time::error::Elapsed;

pub(crate) use self::unavailable::{Unavailable, log};
use self::unavailable::{outcome_is_unknown, public_message};
use crate::submit_queues::ItemFailure;

pub(crate) const MEDIA_TYPE: &str = "application/problem+json";
/// The `Retry-After` of a 503 or a 429, in seconds.
const RETRY_AFTER: &str = "1";
/// The advice of a 503 to a call that is safe to repeat.
const RETRY_LATER: &str = "retry later";
/// The advice of a 503 to a submit that had no effect.
const NOT_ACCEPTED: &str = "the job was not accepted; retry later";

/// The result of a handler that answers 200 with JSON.
pub(crate) type JsonResult<T> = Result<Json<T>, ApiError>;

/// A problem that a handler or an extractor returns, and whether the call may have changed something.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Problem, Effect);

/// Whether a call that failed may have changed something. An extension of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It has changed nothing, or a part that its answer does not count.
    None,
    Unknown,
}

impl Effect {
    const fn unknown_if(is_unknown: bool) -> Self {
        if is_unknown { Self::Unknown } else { Self::None }
    }
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Problem::new(status, detail), Effect::None)
    }

    pub(crate) fn with_unknown_effect(self) -> Self {
        Self(self.0, Effect::Unknown)
    }

    pub(crate) fn without_effect(self) -> Self {
        Self(self.0, Effect::None)
    }

    /// Sets the effect to unknown if the failed store call may have been executed, else to none.
    fn with_effect_of(self, error: &Unavailable) -> Self {
        Self(self.0, Effect::unknown_if(error.outcome_is_unknown()))
    }

    fn unavailable(reason: impl Display, advice: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}: {advice}"))
    }

    /// The 503 of a call that is not safe to repeat blindly. The advice depends on whether the
    /// call may have taken effect.
    fn by_outcome(error: &Unavailable, unknown: &str, unchanged: &str) -> Self {
        let advice = if error.outcome_is_unknown() { unknown } else { unchanged };
        Self::unavailable(error, advice).with_effect_of(error)
    }

    /// The 503 of a batch of which no job is known to be accepted.
    pub(crate) fn of_batch<'a>(error: &Unavailable, unknown: impl Iterator<Item = &'a JobKey>) -> Self {
        let Self(problem, effect) = Self::by_outcome(
            error,
            "it is not known which of these jobs were accepted; submitting them again with their ids is safe",
            "no job was accepted; retry later",
        );
        Self(Problem { jobs: unknown.map(JobReference::from).collect(), ..problem }, effect)
    }

    /// The 503 of a job of a batch.
    pub(crate) fn of_item(failure: &ItemFailure) -> Self {
        let Self(problem, effect) = Self::by_outcome(
            &failure.error,
            "it is not known whether the job was accepted; submitting it again with its id is safe",
            NOT_ACCEPTED,
        );
        let problem = match &failure.key {
            Some(key) => problem.about(key),
            None => problem,
        };
        Self(problem, effect)
    }

    /// The 503 of a call that changes one job: reschedule, run or revive.
    pub(crate) fn of_job_action(error: &Unavailable, key: &JobKey) -> Self {
        Self::by_outcome(
            error,
            "it is not known whether this took effect; look at the job before you retry",
            "nothing was changed; retry later",
        )
        .about(error, key)
    }

    pub(crate) fn of_submit(error: &Unavailable, key: &JobKey) -> Self {
        Self::by_outcome(
            error,
            "it is not known whether the job was accepted; submitting it again is safe, with the Idempotency-Key that it had, else with this id",
            NOT_ACCEPTED,
        )
        .about(error, key)
    }

    /// The 503 of a call about one job that has the same effect when repeated: cancel or purge.
    pub(crate) fn of_repeatable(error: &Unavailable, key: &JobKey) -> Self {
        Self::unavailable(error, RETRY_LATER).with_effect_of(error).about(error, key)
    }

    /// Adds the job's topic and id to the problem if the call may have taken effect.
    fn about(self, error: &Unavailable, key: &JobKey) -> Self {
        if error.outcome_is_unknown() { Self(self.0.about(key), self.1) } else { self }
    }

    /// The 503 of a call that starts a bulk operation.
    pub(crate) fn of_bulk(error: &Unavailable) -> Self {
        Self::by_outcome(
            error,
            "it is not known whether the operation started; look at GET /v1/bulk before you retry",
            "nothing was changed; retry later",
        )
    }

    /// The 503 of a large request that waited too long for memory or for other batches.
    pub(crate) fn busy() -> Self {
        Self::unavailable("too many large requests at once", "nothing was accepted; retry later")
    }

    pub(crate) fn retry_later(reason: impl Display) -> Self {
        Self::unavailable(reason, RETRY_LATER)
    }
}

/// A 503, only shortly after the start, until the topic policies have been read.
impl From<ConfigUnknown> for ApiError {
    fn from(error: ConfigUnknown) -> Self {
        Self::unavailable(error, RETRY_LATER)
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(problem, Effect::None)
    }
}

/// The 503 of a call that passed its deadline. It advises to repeat the call, so the call must be safe to repeat.
impl From<Elapsed> for ApiError {
    fn from(_: Elapsed) -> Self {
        Self::unavailable("the store did not answer in time", RETRY_LATER).with_unknown_effect()
    }
}

impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        let Self(problem, _) = Self::unavailable(public_message(error), RETRY_LATER);
        Self(problem, Effect::unknown_if(outcome_is_unknown(error)))
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        log(&error);
        Self::from(&error)
    }
}

impl From<QuotaError> for ApiError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Policies(error) => error.into(),
            QuotaError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).expect("plain data always serialises");
        let mut response =
            (status, [(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], body).into_response();
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.1 == Effect::Unknown {
            response.extensions_mut().insert(self.1);
        }
        response
    }
}

pub(crate) async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "there is nothing here; the calls are listed in /openapi.json")
}

/// The answer to a method that the path does not have. The router adds the Allow header.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here; see the Allow header")
}

#[expect(clippy::needless_pass_by_value, reason = "the signature is given")]
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    tracing::error!(panic = message, "a request handler panicked");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "an internal server error; it has been logged")
        .into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn detail(error: StoreError) -> String {
        ApiError::of_item(&ItemFailure { error: Unavailable::Store(Arc::new(error)), key: None }).0.detail
    }

    #[test]
    fn only_a_503_says_when_to_retry() {
        let response = ApiError::from(&StoreError::Unprepared).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
        let other = ApiError::new(StatusCode::NOT_FOUND, "").into_response();
        assert!(!other.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn the_detail_says_whether_the_outcome_is_known() {
        assert!(detail(StoreError::Slow(Duration::from_secs(1))).contains("is not known"));
        assert!(detail(StoreError::Full).contains("was not accepted"));
        assert!(detail(StoreError::Unprepared).contains("was not accepted"));
    }

    #[test]
    fn a_503_names_the_job_if_the_call_may_have_taken_effect() {
        let key = JobKey { topic: "t".parse().unwrap(), id: "a".parse().unwrap() };
        for (error, id) in [(StoreError::Unreplicated, Some("a")), (StoreError::NoReplica, None)] {
            let error = Unavailable::Store(Arc::new(error));
            for call in [ApiError::of_submit, ApiError::of_job_action, ApiError::of_repeatable] {
                assert_eq!(call(&error, &key).0.id.as_deref(), id, "{error}");
            }
        }
    }

    #[test]
    fn the_setup_of_the_store_is_hidden_from_callers() {
        assert!(!detail(StoreError::Unfit("secret layout".to_owned())).contains("secret"));
    }

    #[test]
    fn the_message_of_a_panic_is_hidden_from_callers() {
        let response = panicked(Box::new("out of luck"));
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
    }
}
