//! What a consumer says of the jobs that it has reserved, by their receipts alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures_util::future::join_all;
use http::StatusCode;
use ringback_core::contract::{PullOutcome, PullReceipt, Renewed, Settled};
use ringback_core::job::Topic;
use ringback_core::limits::MAX_BATCH;
use ringback_core::wire::{
    BuryAsk, FinishAllAsk, Problem, ReceiptAnswer, ReceiptResult, ReceiptsAnswer, ReleaseAsk, RenewAnswer,
    RenewAsk, RetryAsk, parse_finish,
};

use super::attempts;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{MaybeJson, ReceiptPath};
use crate::openapi::{
    BuryRequest, FinishAllProblems, FinishAllRequest, ReceiptProblems, ReleaseRequest, RenewRequest,
    RetryRequest,
};
use crate::state::Api;

/// Finish a job
///
/// It is done.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/finish", tag = "pull", operation_id = "finish",
    params(("receipt" = String, Path, description = "Of a reserve")),
    responses((status = 200, description = "Done, now or before", body = ReceiptAnswer), ReceiptProblems),
)]
pub(crate) async fn finish(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    parse_finish(&json)?;
    say(&api, receipt, PullOutcome::Finish, None).await
}

/// Retry a job
///
/// It failed: again after `delay`, or as its retry policy says; dead after the last tier.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/retry", tag = "pull", operation_id = "retry",
    params(("receipt" = String, Path, description = "Of a reserve")),
    request_body = RetryRequest,
    responses((status = 200, description = "Noted, now or before", body = ReceiptAnswer), ReceiptProblems),
)]
pub(crate) async fn retry(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let RetryAsk { delay, error } = RetryAsk::parse(&json)?;
    let mut topic = None;
    let word = match delay {
        Some(after) => PullOutcome::Retry { after, error },
        None => {
            let tries = Deadline::from_now().bound(api.store.lease_info(&receipt)).await;
            match tries.map_err(ApiError::too_late)?? {
                Some(tries) => {
                    let word = api.failed(&tries, error)?;
                    topic = tries.topic;
                    word
                }
                // It is not current: the store says whether this is a repetition.
                None => PullOutcome::Retry { after: Duration::ZERO, error },
            }
        }
    };
    say(&api, receipt, word, topic).await
}

/// Bury a job
///
/// It is dead.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/bury", tag = "pull", operation_id = "bury",
    params(("receipt" = String, Path, description = "Of a reserve")),
    request_body = BuryRequest,
    responses((status = 200, description = "Noted, now or before", body = ReceiptAnswer), ReceiptProblems),
)]
pub(crate) async fn bury(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let BuryAsk { reason, error } = BuryAsk::parse(&json)?;
    say(&api, receipt, PullOutcome::Bury { reason, error }, None).await
}

/// Release a job
///
/// It goes back, without a failure: ready at once, or after `delay`.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/release", tag = "pull", operation_id = "release",
    params(("receipt" = String, Path, description = "Of a reserve")),
    request_body = ReleaseRequest,
    responses((status = 200, description = "Noted, now or before", body = ReceiptAnswer), ReceiptProblems),
)]
pub(crate) async fn release(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let ReleaseAsk { delay } = ReleaseAsk::parse(&json)?;
    say(&api, receipt, PullOutcome::Release { after: delay }, None).await
}

/// Renew a lease
///
/// The job stays in the consumer's hands for `ttr` from now on, or longer where it did before.
#[utoipa::path(
    post, path = "/v1/receipts/{receipt}/renew", tag = "pull", operation_id = "renew",
    params(("receipt" = String, Path, description = "Of a reserve")),
    request_body = RenewRequest,
    responses((status = 200, description = "Renewed", body = RenewAnswer), ReceiptProblems),
)]
pub(crate) async fn renew(
    State(api): State<Arc<Api>>,
    ReceiptPath(receipt): ReceiptPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<RenewAnswer>, ApiError> {
    let RenewAsk { ttr } = RenewAsk::parse(&json)?;
    let renewed = Deadline::from_now().bound(api.store.renew_receipt(&receipt, ttr)).await;
    match renewed.map_err(ApiError::too_late)?? {
        (Renewed::Extended, deadline) => {
            Ok(Json(RenewAnswer { receipt: receipt.to_string(), deadline: deadline.to_string() }))
        }
        (Renewed::Stale, _) => Err(stale().into()),
    }
}

/// Finish many jobs
///
/// A result per receipt, in order; one that is wrong does not spoil the others.
#[utoipa::path(
    post, path = "/v1/receipts/finish", tag = "pull", operation_id = "finish_all",
    request_body = FinishAllRequest,
    responses((status = 200, description = "A result per receipt", body = ReceiptsAnswer), FinishAllProblems),
)]
pub(crate) async fn finish_all(
    State(api): State<Arc<Api>>,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReceiptsAnswer>, ApiError> {
    let FinishAllAsk { receipts } = FinishAllAsk::parse(&json)?;
    let mut results: Vec<ReceiptResult> = vec![unknown().into(); receipts.len()];
    let mut shards: BTreeMap<_, Vec<(usize, PullReceipt)>> = BTreeMap::new();
    for (number, text) in receipts.iter().enumerate() {
        if let Some(receipt) = known(&api, text) {
            shards.entry(receipt.shard()).or_default().push((number, receipt));
        }
    }
    let calls = shards.values().flat_map(|receipts| receipts.chunks(MAX_BATCH));
    let answers = join_all(calls.map(|receipts| finish_some(&api, receipts))).await;
    for (number, result) in answers.into_iter().flatten() {
        results[number] = result;
    }
    Ok(Json(ReceiptsAnswer { results }))
}

/// Of one shard.
async fn finish_some(api: &Api, receipts: &[(usize, PullReceipt)]) -> Vec<(usize, ReceiptResult)> {
    let words: Vec<_> = receipts.iter().map(|(_, receipt)| (*receipt, PullOutcome::Finish)).collect();
    let shard = receipts[0].1.shard();
    let settled = Deadline::from_now().bound(api.store.settle_receipts(shard, &words)).await;
    let settled = settled.map_err(ApiError::too_late).and_then(|settled| settled.map_err(ApiError::from));
    let numbers = receipts.iter().map(|(number, _)| *number);
    match settled {
        Ok(settled) => numbers.zip(settled.into_iter().map(result)).collect(),
        Err(ApiError(problem)) => numbers.map(|number| (number, problem.clone().into())).collect(),
    }
}

/// The topic is that of the job, where it is known already.
async fn say(
    api: &Api,
    receipt: PullReceipt,
    word: PullOutcome,
    topic: Option<Topic>,
) -> Result<Json<ReceiptAnswer>, ApiError> {
    let deadline = Deadline::from_now();
    attempts::note(api, &receipt, &word, topic).await;
    let words = [(receipt, word)];
    let settled = deadline.bound(api.store.settle_receipts(receipt.shard(), &words)).await;
    let settled = settled.map_err(ApiError::too_late)??;
    judge(settled.into_iter().next().unwrap_or(Settled::Stale))?;
    Ok(Json(ReceiptAnswer { receipt: receipt.to_string() }))
}

/// A receipt as it was written, if it can be one of this store.
pub(crate) fn known(api: &Api, text: &str) -> Option<PullReceipt> {
    text.parse().ok().filter(|receipt| api.store.knows(receipt))
}

fn judge(settled: Settled) -> Result<(), Problem> {
    match settled {
        Settled::Applied | Settled::Replayed | Settled::Late => Ok(()),
        Settled::Stale => Err(stale()),
    }
}

fn result(settled: Settled) -> ReceiptResult {
    judge(settled).map_or_else(ReceiptResult::from, |()| ReceiptResult::DONE)
}

pub(crate) fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "this is no receipt that a reserve has given")
}

fn stale() -> Problem {
    let detail =
        "the receipt no longer holds the job: its time ran out, or something else was said by it before";
    Problem::new(StatusCode::CONFLICT, detail)
}
