//! Replays: the jobs of the history that a filter matches are submitted again, some with each call.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use http::StatusCode;
use ringback_archive::EndRow;
use ringback_archive::history::{HistoryFilter, HistoryPage, Order, PageAsk, Place};
use ringback_core::clock::Timestamp;
use ringback_core::contract::{InvalidCursor, SubmitResult};
use ringback_core::wire::{MAX_REFUSALS, Problem, ReplayAnswer, ReplayAsk, ReplayIds, ReplayRefusal};
use ringback_service::http_server::Peer;
use tokio::time::{Instant, sleep_until};

use super::super::bulk_submit::{BulkResults, submit_items};
use super::super::jobs::limit_reached;
use crate::access::{As, Principal};
use crate::error::{ApiError, JsonResult, invalid_field};
use crate::extract::{Items, JsonBody};
use crate::history::filter_of;
use crate::inspect;
use crate::limits::Deadline;
use crate::schema::{ReplayProblems, ReplayRequest};
use crate::state::{Api, ApiState};

/// How long one call submits jobs.
const REPLAY_FOR: Duration = Duration::from_secs(1);
/// How many groups of jobs are submitted in a second.
const GROUPS: u32 = 10;

/// Replay a part of the history
///
/// Submits again the jobs of the ends that a filter matches, the oldest first, to be due at once. A life of a job is submitted
/// once, however many ends of it match. One call submits for about a second, at `rate` jobs a second; while there are more
/// the answer has `next`: call again with it as `cursor`, and with the same filter. Ends after the first call are left out.
///
/// With new ids, `<id>~<12 hexadecimal digits>`, which follow from the job and the `name` of the replay, a repeated call
/// submits no job twice as long as the store knows the ids. With the same ids, only those are submitted whose id is free: a
/// dead job can be revived instead. Each job is checked as any other submit is, and refused if it has a secret header, which
/// the archive does not have, or a body that it has not kept.
#[utoipa::path(
    post, path = "/v1/history/replay", tag = "history", operation_id = "replay_history",
    request_body = ReplayRequest,
    responses((status = 200, description = "Submitted", body = ReplayAnswer), ReplayProblems),
)]
pub(crate) async fn replay_history(
    State(api): ApiState,
    As(caller): As,
    peer: Peer,
    JsonBody(upload, turn): JsonBody,
) -> JsonResult<ReplayAnswer> {
    let ask = ReplayAsk::parse(&upload.bytes);
    drop((upload, turn));
    let mut ask = ask?;
    if let Some(topic) = &mut ask.filter.topic {
        *topic = caller.topic(topic)?;
    }
    let cursor = match &ask.cursor {
        Some(text) => text.parse().map_err(|_| {
            invalid_field("cursor", "is no cursor of a replay", "`next` of the previous answer, or none")
        })?,
        None => ReplayCursor { before: api.now(), after: None },
    };
    api.history.check()?;
    let _permit = api.acquire_for_whole_jobs(inspect::ONE_PAGE).await?;
    let _turn = Deadline::from_now().bound(api.replays.wait(caller.claimant(peer))).await?;
    let replay = Replay { api: &api, caller: &caller, ask: &ask };
    replay.run(cursor).await.map(Json)
}

/// A replay, as far as one call makes it.
struct Replay<'a> {
    api: &'a Arc<Api>,
    caller: &'a Principal,
    ask: &'a ReplayAsk,
}

impl Replay<'_> {
    async fn run(&self, mut cursor: ReplayCursor) -> Result<ReplayAnswer, ApiError> {
        let (begun, mut answer, mut seen) = (Instant::now(), ReplayAnswer::default(), 0);
        let limit = self.ask.rate.div_ceil(GROUPS);
        loop {
            let ask = PageAsk {
                filter: self.filter(cursor.before),
                order: Order::Oldest,
                after: cursor.after.clone(),
                limit: limit as usize,
                with_attempts: false,
                with_requests: true,
            };
            let HistoryPage { rows, has_more } = self.api.history.page(ask).await?;
            seen += u32::try_from(rows.len()).unwrap_or(u32::MAX);
            if let Err(error) = self.submit(&rows, &mut answer).await {
                // What was submitted before counts, and the rest is left to the next call.
                return if answer == ReplayAnswer::default() {
                    Err(error)
                } else {
                    Ok(ReplayAnswer { next: Some(cursor.to_string()), ..answer })
                };
            }
            cursor.after = rows.last().map(Place::from).or(cursor.after);
            if !has_more {
                return Ok(answer);
            }
            // So the next call begins no earlier than the rate allows.
            sleep_until(begun + Duration::from_secs(1) * seen / self.ask.rate).await;
            if begun.elapsed() >= REPLAY_FOR {
                return Ok(ReplayAnswer { next: Some(cursor.to_string()), ..answer });
            }
        }
    }

    /// The filter, without what ended after the first call.
    fn filter(&self, before: Timestamp) -> HistoryFilter {
        let mut filter = self.ask.filter.clone();
        filter.before = Some(filter.before.map_or(before, |wanted| wanted.min(before)));
        filter_of(self.caller, &filter)
    }

    /// Submits the jobs of some ends.
    ///
    /// # Errors
    /// If not all of them were tried. Then the answer has none of them: those that were submitted exist the next time.
    async fn submit(&self, rows: &[EndRow], answer: &mut ReplayAnswer) -> Result<(), ApiError> {
        let (mut items, mut counts) = (Vec::new(), ReplayAnswer::default());
        let refuse = |counts: &mut ReplayAnswer, row: &EndRow, detail: String| {
            counts.refused += 1;
            if answer.refusals.len() + counts.refusals.len() < MAX_REFUSALS {
                let finished_at =
                    Timestamp::from_millis(u64::try_from(row.finished_at).unwrap_or(0)).to_string();
                counts.refusals.push(ReplayRefusal {
                    topic: row.topic.clone(),
                    id: row.id.clone(),
                    finished_at,
                    detail,
                });
            }
        };
        for (number, row) in rows.iter().enumerate() {
            let id = match self.ask.ids {
                ReplayIds::New => row.replay_id(&self.ask.name),
                ReplayIds::Same => row.id.clone(),
            };
            match row.submit_again(&id) {
                Ok(json) => items.push((number, Bytes::from(json))),
                Err(why) => refuse(&mut counts, row, why.to_owned()),
            }
        }
        let bytes = items.iter().map(|(_, json)| json.len()).sum::<usize>().max(1);
        let deadline = Deadline::from_now();
        let permit = self.api.memory.acquire(bytes).await.ok_or_else(ApiError::busy)?;
        let turn = deadline.bound(Arc::clone(&self.api.batches).acquire_owned()).await?;
        let turn = turn.map_err(|_closed| ApiError::busy())?;
        let parse = |item: &[u8]| self.api.parse_job(item, None, &mut None, self.caller);
        let items = Items { items, permit, deadline, turn };
        let BulkResults { invalid, submitted } =
            submit_items(self.api, self.caller, &self.api.submits, items, parse).await?;
        for (number, problem) in invalid {
            if problem.status == StatusCode::TOO_MANY_REQUESTS {
                return Err(problem.into());
            }
            refuse(&mut counts, &rows[number], in_one_line(&problem));
        }
        for (number, result) in submitted {
            let submitted = result.map_err(|failure| ApiError::of_item(&failure))?;
            match submitted.answer {
                SubmitResult::Created => counts.submitted += 1,
                SubmitResult::Full(limit) => {
                    refuse(&mut counts, &rows[number], in_one_line(&limit_reached(limit)))
                }
                SubmitResult::Repeated
                | SubmitResult::Replaced
                | SubmitResult::Postponed
                | SubmitResult::Conflict
                | SubmitResult::Cancelled
                | SubmitResult::Reserved { .. } => counts.existing += 1,
            }
        }
        answer.submitted += counts.submitted;
        answer.existing += counts.existing;
        answer.refused += counts.refused;
        answer.refusals.append(&mut counts.refusals);
        Ok(())
    }
}

/// A problem in one line.
fn in_one_line(problem: &Problem) -> String {
    let errors: Vec<_> =
        problem.errors.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect();
    if errors.is_empty() { problem.detail.clone() } else { errors.join("; ") }
}

/// How far a replay has come.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReplayCursor {
    /// When it began: what ended later is left out.
    before: Timestamp,
    /// The last end whose job was submitted.
    after: Option<Place>,
}

impl Display for ReplayCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.", self.before.as_millis())?;
        self.after.iter().try_for_each(|place| write!(f, "{place}"))
    }
}

impl FromStr for ReplayCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (before, after) = text.split_once('.').ok_or(InvalidCursor)?;
        let is_hex = (1..=12).contains(&before.len()) && before.bytes().all(|b| b.is_ascii_hexdigit());
        let before = u64::from_str_radix(before, 16).ok().filter(|_| is_hex).ok_or(InvalidCursor)?;
        let after = if after.is_empty() { None } else { Some(after.parse()?) };
        Ok(Self { before: Timestamp::from_millis(before), after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let place = Place {
            finished_at: 5,
            topic: "t".to_owned(),
            id: "i".to_owned(),
            life: 3,
            attempts: 1,
            state: "done".to_owned(),
        };
        for after in [None, Some(place)] {
            let cursor = ReplayCursor { before: Timestamp::from_millis(1 << 41), after };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for other in ["", ".", "x.", "1", "1.x!", "+1.", "1234567890123."] {
            assert_eq!(other.parse::<ReplayCursor>(), Err(InvalidCursor), "{other}");
        }
    }
}
