//! OpenAPI responses: which problems each kind of operation can return, and the meaning of each status.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

use crate::error::MEDIA_TYPE;

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident: $($status:literal)+;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$($status),+].into_iter().map(|status: u16| (status.to_string(), response(status))).collect()
            }
        }
    )*};
}

problems! {
    /// Calls without parameters and body.
    StoreProblems: 503;
    /// Calls that take a query, a topic or a destination, and never answer 404.
    QueryProblems: 400 422 503;
    /// Calls that return one job or topic, or remove the limits of a destination.
    FindProblems: 400 404 422 503;
    /// Calls that cancel or purge one job.
    RemoveProblems: 400 404 409 422 503;
    /// Calls that take a body and return a list.
    BodyProblems: 400 408 413 415 422 503;
    /// Calls that create something from a body.
    CreateProblems: 400 408 409 413 415 422 503;
    /// Calls that change a job, by a body.
    ChangeProblems: 400 404 408 409 413 415 422 503;
    /// POST /v1/jobs/{topic}/{id}/run and …/revive.
    JobActionProblems: 400 404 408 409 413 422 503;
    /// Calls that refuse a body and never answer 404.
    NoBodyProblems: 400 408 413 422 503;
    /// Calls that refuse a body, may conflict with the state and never answer 404.
    NoBodyConflictProblems: 400 408 409 413 422 503;
    /// Calls without a body that may conflict with the state.
    ConflictProblems: 400 409 422 503;
    /// POST /v1/import.
    ImportProblems: 400 408 413 415 429 503;
    /// Calls about a bulk operation, a key or a secret, by its id.
    IdProblems: 404 503;
    /// DELETE /v1/quotas/{tenant}.
    QuotaProblems: 404 422 503;
    /// POST /v1/jobs/batch.
    BatchProblems: 400 408 413 415 422 429 503;
    /// POST /v1/jobs and /v1/history/replay.
    SubmitJobProblems: 400 408 409 413 415 422 429 503;
    /// DELETE /v1/credentials/{credential}.
    DeleteCredentialProblems: 404 409 422 503;
    /// Calls that pause or resume one topic or schedule.
    ResumeProblems: 400 404 408 413 422 503;
    /// POST /v1/schedules/{id}/run.
    RunScheduleProblems: 400 404 408 413 422 429 503;
    /// DELETE /v1/archive.
    DetachProblems: 409 422 503;
}

/// [`SubmitJobProblems`], where a 409 may say when to submit again.
pub(crate) struct SubmitProblems;

impl IntoResponses for SubmitProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = SubmitJobProblems::responses();
        if let Some(RefOr::T(conflict)) = responses.get_mut("409") {
            let text =
                "When to submit again, in seconds, if the job is being delivered and cannot be changed";
            conflict.headers.insert("Retry-After".to_owned(), RefOr::T(retry_after(text)));
        }
        responses
    }
}

fn response(status: u16) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = ResponseBuilder::new().description(meaning(status)).content(MEDIA_TYPE, content);
    let response = if matches!(status, 429 | 503) {
        response.header("Retry-After", retry_after("When to retry, in seconds"))
    } else {
        response
    };
    response.build().into()
}

fn retry_after(text: &str) -> Header {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
    HeaderBuilder::new().schema(Some(seconds)).description(Some(text)).build()
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "Not readable: not JSON of the expected kind, or not UTF-8",
        404 => {
            "No such job, topic, bulk operation, secret, credential, schedule, key, quota, limit or receipt is known"
        }
        408 => "The request's body did not arrive in time, or too slowly",
        409 => {
            "The request conflicts with the current state, as detail says: the job is in another state; another job has this topic and id; the receipt does not hold its job any more; the topic has jobs; something is still in use, or belongs to something else; there are as many of these as are allowed; there is no master key, root key or archive; or ended jobs wait for the archive"
        }
        413 => "The request, or a job's body, is too large",
        415 => "The content type is not supported",
        422 => "Some fields or parameters are invalid; all of them are listed in errors",
        429 => {
            "The tenant submits more jobs a second than its quota allows, or has as many jobs as that allows; or jobs of too many keys wait for others of their key; nothing was accepted"
        }
        503 => {
            "The store is unreachable or full, less safe than RINGBACK_DURABILITY asks, or has lost jobs and that was not accepted yet; the archive cannot be read now; or too many large requests, exports, checks or event streams are in progress; retry later"
        }
        _ => "A problem",
    }
}
