//! Jobs from elsewhere, with what they have behind them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::wire::{ImportAnswer, ImportProblem, Problem};

use super::jobs::judge;
use super::many::{Judged, judged};
use crate::error::ApiError;
use crate::extract::ImportBody;
use crate::openapi::{ImportLine, ImportProblems};
use crate::state::Api;

/// Import jobs
///
/// Lines of JSON as an export wrote them, or jobs as they are submitted; at most 10,000 lines that
/// are not blank, and 16 MiB. A bad line does not spoil the others. To send a line again does no
/// harm. When the store took none of the lines the whole is answered with 503.
#[utoipa::path(
    post, path = "/v1/import", tag = "jobs", operation_id = "import",
    request_body(content = ImportLine, content_type = "application/x-ndjson", description = "A line per job"),
    responses(
        (status = 200, description = "What became of the lines", body = ImportAnswer),
        ImportProblems,
    ),
)]
pub(crate) async fn import(
    State(api): State<Arc<Api>>,
    ImportBody(pieces): ImportBody,
) -> Result<Json<ImportAnswer>, ApiError> {
    let judged = judged(&api.imports, &api.metrics, pieces, |line| api.parse_import(line)).await?;
    Ok(Json(summed_up(judged)))
}

fn summed_up(Judged { wrong, answers }: Judged) -> ImportAnswer {
    let mut sum = ImportAnswer::default();
    wrong.into_iter().for_each(|(line, problem)| refuse(&mut sum, line, problem));
    for (line, answer) in answers {
        match answer.map(judge) {
            Ok(Ok((StatusCode::CREATED, _))) => sum.created += 1,
            Ok(Ok(_)) => sum.repeated += 1,
            Ok(Err(conflict)) => refuse(&mut sum, line, conflict),
            Err(error) => refuse(&mut sum, line, ApiError::from(error).0),
        }
    }
    sum.problems.sort_unstable_by_key(|problem| problem.line);
    sum
}

fn refuse(sum: &mut ImportAnswer, line: usize, problem: Problem) {
    sum.refused += 1;
    sum.problems.push(ImportProblem { line, status: problem.status, problem });
}
