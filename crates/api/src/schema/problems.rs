//! OpenAPI responses: which problems each operation can return, and their meaning.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
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
    /// The problems of POST /v1/jobs.
    SubmitProblems: 400 408 409 413 415 422 503;
    /// The problems of POST /v1/jobs/batch.
    BatchProblems: 400 408 413 415 422 503;
    /// The problems of GET /v1/jobs/{topic}/{id}.
    GetProblems: 400 404 422 503;
    /// The problems of DELETE /v1/jobs/{topic}/{id}.
    CancelProblems: 400 404 409 422 503;
    /// The problems of PATCH /v1/jobs/{topic}/{id}.
    RescheduleProblems: 400 404 408 409 413 415 422 503;
    /// The problems of POST /v1/jobs/{topic}/{id}/run and …/revive.
    JobActionProblems: 400 404 408 409 413 422 503;
    /// The problems of GET /v1/jobs.
    ListProblems: 400 422 503;
    /// The problems of GET /v1/export.
    ExportProblems: 400 422 503;
    /// The problems of GET /v1/events.
    EventsProblems: 400 422 503;
    /// The problems of POST /v1/import.
    ImportProblems: 408 413 415 503;
    /// The problems of PUT /v1/topics/{topic}.
    PutPolicyProblems: 400 408 409 413 415 422 503;
    /// The problems of DELETE /v1/topics/{topic}.
    DeleteTopicProblems: 400 409 422 503;
    /// The problems of POST /v1/topics/{topic}/reserve.
    ReserveProblems: 400 408 413 415 422 503;
    /// The problems of POST /v1/receipts/{receipt}/….
    ReceiptProblems: 400 404 408 409 413 415 422 503;
    /// The problems of POST /v1/receipts/finish.
    FinishAllProblems: 400 408 413 415 422 503;
    /// The problems of GET /v1/topics/{topic}/dead.
    DeadProblems: 400 422 503;
    /// The problems of DELETE /v1/topics/{topic}/dead.
    PurgeProblems: 400 422 503;
    /// The problems of DELETE /v1/topics/{topic}/dead/{id}.
    PurgeOneProblems: 400 404 409 422 503;
    /// The problems of POST /v1/topics/{topic}/dead/revive.
    BeginRedriveProblems: 400 408 409 413 415 422 503;
    /// The problems of GET /v1/topics/{topic}/revivals.
    RedrivesProblems: 400 422 503;
    /// The problems of GET and DELETE /v1/topics/{topic}/revivals/{revival}.
    RedriveProblems: 404 503;
    /// The problems of GET /v1/stats.
    StatsProblems: 503;
    /// The problems of GET /v1/topics.
    TopicsProblems: 400 422 503;
    /// The problems of GET /v1/topics/{topic}.
    TopicProblems: 400 404 422 503;
    /// The problems of POST /v1/topics/{topic}/pause.
    PauseProblems: 400 408 413 422 503;
    /// The problems of POST /v1/topics/{topic}/resume.
    ResumeProblems: 400 404 408 413 422 503;
    /// The problems of GET /v1/audit.
    AuditProblems: 503;
    /// The problems of POST /v1/audit/repair.
    RepairProblems: 400 408 413 422 503;
}

fn response(status: u16) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = ResponseBuilder::new().description(meaning(status)).content(MEDIA_TYPE, content);
    let response = if status == 503 {
        let header = HeaderBuilder::new().description(Some("When to retry, in seconds"));
        response.header("Retry-After", header.build())
    } else {
        response
    };
    response.build().into()
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "Not readable: not JSON of the expected kind, or not UTF-8",
        404 => "No such job, topic, revival or receipt is known",
        408 => "The request's body did not arrive in time, or too slowly",
        409 => {
            "The job is in another state, another job has this topic and id, the receipt no longer holds its job, the topic has jobs, too many topics have a policy, or too many revivals are running"
        }
        413 => "The request, or a job's body, is too large",
        415 => "The content type is not supported",
        422 => "Some fields or parameters are invalid; all of them are listed in errors",
        503 => {
            "The store is unreachable or full, or too many large requests, exports, audits or event streams are in progress; retry later"
        }
        _ => "A problem",
    }
}
