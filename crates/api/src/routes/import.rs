//! `POST /v1/import`: imports exported jobs with their counts of attempts and failures, and returns a summary.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_wire::{ImportLine, ImportProblem, ImportResponse, Problem};
use serde_json::json;

use super::bulk_submit::{BulkResults, submit_items};
use super::jobs::submit_result;
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::ApiError;
use crate::extract::ImportBody;
use crate::schema::ImportProblems;
use crate::state::ApiState;

/// Import jobs
///
/// Takes lines of JSON: exported jobs, or jobs as they are submitted; at most 10,000 lines that are not
/// blank, and 16 MiB. An invalid line does not affect the others. It is safe to send a line again. The
/// status is 200 even if all lines are refused. If all are valid and the store accepted none of them it is
/// 503.
#[utoipa::path(
    post, path = "/v1/import", tag = "jobs", operation_id = "import_jobs",
    request_body(content = ImportLine, content_type = "application/x-ndjson", description = "A line per job: at most 10,000 and 16 MiB"),
    responses(
        (status = 200, description = "How many lines were imported, and the problems of the others, also if all are refused", body = ImportResponse),
        ImportProblems,
    ),
)]
pub(crate) async fn import(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    ImportBody(items): ImportBody,
) -> Audited<ImportResponse> {
    let results =
        submit_items(&api, &caller, &api.imports, items, |_, line| api.admission.parse_import(line, &caller))
            .await?;
    let summary = summary(results);
    let ImportResponse { created, repeated, refused, .. } = &summary;
    let counts = json!({"created": created, "repeated": repeated, "refused": refused});
    Ok((Change::default().after(counts).count(*created as u64), Json(summary)))
}

fn summary(BulkResults { invalid, submitted }: BulkResults) -> ImportResponse {
    let mut summary = ImportResponse::default();
    invalid.into_iter().for_each(|(line, problem)| refuse(&mut summary, line, problem));
    for (line, result) in submitted {
        match result.map(submit_result) {
            Ok(Ok((StatusCode::CREATED, _))) => summary.created += 1,
            Ok(Ok(_)) => summary.repeated += 1,
            Ok(Err(conflict)) => refuse(&mut summary, line, conflict),
            Err(failure) => refuse(&mut summary, line, ApiError::of_item(&failure).0),
        }
    }
    summary.problems.sort_unstable_by_key(|problem| problem.line);
    summary
}

fn refuse(summary: &mut ImportResponse, line: usize, problem: Problem) {
    summary.refused += 1;
    summary.problems.push(ImportProblem { line, status: problem.status, problem });
}
