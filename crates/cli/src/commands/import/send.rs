//! One batch, sent until the server has had its word on every line, or for as long as the
//! patience lasts after the first failure since its last word.

use std::time::Duration;

use http::Method;
use ringback_core::wire::{ImportAnswer, Problem};
use tokio::time::{Instant, sleep};

use super::super::{FIRST_WAIT, LAST_WAIT, parse};
use super::read::Batch;
use crate::client::{Call, Client, ClientError, LONG, passes};
use crate::progress::Progress;

/// What became of a batch.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) batch: Batch,
    pub(super) created: u64,
    pub(super) repeated: u64,
    /// The lines that were not taken, in order.
    pub(super) refused: Vec<(u64, Problem)>,
    /// Why it is not finished, if it is not.
    pub(super) stopped: Option<ClientError>,
}

/// Sends a batch; what fails for the moment is sent again.
pub(super) async fn send(client: &Client, mut batch: Batch, patience: Duration, progress: &Progress) -> Sent {
    let refused = std::mem::take(&mut batch.refused);
    let mut sent = Sent { created: 0, repeated: 0, refused, stopped: None, batch: batch.clone() };
    // Its bytes are needed no longer than this call.
    sent.batch.bytes.clear();
    let mut left = batch;
    // Set by the first failure: a call may itself take longer than the patience lasts.
    let mut deadline = None;
    let mut wait = FIRST_WAIT;
    while !left.lines.is_empty() {
        let before = left.lines.len();
        let error = match round(client, &mut left, &mut sent).await {
            Ok(None) => break,
            Ok(Some(error)) | Err(error) => error,
        };
        if left.lines.len() < before {
            (deadline, wait) = (None, FIRST_WAIT);
        }
        let pause = error.retry_after().unwrap_or_default().max(wait);
        let end = *deadline.get_or_insert_with(|| Instant::now() + patience);
        if !error.is_transient() || Instant::now() + pause > end {
            sent.stopped = Some(error);
            break;
        }
        progress.waiting(&error, patience);
        sleep(pause).await;
        wait = (wait * 2).min(LAST_WAIT);
    }
    sent.refused.sort_by_key(|(number, _)| *number);
    sent
}

/// Sends what is left once; the lines that it leaves failed for the moment, as told.
async fn round(
    client: &Client,
    left: &mut Batch,
    sent: &mut Sent,
) -> Result<Option<ClientError>, ClientError> {
    let body = Some(("application/x-ndjson", left.bytes.clone()));
    let call = Call { body, ..Call::new(Method::POST, &["v1", "import"]) };
    let body = client.ask(call, LONG).await.map_err(|error| error.of_whole("imports"))?.body;
    let answer: ImportAnswer = parse(&body)?;
    check(&answer, left.lines.len())?;
    sent.created += answer.created as u64;
    sent.repeated += answer.repeated as u64;
    let mut again = Vec::new();
    let mut error = None;
    for problem in answer.problems {
        let place = problem.line - 1;
        if passes(problem.status) {
            again.push(place);
            error = Some(ClientError::Problem { problem: Box::new(problem.problem), retry_after: None });
        } else {
            sent.refused.push((left.lines[place].0, problem.problem));
        }
    }
    *left = left.only(&again);
    Ok(error)
}

/// Every line must have exactly one word.
fn check(answer: &ImportAnswer, lines: usize) -> Result<(), ClientError> {
    let mut places: Vec<_> = answer.problems.iter().map(|problem| problem.line).collect();
    places.sort_unstable();
    places.dedup();
    let distinct = places.len() == answer.problems.len() && places.len() == answer.refused;
    let inside = places.iter().all(|line| (1..=lines).contains(line));
    if distinct && inside && answer.created + answer.repeated + answer.refused == lines {
        return Ok(());
    }
    let counts = format!("{} + {} + {}", answer.created, answer.repeated, answer.refused);
    Err(ClientError::Unreadable(format!("{lines} lines were sent, and it speaks of {counts}")))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use ringback_core::wire::ImportProblem;

    use super::*;

    #[test]
    fn an_answer_must_speak_of_every_line_once() {
        let problem =
            |line| ImportProblem { line, status: 409, problem: Problem::new(StatusCode::CONFLICT, "") };
        let answer = |created, lines: &[usize]| ImportAnswer {
            created,
            repeated: 1,
            refused: lines.len(),
            problems: lines.iter().copied().map(problem).collect(),
        };
        assert!(check(&answer(1, &[4, 2]), 4).is_ok());
        assert!(check(&answer(3, &[]), 4).is_ok());
        for wrong in
            [answer(1, &[2, 2]), answer(1, &[0, 1]), answer(1, &[4, 5]), answer(0, &[1, 2]), answer(4, &[])]
        {
            assert!(check(&wrong, 4).is_err(), "{wrong:?}");
        }
        assert!(check(&ImportAnswer { refused: 0, ..answer(1, &[1]) }, 2).is_err());
    }
}
