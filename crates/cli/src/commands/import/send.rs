//! Sends a batch of an import until every line has a result: lines with a transient failure are sent again. It gives up
//! when no line gets a result within the time for retries.

use http::Method;
use ringback_wire::{ImportResponse, Problem};

use super::super::call_retries::{PatientCalls, Retry};
use super::super::session::parse;
use super::read::Batch;
use crate::access::tenant_header;
use crate::client::{Call, Client, ClientError, LONG, is_transient};

/// The results of a batch.
#[derive(Debug)]
pub(crate) struct BatchResult {
    pub(crate) batch: Batch,
    pub(crate) created: u64,
    pub(crate) repeated: u64,
    /// The refused lines, in order.
    pub(crate) refused: Vec<(u64, Problem)>,
    /// The reason why it is not finished, if it is not.
    pub(crate) stopped: Option<ClientError>,
}

/// Sends a batch, and sends lines with a transient failure again. `stopped` in the result is set if it gave up, or an
/// error was permanent.
pub(crate) async fn send(calls: PatientCalls<'_>, mut batch: Batch) -> BatchResult {
    let PatientCalls { client, retry_for, progress } = calls;
    let refused = std::mem::take(&mut batch.refused);
    let mut sent = BatchResult { created: 0, repeated: 0, refused, stopped: None, batch: batch.clone() };
    // The results need only the line numbers.
    sent.batch.bytes.clear();
    let mut left = batch;
    let mut retry = Retry::new(retry_for);
    while !left.lines.is_empty() {
        let before = left.lines.len();
        let error = match round(client, &mut left, &mut sent).await {
            Ok(None) => break,
            Ok(Some(error)) | Err(error) => error,
        };
        if left.lines.len() < before {
            retry = Retry::new(retry_for);
        }
        if let Err(error) = retry.pause(error, progress).await {
            sent.stopped = Some(error);
            break;
        }
    }
    sent.refused.sort_by_key(|(number, _)| *number);
    sent
}

/// Sends the lines of `left` once and adds their results to `sent`. `left` keeps the lines with a transient failure, of
/// which the last is returned; `None` if there are none.
async fn round(
    client: &Client,
    left: &mut Batch,
    sent: &mut BatchResult,
) -> Result<Option<ClientError>, ClientError> {
    let body = Some(("application/x-ndjson", left.bytes.clone()));
    let mut call = Call { body, ..Call::new(Method::POST, &["v1", "import"]) };
    call.headers.extend(left.tenant.clone().map(|tenant| (tenant_header(), tenant)));
    let body = client.ask(call, LONG).await.map_err(|error| error.for_route("imports"))?.body;
    let answer: ImportResponse = parse(&body)?;
    check(&answer, left.lines.len())?;
    sent.created += answer.created as u64;
    sent.repeated += answer.repeated as u64;
    let mut again = Vec::new();
    let mut error = None;
    for problem in answer.problems {
        let place = problem.line - 1;
        if is_transient(problem.status) {
            again.push(place);
            error = Some(ClientError::Problem { problem: Box::new(problem.problem), retry_after: None });
        } else {
            sent.refused.push((left.lines[place].0, problem.problem));
        }
    }
    *left = left.only(&again);
    Ok(error)
}

/// Checks that the response has exactly one result for every line.
fn check(answer: &ImportResponse, lines: usize) -> Result<(), ClientError> {
    let mut places: Vec<_> = answer.problems.iter().map(|problem| problem.line).collect();
    places.sort_unstable();
    places.dedup();
    let distinct = places.len() == answer.problems.len() && places.len() == answer.refused;
    let inside = places.iter().all(|line| (1..=lines).contains(line));
    if distinct && inside && answer.created + answer.repeated + answer.refused == lines {
        return Ok(());
    }
    let counts = format!("{} + {} + {}", answer.created, answer.repeated, answer.refused);
    Err(ClientError::Unreadable(format!("{lines} lines were sent, and it counts {counts}")))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use ringback_wire::ImportProblem;

    use super::*;

    #[test]
    fn a_response_has_one_result_for_every_line() {
        let problem =
            |line| ImportProblem { line, status: 409, problem: Problem::new(StatusCode::CONFLICT, "") };
        let answer = |created, lines: &[usize]| ImportResponse {
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
        assert!(check(&ImportResponse { refused: 0, ..answer(1, &[1]) }, 2).is_err());
    }
}
