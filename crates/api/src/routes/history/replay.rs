//! `POST /v1/history/replay`: submits the ended jobs that match a filter again, for about a second with each call.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use http::StatusCode;
use ringback_admission::{Principal, invalid_field, limit_reached};
use ringback_archive::EndedJobRow;
use ringback_archive::history::{Cursor, HistoryFilter, HistoryPage, HistoryRequest, LastOf, Order};
use ringback_core::clock::Timestamp;
use ringback_core::store_types::{InvalidCursor, NOTICE_TOPICS, SubmitResult, Submitted};
use ringback_service::http_server::Peer;
use ringback_wire::{
    AuditLogTarget, HistoryFilter as WrittenFilter, MAX_REFUSALS, Problem, ReplayIds, ReplayRefusal,
    ReplayRequest, ReplayResponse,
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::super::bulk_submit::{BulkResults, submit_items};
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::ApiError;
use crate::extract::{Items, JsonBody};
use crate::history::filter_of;
use crate::limits::Deadline;
use crate::schema::SubmitJobProblems;
use crate::state::{Api, ApiState};
use crate::whole_jobs;

/// How long one call submits jobs.
const REPLAY_FOR: Duration = Duration::from_secs(1);
/// How many groups of jobs are submitted in a second.
const GROUPS: u32 = 10;

/// Replay a part of the history
///
/// Submits the ended jobs that a filter matches again, the oldest first, to be due at once. If a job ended several
/// times, the last match counts, and none if the job was done or cancelled after that. Notices are left out. One call
/// submits for about a second, at `rate` jobs a second; while there are more the answer has `next`: call again with it
/// as `cursor`, and with the same filter. Jobs that end after the first call are left out.
///
/// With new ids, `<id>~<16 hexadecimal digits>`, which follow from the job and the `name` of the replay, a repeated
/// call submits no job twice as long as the store knows the ids. With the same ids, the last generation of each id is
/// submitted, and only where the id is free: a dead job can be revived instead. Each job is checked as any other submit
/// is, and refused if it has a secret header, which the archive does not have, or a body that it has not kept.
#[utoipa::path(
    post, path = "/v1/history/replay", tag = "history", operation_id = "replay_history",
    request_body = ReplayRequest,
    responses((status = 200, description = "Submitted", body = ReplayResponse), SubmitJobProblems),
)]
pub(crate) async fn replay_history(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    JsonBody(upload, turn): JsonBody,
) -> Audited<ReplayResponse> {
    let ask = ReplayRequest::parse(&upload.bytes);
    drop((upload, turn));
    let mut ask = ask?;
    if let Some(topic) = &mut ask.filter.topic {
        *topic = caller.topic(topic)?;
    }
    let cursor = match &ask.cursor {
        Some(text) => text.parse().map_err(|_| {
            invalid_field("cursor", "is not a cursor of a replay", "`next` of the previous answer, or none")
        })?,
        None => ReplayCursor { before: api.now(), after: None },
    };
    api.history.check()?;
    let _turn = Deadline::from_now().bound(api.replays.wait(caller.holder(peer))).await?;
    let _permit = api.acquire_for_whole_jobs(whole_jobs::ONE_PAGE).await?;
    let replay = Replay { api: &api, caller: &caller, ask: &ask };
    let answer = replay.run(cursor).await?;
    Ok((change(&ask, &answer), Json(answer)))
}

/// What a call has submitted again, for the audit log.
fn change(ask: &ReplayRequest, answer: &ReplayResponse) -> Change {
    let WrittenFilter { topic, id, tag, .. } = &ask.filter;
    let target = AuditLogTarget {
        topic: topic.as_ref().map(ToString::to_string),
        id: id.as_ref().map(ToString::to_string),
        tag: tag.clone(),
        ..AuditLogTarget::default()
    };
    let ReplayResponse { submitted, existing, refused, next, .. } = answer;
    let counts =
        json!({"submitted": submitted, "existing": existing, "refused": refused, "complete": next.is_none()});
    Change::of(target).after(counts).count(*submitted)
}

/// A replay, as far as one call makes it.
struct Replay<'a> {
    api: &'a Arc<Api>,
    caller: &'a Principal,
    ask: &'a ReplayRequest,
}

impl Replay<'_> {
    async fn run(&self, mut cursor: ReplayCursor) -> Result<ReplayResponse, ApiError> {
        let (begun, mut answer, mut seen) = (Instant::now(), ReplayResponse::default(), 0);
        loop {
            let step = self.step(&mut cursor, &mut answer).await;
            let Step { tried, has_more } = match step {
                Ok(step) => step,
                // What was done counts, and the rest is left to the next call.
                Err(_) if answer.submitted + answer.existing + answer.refused > 0 => {
                    return Ok(ReplayResponse { next: Some(cursor.to_string()), ..answer });
                }
                Err(error) => return Err(error),
            };
            seen += tried;
            if !has_more {
                return Ok(answer);
            }
            // So the next call begins no earlier than the rate allows.
            sleep_until(begun + Duration::from_secs(1) * seen / self.ask.rate).await;
            if begun.elapsed() >= REPLAY_FOR {
                return Ok(ReplayResponse { next: Some(cursor.to_string()), ..answer });
            }
        }
    }

    /// Submits the jobs of the next page, counts the results in `answer`, and moves the cursor behind them.
    ///
    /// # Errors
    /// If some were not tried. Those before the first of them are counted, and the cursor is behind these.
    async fn step(&self, cursor: &mut ReplayCursor, answer: &mut ReplayResponse) -> Result<Step, ApiError> {
        let ask = HistoryRequest {
            filter: self.filter(cursor.before),
            order: Order::Oldest,
            last_of: Some(match self.ask.ids {
                ReplayIds::New => LastOf::Generation,
                ReplayIds::Same => LastOf::Id,
            }),
            after: cursor.after.clone(),
            limit: self.ask.rate.div_ceil(GROUPS) as usize,
            with_attempts: false,
            with_requests: true,
        };
        let HistoryPage { rows, has_more } = self.api.history.page(ask).await?;
        let (results, error) = self.submit(&rows).await?;
        let tried = results.iter().position(Option::is_none).unwrap_or(results.len());
        for (row, result) in rows.iter().zip(results.into_iter().flatten()).take(tried) {
            match result {
                Replayed::Submitted => answer.submitted += 1,
                Replayed::Existing => answer.existing += 1,
                Replayed::Refused(detail) => refuse(answer, row, detail),
            }
        }
        cursor.after = rows[..tried].last().map(Cursor::from).or(cursor.after.take());
        match error {
            Some(error) => Err(error),
            None => Ok(Step { tried: u32::try_from(tried).unwrap_or(u32::MAX), has_more }),
        }
    }

    /// The filter of the replay, limited to what the caller may see, without notices and what ended after `before`.
    fn filter(&self, before: Timestamp) -> HistoryFilter {
        let mut filter = self.ask.filter.clone();
        filter.finished_before = Some(filter.finished_before.map_or(before, |wanted| wanted.min(before)));
        // Notices are made by Ringback alone.
        let not_topics = NOTICE_TOPICS.map(str::to_owned).into();
        HistoryFilter { not_topics, ..filter_of(self.caller, &filter) }
    }

    /// Submits some ended jobs again. The result of a job is `None` if it was not submitted, or it is not known whether
    /// it was; then the error says why. If it was accepted all the same, the next call finds that it exists.
    ///
    /// # Errors
    /// If no job was submitted.
    async fn submit(
        &self,
        rows: &[EndedJobRow],
    ) -> Result<(Vec<Option<Replayed>>, Option<ApiError>), ApiError> {
        let (mut items, mut results, mut error) = (Vec::new(), vec![None; rows.len()], None);
        for (number, row) in rows.iter().enumerate() {
            let id = match self.ask.ids {
                // What this replay has submitted is not a part of it, also if it is begun again.
                ReplayIds::New if row.is_of_replay(&self.ask.name) => {
                    results[number] = Some(Replayed::Existing);
                    continue;
                }
                ReplayIds::New => row.replay_id(&self.ask.name),
                ReplayIds::Same => row.id.clone(),
            };
            match row.submit_again(&id) {
                Ok(json) => items.push((number, Bytes::from(json))),
                Err(why) => results[number] = Some(Replayed::Refused(why.to_owned())),
            }
        }
        if items.is_empty() {
            return Ok((results, None));
        }
        let bytes = items.iter().map(|(_, json)| json.len()).sum();
        let deadline = Deadline::from_now();
        let permit = self.api.memory.acquire(bytes).await.ok_or_else(ApiError::busy)?;
        let turn = deadline.bound(Arc::clone(&self.api.batches).acquire_owned()).await?;
        let turn = turn.map_err(|_closed| ApiError::busy())?;
        let parse = |_: usize, item: &[u8]| self.api.admission.parse_job(item, None, &mut None, self.caller);
        let items = Items { items, permit, deadline, turn };
        let BulkResults { invalid, submitted } =
            submit_items(self.api, self.caller, &self.api.submits, items, parse).await?;
        for (number, problem) in invalid {
            if problem.status == StatusCode::TOO_MANY_REQUESTS {
                error = Some(problem.into());
            } else {
                results[number] = Some(Replayed::Refused(in_one_line(&problem)));
            }
        }
        for (number, result) in submitted {
            match result {
                Ok(Submitted { answer: SubmitResult::Full(limit), .. }) if limit.is_of_tenant() => {
                    error = Some(limit_reached(limit).into());
                }
                Ok(Submitted { answer, .. }) => results[number] = Some(answer.into()),
                Err(failure) => error = Some(ApiError::of_item(&failure)),
            }
        }
        Ok((results, error))
    }
}

struct Step {
    /// How many ended jobs have a result.
    tried: u32,
    has_more: bool,
}

/// The result of submitting one job again.
#[derive(Clone, Debug)]
enum Replayed {
    Submitted,
    Existing,
    Refused(String),
}

impl From<SubmitResult> for Replayed {
    fn from(result: SubmitResult) -> Self {
        match result {
            SubmitResult::Created => Self::Submitted,
            SubmitResult::Full(limit) => Self::Refused(in_one_line(&limit_reached(limit))),
            SubmitResult::Repeated
            | SubmitResult::Replaced
            | SubmitResult::Postponed
            | SubmitResult::Conflict
            | SubmitResult::Cancelled
            | SubmitResult::Reserved { .. } => Self::Existing,
        }
    }
}

fn refuse(answer: &mut ReplayResponse, row: &EndedJobRow, detail: String) {
    answer.refused += 1;
    if answer.refusals.len() < MAX_REFUSALS {
        let (topic, id, finished_at) = (row.topic.clone(), row.id.clone(), row.finished().to_string());
        answer.refusals.push(ReplayRefusal { topic, id, finished_at, detail });
    }
}

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
    /// The last ended job that has a result; `None` at the beginning.
    after: Option<Cursor>,
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
        let place = Cursor {
            finished_at: 5,
            topic: "t".to_owned(),
            id: "i".to_owned(),
            generation: 3,
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
