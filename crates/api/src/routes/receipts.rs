//! What a consumer does with a reserved job by its receipt: finish, retry, bury, release, renew.

mod record_failure;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures_util::future::join_all;
use http::StatusCode;
use ringback_core::contract::{Receipt, Renewed, Settled};
use ringback_core::job::Topic;
use ringback_core::limits::MAX_BATCH;
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::wire::{
    BuryAsk, FinishAllAsk, Problem, ReceiptAnswer, ReceiptResult, ReceiptsAnswer, ReleaseAsk, RenewAnswer,
    RenewAsk, RetryAsk, parse_finish,
};

use self::record_failure::record_failure;
use crate::error::ApiError;
use crate::extract::{MaybeJson, ReceiptPath, parse_receipt, unknown_receipt};
use crate::limits::Deadline;
use crate::schema::{
    BodyProblems, BuryRequest, ChangeProblems, FinishAllRequest, ReceiptParams, ReleaseRequest, RenewRequest,
    RetryRequest,
};
use crate::state::Api;

/// Finish a job
///
/// The job is done.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/finish", tag = "pull", operation_id = "finish",
    params(ReceiptParams),
    responses((status = 200, description = "Done, now or before", body = ReceiptAnswer), ChangeProblems),
)]
pub(crate) async fn finish(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    parse_finish(&json)?;
    settle(&api, receipt, Outcome::Complete, None).await
}

/// Retry a job
///
/// The attempt failed. The job is tried again after `delay`, or as its retry policy says; after the
/// last tier of the policy it is dead.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/retry", tag = "pull", operation_id = "retry",
    params(ReceiptParams),
    request_body = RetryRequest,
    responses((status = 200, description = "Recorded, now or before", body = ReceiptAnswer), ChangeProblems),
)]
pub(crate) async fn retry(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let RetryAsk { delay, error } = RetryAsk::parse(&json)?;
    let (outcome, topic) = match delay {
        Some(after) => (Outcome::Retry { after, last: LastAttempt::by_consumer(error) }, None),
        None => match Deadline::from_now().bound(api.store.lease_info(&receipt)).await?? {
            Some(tries) => (api.failed(&tries, error)?, tries.topic),
            // The receipt is not current. The store knows whether this call is a repetition.
            None => (Outcome::Retry { after: Duration::ZERO, last: LastAttempt::by_consumer(error) }, None),
        },
    };
    settle(&api, receipt, outcome, topic).await
}

/// Bury a job
///
/// The job is dead, without further retries.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/bury", tag = "pull", operation_id = "bury",
    params(ReceiptParams),
    request_body = BuryRequest,
    responses((status = 200, description = "Recorded, now or before", body = ReceiptAnswer), ChangeProblems),
)]
pub(crate) async fn bury(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let BuryAsk { reason, error } = BuryAsk::parse(&json)?;
    let outcome = Outcome::Bury { reason: Reason::Custom(reason), last: LastAttempt::by_consumer(error) };
    settle(&api, receipt, outcome, None).await
}

/// Release a job
///
/// Returns the job without counting a failure. It is ready at once, or after `delay`.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/release", tag = "pull", operation_id = "release",
    params(ReceiptParams),
    request_body = ReleaseRequest,
    responses((status = 200, description = "Recorded, now or before", body = ReceiptAnswer), ChangeProblems),
)]
pub(crate) async fn release(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let ReleaseAsk { delay } = ReleaseAsk::parse(&json)?;
    settle(&api, receipt, Outcome::Release { after: delay }, None).await
}

/// Renew a lease
///
/// The consumer keeps the job for `ttr` from now, or until its current deadline if that is later.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/renew", tag = "pull", operation_id = "renew",
    params(ReceiptParams),
    request_body = RenewRequest,
    responses((status = 200, description = "Renewed", body = RenewAnswer), ChangeProblems),
)]
pub(crate) async fn renew(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<RenewAnswer>, ApiError> {
    let RenewAsk { ttr } = RenewAsk::parse(&json)?;
    match Deadline::from_now().bound(api.store.renew_receipt(&receipt, ttr)).await?? {
        (Renewed::Extended, deadline) => {
            Ok(Json(RenewAnswer { receipt: receipt.to_string(), deadline: deadline.to_string() }))
        }
        (Renewed::Stale, _) => Err(stale().into()),
    }
}

/// Finish many jobs
///
/// One result per receipt, in order. An invalid receipt does not affect the others.
#[utoipa::path(
    post, path = "/v1/receipts/finish", tag = "pull", operation_id = "finish_all",
    request_body = FinishAllRequest,
    responses((status = 200, description = "A result per receipt", body = ReceiptsAnswer), BodyProblems),
)]
pub(crate) async fn finish_all(
    State(api): State<Arc<Api>>,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptsAnswer>, ApiError> {
    let FinishAllAsk { receipts } = FinishAllAsk::parse(&json)?;
    let mut results: Vec<ReceiptResult> = vec![unknown_receipt().into(); receipts.len()];
    let mut shards: BTreeMap<_, Vec<(usize, Receipt)>> = BTreeMap::new();
    for (number, text) in receipts.iter().enumerate() {
        if let Some(receipt) = parse_receipt(&api, text) {
            shards.entry(receipt.shard).or_default().push((number, receipt));
        }
    }
    let calls = shards.values().flat_map(|receipts| receipts.chunks(MAX_BATCH));
    let answers = join_all(calls.map(|receipts| finish_in_shard(&api, receipts))).await;
    for (number, result) in answers.into_iter().flatten() {
        results[number] = result;
    }
    Ok(Json(ReceiptsAnswer { results }))
}

/// Finishes jobs of one shard.
async fn finish_in_shard(api: &Api, receipts: &[(usize, Receipt)]) -> Vec<(usize, ReceiptResult)> {
    let outcomes: Vec<_> = receipts.iter().map(|(_, receipt)| (*receipt, Outcome::Complete)).collect();
    let shard = receipts[0].1.shard;
    let settled = Deadline::from_now().bound(api.store.settle_receipts(shard, &outcomes)).await;
    let settled = settled.map_err(ApiError::from).and_then(|settled| settled.map_err(ApiError::from));
    let numbers = receipts.iter().map(|(number, _)| *number);
    match settled {
        Ok(settled) => numbers.zip(settled.into_iter().map(result)).collect(),
        Err(ApiError(problem)) => numbers.map(|number| (number, problem.clone().into())).collect(),
    }
}

/// Settles a job. `topic` is that of the job, if it is already known.
async fn settle(
    api: &Api,
    receipt: Receipt,
    outcome: Outcome,
    topic: Option<Topic>,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let deadline = Deadline::from_now();
    record_failure(api, &receipt, &outcome, topic).await;
    let outcomes = [(receipt, outcome)];
    let settled = deadline.bound(api.store.settle_receipts(receipt.shard, &outcomes)).await??;
    check(settled.into_iter().next().unwrap_or(Settled::Stale))?;
    Ok(Json(ReceiptAnswer { receipt: receipt.to_string() }))
}

fn check(settled: Settled) -> Result<(), Problem> {
    match settled {
        Settled::Applied | Settled::Replayed | Settled::Late => Ok(()),
        Settled::Stale => Err(stale()),
    }
}

fn result(settled: Settled) -> ReceiptResult {
    check(settled).map_or_else(ReceiptResult::from, |()| ReceiptResult::DONE)
}

fn stale() -> Problem {
    let detail = "the receipt no longer holds the job: its lease has expired, or the job is already settled";
    Problem::new(StatusCode::CONFLICT, detail)
}
