//! `/v1/receipts`: calls of a consumer about jobs that it has reserved, by their receipts: finish one or many, retry,
//! bury, release, renew. `reserve` issues the receipts.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use futures_util::future::join_all;
use http::StatusCode;
use ringback_core::job::Topic;
use ringback_core::limits::{MAX_BATCH, MAX_RENEWED};
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::store_types::{AttemptLogEntry, Receipt, SettleResult};
use ringback_wire::{
    BuryRequest, EmptyRequest, FinishAllRequest, Problem, ReceiptResponse, ReceiptResult, ReceiptsResponse,
    ReleaseRequest, RenewRequest, RenewResponse, RetryRequest,
};
use tokio::time::timeout;

use crate::access::Authenticated;
use crate::error::{ApiError, JsonResult};
use crate::extract::{MaybeJson, ReceiptPath, check_topics_of, parse_receipt, unknown_receipt};
use crate::limits::Deadline;
use crate::schema::{BodyProblems, ChangeProblems, ReceiptParams};
use crate::state::{Api, ApiState};

/// Finish a job
///
/// Records that the job is done.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/finish", tag = "pull", operation_id = "finish",
    params(ReceiptParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Done, now or before", body = ReceiptResponse), ChangeProblems),
)]
pub(crate) async fn finish(
    State(api): ApiState,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReceiptResponse> {
    EmptyRequest::parse(&json)?;
    settle(&api, receipt, Outcome::Complete, None).await
}

/// Retry a job
///
/// Records that the attempt failed. The job is tried again after `delay`, or after the delay of its
/// retry policy; if the policy allows no further attempt, the job is dead.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/retry", tag = "pull", operation_id = "retry",
    params(ReceiptParams),
    request_body(content = RetryRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Recorded, now or before", body = ReceiptResponse), ChangeProblems),
)]
pub(crate) async fn retry(
    State(api): ApiState,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReceiptResponse> {
    let RetryRequest { delay, error } = RetryRequest::parse(&json)?;
    let lease = Deadline::from_now().bound(api.store.lease_info(&receipt)).await??;
    let by_delay = |error| {
        let after = delay.unwrap_or_default();
        Outcome::Retry { after, last: LastAttempt::by_consumer(error) }
    };
    let (outcome, topic) = match lease {
        Some(lease) if delay.is_some() => (api.in_time(by_delay(error), &lease), lease.topic),
        Some(lease) => (api.failed(&lease, error)?, lease.topic),
        // The receipt is not current. The store knows whether this call is a repetition.
        None => (by_delay(error), None),
    };
    settle(&api, receipt, outcome, topic).await
}

/// Bury a job
///
/// Makes the job dead, without further retries.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/bury", tag = "pull", operation_id = "bury",
    params(ReceiptParams),
    request_body(content = BuryRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Recorded, now or before", body = ReceiptResponse), ChangeProblems),
)]
pub(crate) async fn bury(
    State(api): ApiState,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReceiptResponse> {
    let BuryRequest { reason, error } = BuryRequest::parse(&json)?;
    let outcome = Outcome::Bury { reason: Reason::Custom(reason), last: LastAttempt::by_consumer(error) };
    settle(&api, receipt, outcome, None).await
}

/// Release a job
///
/// Returns the job without counting a failure. It is ready at once, or after `delay`.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/release", tag = "pull", operation_id = "release",
    params(ReceiptParams),
    request_body(content = ReleaseRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Recorded, now or before", body = ReceiptResponse), ChangeProblems),
)]
pub(crate) async fn release(
    State(api): ApiState,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReceiptResponse> {
    let ReleaseRequest { delay: after } = ReleaseRequest::parse(&json)?;
    let outcome = Outcome::Release { after };
    if after.is_zero() {
        // It is judged when it is met.
        return settle(&api, receipt, outcome, None).await;
    }
    let (outcome, topic) = match Deadline::from_now().bound(api.store.lease_info(&receipt)).await?? {
        Some(lease) => (api.in_time(outcome, &lease), lease.topic),
        None => (outcome, None),
    };
    settle(&api, receipt, outcome, topic).await
}

/// Renew a lease
///
/// The consumer keeps the job for `ttr` from now, but at most until 24 hours after it reserved the job, or until its
/// current deadline if that is later. The answer has the deadline that applies.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/renew", tag = "pull", operation_id = "renew",
    params(ReceiptParams),
    request_body(content = RenewRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Renewed", body = RenewResponse), ChangeProblems),
)]
pub(crate) async fn renew(
    State(api): ApiState,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<RenewResponse> {
    let RenewRequest { ttr } = RenewRequest::parse(&json)?;
    match Deadline::from_now().bound(api.store.renew_receipt(&receipt, ttr, MAX_RENEWED)).await?? {
        Some(deadline) => {
            Ok(Json(RenewResponse { receipt: receipt.to_string(), deadline: deadline.to_string() }))
        }
        None => Err(stale().into()),
    }
}

/// Finish many jobs
///
/// Returns one result per receipt, in order. An invalid receipt does not affect the others.
#[utoipa::path(
    post, path = "/v1/receipts/finish", tag = "pull", operation_id = "finish_all",
    request_body = FinishAllRequest,
    responses((status = 200, description = "A result per receipt", body = ReceiptsResponse), BodyProblems),
)]
pub(crate) async fn finish_all(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReceiptsResponse> {
    let FinishAllRequest { receipts } = FinishAllRequest::parse(&json)?;
    let mut results: Vec<ReceiptResult> = vec![unknown_receipt().into(); receipts.len()];
    let mut shards: BTreeMap<_, Vec<(usize, Receipt)>> = BTreeMap::new();
    for (number, text) in receipts.iter().enumerate() {
        if let Some(receipt) = parse_receipt(&api, text, &caller) {
            shards.entry(receipt.shard).or_default().push((number, receipt));
        }
    }
    check_topics_of(&api, shards.values().flatten().map(|(_, receipt)| *receipt), &caller).await?;
    let calls = shards.values().flat_map(|receipts| receipts.chunks(MAX_BATCH));
    let answers = join_all(calls.map(|receipts| finish_in_shard(&api, receipts))).await;
    for (number, result) in answers.into_iter().flatten() {
        results[number] = result;
    }
    Ok(Json(ReceiptsResponse { results }))
}

async fn finish_in_shard(api: &Api, receipts: &[(usize, Receipt)]) -> Vec<(usize, ReceiptResult)> {
    let outcomes: Vec<_> = receipts.iter().map(|(_, receipt)| (*receipt, Outcome::Complete)).collect();
    let shard = receipts[0].1.shard;
    let settled = Deadline::from_now().bound(api.store.settle_receipts(shard, &outcomes)).await;
    let settled = settled.map_err(ApiError::from).and_then(|settled| settled.map_err(ApiError::from));
    let numbers = receipts.iter().map(|(number, _)| *number);
    match settled {
        Ok(settled) => numbers.zip(settled.into_iter().map(result)).collect(),
        Err(error) => numbers.map(|number| (number, error.0.clone().into())).collect(),
    }
}

/// Settles a job, after it has recorded a failed attempt in the attempt log. `topic` is that of the job, if it is
/// already known. 409 if the receipt no longer holds the job.
async fn settle(
    api: &Api,
    receipt: Receipt,
    outcome: Outcome,
    topic: Option<Topic>,
) -> JsonResult<ReceiptResponse> {
    let deadline = Deadline::from_now();
    record_failure(api, &receipt, &outcome, topic).await;
    let outcomes = [(receipt, outcome)];
    let settled = deadline.bound(api.store.settle_receipts(receipt.shard, &outcomes)).await??;
    check(settled.into_iter().next().unwrap_or(SettleResult::Stale))?;
    Ok(Json(ReceiptResponse { receipt: receipt.to_string() }))
}

/// Records the attempt in the attempt log if the outcome is a failure and the topic logs failures. If that
/// fails, only a metric counts the attempt. `topic` is that of the job, if it is already known.
async fn record_failure(api: &Api, receipt: &Receipt, outcome: &Outcome, topic: Option<Topic>) {
    let error = match outcome {
        Outcome::Retry { last, .. } | Outcome::Bury { last, .. } => last.error.clone(),
        Outcome::Complete | Outcome::Release { .. } | Outcome::Return => return,
    };
    // The store is only asked for the topic if topics differ in what they log.
    let topic = if topic.is_none() && api.policies.is_any_logging() {
        let lease = timeout(api.store.log_attempts_timeout(), api.store.lease_info(receipt)).await;
        lease.ok().and_then(Result::ok).flatten().and_then(|lease| lease.topic)
    } else {
        topic
    };
    let policy = topic.and_then(|topic| api.policies.get(&topic).ok()?);
    if api.store.logging(policy.as_deref()).notes_failure() {
        let notes = [AttemptLogEntry::failed(receipt, error)];
        api.metrics.unlogged(api.store.log_attempts_once(receipt.shard, &notes).await);
    }
}

fn check(settled: SettleResult) -> Result<(), Problem> {
    match settled {
        SettleResult::Applied | SettleResult::Replayed | SettleResult::Late => Ok(()),
        SettleResult::Stale => Err(stale()),
    }
}

fn result(settled: SettleResult) -> ReceiptResult {
    check(settled).map_or_else(ReceiptResult::from, |()| ReceiptResult::DONE)
}

fn stale() -> Problem {
    let detail = "the receipt no longer holds the job: its lease has expired, or the job is already settled";
    Problem::new(StatusCode::CONFLICT, detail)
}
