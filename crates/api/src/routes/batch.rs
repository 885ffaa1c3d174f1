//! Many jobs in one request: each item is judged by itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use http::StatusCode;
use ringback_core::job::Trace;
use ringback_core::store::Submitted;
use ringback_core::wire::{BatchAnswer, BatchResult, FieldError, JobAnswer, Problem};

use super::jobs::judge;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{BatchBody, Caller};
use crate::metrics::Outcome;
use crate::openapi::{BatchProblems, JobRequest};
use crate::state::Api;
use crate::submit::{Answered, Inlet, Unavailable};

/// After so many bytes of items others get their turn.
const STRETCH: usize = 16 * 1024;
/// Wrong fields of a batch are named until the list takes so many bytes; one list per item could
/// make an answer many times as large as its request.
const MOST_ERRORS: usize = 4 * 1024 * 1024;

/// Submit many jobs
///
/// A JSON array, or one job per line as NDJSON; at most 10,000 items and 16 MiB. One result per
/// item, in order; a bad item does not spoil the others. An id twice in one batch is treated as
/// submitted twice. When the store took none of the items the whole is answered with 503.
#[utoipa::path(
    post, path = "/v1/jobs/batch", tag = "jobs", operation_id = "submit_batch",
    request_body(content((Vec<JobRequest> = "application/json"), (String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "A result per item", body = BatchAnswer),
        BatchProblems,
    ),
)]
pub(crate) async fn submit_batch(
    State(api): State<Arc<Api>>,
    Caller(trace): Caller,
    body: BatchBody,
) -> Result<Json<BatchAnswer>, ApiError> {
    let BatchBody { items, share, deadline, turn: _turn } = body;
    let count = items.len();
    let (inlet, answers) = api.lines.submit_all(&share, deadline);
    let (sorted, mut answers) = tokio::join!(sort(&api, items, trace, inlet, deadline), answers);
    answers.extend(sorted.not_tried);
    count_outcomes(&api, sorted.wrong.len(), &answers);
    if answers.len() == count
        && let Some(failure) = why_all_failed(&answers)
    {
        return Err(ApiError::of_batch(failure));
    }
    let mut results = sorted.wrong;
    results.extend(answers.into_iter().map(|(number, answer)| (number, result(answer))));
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(Json(results.into_iter().map(|(_, result)| result).collect::<Vec<_>>().into()))
}

/// What became of the items that did not go to the store, each beside its place.
#[derive(Default)]
struct Sorted {
    wrong: Vec<(usize, BatchResult)>,
    not_tried: Vec<Answered>,
}

/// Parses the items and hands in those that are jobs, so that the store has something to do
/// meanwhile. When it has failed and the time is up, what is left is not looked at.
async fn sort(
    api: &Api,
    items: Vec<Bytes>,
    trace: Option<Trace>,
    inlet: Inlet<'_>,
    deadline: Deadline,
) -> Sorted {
    let (mut sorted, mut stretch, mut errors) = (Sorted::default(), 0, 0);
    for (number, item) in items.into_iter().enumerate() {
        if stretch >= STRETCH {
            stretch = 0;
            tokio::task::yield_now().await;
        }
        stretch += item.len();
        if inlet.has_failed() && deadline.has_passed() {
            sorted.not_tried.push((number, Err(Unavailable::NotTried)));
            continue;
        }
        match api.parse(&item, trace) {
            Ok(job) => sorted.not_tried.extend(inlet.hand_in(number, job)),
            Err(problem) => sorted.wrong.push((number, refused(shortened(problem, &mut errors)))),
        }
    }
    sorted
}

/// A problem that names the wrong fields only while there is room for it.
fn shortened(mut problem: Problem, errors: &mut usize) -> Problem {
    let texts = |e: &FieldError| e.field.len() + e.detail.len() + e.allowed.len();
    *errors += problem.errors.iter().map(texts).sum::<usize>();
    if *errors > MOST_ERRORS && !problem.errors.is_empty() {
        let count = problem.errors.len();
        problem.errors = Vec::new();
        problem.detail = format!("wrong fields: {count}; submit the job alone to see them all");
    }
    problem
}

fn count_outcomes(api: &Api, wrong: usize, answers: &[Answered]) {
    api.metrics.submitted(Outcome::Invalid, wrong);
    for (_, answer) in answers {
        let outcome = answer.as_ref().map_or(Outcome::Unavailable, |submitted| submitted.answer.into());
        api.metrics.submitted(outcome, 1);
    }
}

/// The failure to tell when the store took none of the jobs. What is not known of one item is
/// not known of the batch.
fn why_all_failed(answers: &[Answered]) -> Option<&Unavailable> {
    let failures: Option<Vec<_>> = answers.iter().map(|(_, answer)| answer.as_ref().err()).collect();
    let failures = failures?;
    let unknown = failures.iter().find(|failure| failure.outcome_is_unknown());
    unknown.or(failures.first()).copied()
}

fn result(answer: Result<Submitted, Unavailable>) -> BatchResult {
    match answer {
        Ok(submitted) => judge(submitted).map_or_else(refused, accepted),
        Err(error) => refused(ApiError::from(error).0),
    }
}

fn accepted((status, job): (StatusCode, JobAnswer)) -> BatchResult {
    BatchResult { status: status.as_u16(), job: Some(job), problem: None }
}

fn refused(problem: Problem) -> BatchResult {
    BatchResult { status: problem.status, job: None, problem: Some(problem) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::room::Room;
    use crate::state::tests::unprepared;

    /// What is made of two jobs and two others, so long after they came, when the store has failed.
    async fn sorted_after(wait: Duration) -> (Vec<usize>, Vec<usize>) {
        let (api, deadline) = (unprepared(), Deadline::from_now());
        let share = Room::default().take(1).await.unwrap();
        let (inlet, answers) = api.lines.submit_all(&share, deadline);
        drop(answers);
        tokio::time::advance(wait).await;
        let items = ["{}", r#"{"topic":"t","url":"http://h/"}"#, "5", r#"{"topic":"u","url":"http://h/"}"#];
        let items = items.map(|item| Bytes::from_static(item.as_bytes())).to_vec();
        let sorted = sort(&api, items, None, inlet, deadline).await;
        let numbers = sorted.wrong.iter().map(|(number, _)| *number).collect();
        (numbers, sorted.not_tried.iter().map(|(number, _)| *number).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn items_are_judged_while_there_is_time_though_the_store_has_failed() {
        assert_eq!(sorted_after(Duration::from_secs(1)).await, (vec![0, 2], vec![1, 3]));
        assert_eq!(sorted_after(Duration::from_secs(2)).await, (vec![], vec![0, 1, 2, 3]));
    }

    #[test]
    fn errors_are_named_until_they_are_too_many() {
        let text = || "x".repeat(MOST_ERRORS / 6);
        let error = || FieldError { field: text(), detail: text(), allowed: text() };
        let mut errors = 0;
        let shown = [0; 3].map(|_| shortened(Problem::fields(vec![error()]), &mut errors));
        assert_eq!(shown.each_ref().map(|problem| problem.errors.len()), [1, 1, 0]);
        assert!(shown[2].detail.contains("wrong fields: 1"));
        assert_eq!(shortened(Problem::unreadable("no"), &mut errors).detail, "no");
    }

    #[test]
    fn what_is_not_known_of_one_item_is_not_known_of_the_batch() {
        let failed = |failures: Vec<Unavailable>| -> Vec<Answered> {
            failures.into_iter().enumerate().map(|(number, failure)| (number, Err(failure))).collect()
        };
        let known = failed(vec![Unavailable::NearlyFull, Unavailable::NotTried]);
        assert!(matches!(why_all_failed(&known), Some(Unavailable::NearlyFull)));
        let unknown = failed(vec![Unavailable::NearlyFull, Unavailable::TooLate]);
        assert!(matches!(why_all_failed(&unknown), Some(Unavailable::TooLate)));
        assert!(why_all_failed(&[]).is_none());
    }
}
