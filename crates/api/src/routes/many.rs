//! What batches and imports have in common: each item is judged by itself, and goes to the
//! store while the next ones are being read.

use bytes::Bytes;
use ringback_core::wire::{FieldError, Problem};

use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::Pieces;
use crate::metrics::{Metrics, Outcome};
use crate::submit::{Answered, Inlet, Item, Lines, Unavailable};

/// After so many bytes of items others get their turn.
const STRETCH: usize = 16 * 1024;
/// Wrong fields of a batch are named until the list takes so many bytes; one list per item could
/// make an answer many times as large as its request.
const MOST_ERRORS: usize = 4 * 1024 * 1024;

/// What became of the items, each beside its number.
#[derive(Default)]
pub(super) struct Judged {
    /// Those that are no jobs.
    pub(super) wrong: Vec<(usize, Problem)>,
    /// Those that are.
    pub(super) answers: Vec<Answered>,
}

/// Sends all items that are jobs to the store.
///
/// # Errors
/// A 503 problem when there were only jobs and the store took none of them.
pub(super) async fn judged<J: Item>(
    lines: &Lines<J>,
    metrics: &Metrics,
    pieces: Pieces,
    parse: impl Fn(&[u8]) -> Result<J, Problem>,
) -> Result<Judged, ApiError> {
    let Pieces { items, share, deadline, turn: _turn } = pieces;
    let (inlet, answers) = lines.submit_all(&share, deadline);
    let (mut judged, answers) = tokio::join!(sort(items, parse, inlet, deadline), answers);
    judged.answers.extend(answers);
    count_outcomes(metrics, &judged);
    if judged.wrong.is_empty()
        && let Some(failure) = why_all_failed(&judged.answers)
    {
        return Err(ApiError::of_batch(failure));
    }
    Ok(judged)
}

/// Parses the items and hands in those that are jobs, so that the store has something to do
/// meanwhile. When it has failed and the time is up, what is left is not looked at. The answers
/// are those of jobs that were not even handed in.
async fn sort<J: Item>(
    items: Vec<(usize, Bytes)>,
    parse: impl Fn(&[u8]) -> Result<J, Problem>,
    inlet: Inlet<'_, J>,
    deadline: Deadline,
) -> Judged {
    let (mut judged, mut stretch, mut errors) = (Judged::default(), 0, 0);
    for (number, item) in items {
        if stretch >= STRETCH {
            stretch = 0;
            tokio::task::yield_now().await;
        }
        stretch += item.len();
        if inlet.has_failed() && deadline.has_passed() {
            judged.answers.push((number, Err(Unavailable::NotTried)));
            continue;
        }
        match parse(&item) {
            Ok(job) => judged.answers.extend(inlet.hand_in(number, job)),
            Err(problem) => judged.wrong.push((number, shortened(problem, &mut errors))),
        }
    }
    judged
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

fn count_outcomes(metrics: &Metrics, judged: &Judged) {
    metrics.submitted(Outcome::Invalid, judged.wrong.len());
    for (_, answer) in &judged.answers {
        let outcome = answer.as_ref().map_or(Outcome::Unavailable, |submitted| submitted.answer.into());
        metrics.submitted(outcome, 1);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::room::Room;
    use crate::state::tests::unprepared;

    /// What is made of two jobs and two others, so long after they came, when the store has failed.
    async fn judged_after(wait: Duration) -> (Vec<usize>, Vec<usize>) {
        let (api, deadline) = (unprepared(), Deadline::from_now());
        let share = Room::default().take(1).await.unwrap();
        let (inlet, answers) = api.submits.submit_all(&share, deadline);
        drop(answers);
        tokio::time::advance(wait).await;
        let items = ["{}", r#"{"topic":"t","url":"http://h/"}"#, "5", r#"{"topic":"u","url":"http://h/"}"#];
        let items = items.map(|item| Bytes::from_static(item.as_bytes())).into_iter().enumerate().collect();
        let judged = sort(items, |item| api.parse(item, None, None), inlet, deadline).await;
        let numbers = judged.wrong.iter().map(|(number, _)| *number).collect();
        (numbers, judged.answers.iter().map(|(number, _)| *number).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn items_are_judged_while_there_is_time_though_the_store_has_failed() {
        assert_eq!(judged_after(Duration::from_secs(1)).await, (vec![0, 2], vec![1, 3]));
        assert_eq!(judged_after(Duration::from_secs(2)).await, (vec![], vec![0, 1, 2, 3]));
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
