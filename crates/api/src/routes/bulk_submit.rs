//! Submits many jobs in one call, for batches, imports and replays: takes the caller's quota, parses each
//! item, and submits the valid ones while the rest is still being parsed.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http::StatusCode;
use ringback_admission::Principal;
use ringback_service::http_server::Holder;
use ringback_wire::{FieldError, Problem};

use crate::error::{ApiError, Unavailable};
use crate::extract::Items;
use crate::limits::Deadline;
use crate::metrics::{Metrics, SubmitOutcome};
use crate::state::Api;
use crate::submit_queues::{ItemFailure, ItemResult, Pace, PacedBatch, QueuedJob, SubmitQueues};

/// After parsing this many bytes the task yields to others.
const YIELD_AFTER: usize = 16 * 1024;
/// The most bytes of field errors in an answer. Without a limit the answer could be many times as
/// large as its request.
const MAX_ERRORS: usize = 4 * 1024 * 1024;

/// The results of the items, each with its number.
#[derive(Default)]
pub(super) struct BulkResults {
    /// The items that could not be parsed, and those beyond a quota.
    pub(super) invalid: Vec<(usize, Problem)>,
    /// The others.
    pub(super) submitted: Vec<ItemResult>,
}

/// Parses and submits all items, up to the quota of the caller. What the quota allowed and no item used is given back.
///
/// # Errors
/// 401 if the key of the caller has ended meanwhile; 429 if its quota allows no item; 503 if it gets no turn before the
/// deadline, if the quota cannot be read, or if all items are valid and the store accepted none of them.
pub(super) async fn submit_items<J: QueuedJob>(
    api: &Api,
    caller: &Principal,
    queues: &SubmitQueues<J>,
    items: Items,
    parse: impl Fn(usize, &[u8]) -> Result<J, Problem>,
) -> Result<BulkResults, ApiError> {
    let Items { items, permit, deadline, turn } = items;
    let (metrics, all) = (&api.metrics, items.len());
    let beside = caller.limited_tenant().map(|tenant| Holder::Name(tenant.as_str().into()));
    let beside = beside.filter(|tenant| api.activity.has_others(tenant));
    // Batches that take their time do not hold the places of others.
    let _turns = match &beside {
        Some(tenant) => {
            drop(turn);
            (None, Some(deadline.bound(api.spreads.wait(tenant.clone())).await?))
        }
        None => (Some(turn), None),
    };
    let allowed = api.take_quota(caller, all, deadline).await?;
    if allowed.jobs == 0 && all > 0 {
        metrics.submitted(SubmitOutcome::OverQuota, all);
        return Err(allowed.refusal().into());
    }
    // It has waited for its turns.
    api.check_standing(caller)?;
    let left = AtomicUsize::new(allowed.jobs);
    let parse = |number: usize, item: &[u8]| {
        let job = parse(number, item)?;
        let taken = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.map(|_| job).map_err(|_| allowed.refusal())
    };
    let (batch, submitted) = queues.submit_all(&permit, deadline, beside.map(|_| Pace::of(all)));
    let parsed = parse_items(items, parse, batch, deadline);
    let (mut results, submitted) = tokio::join!(parsed, submitted);
    results.submitted.extend(submitted);
    api.admission.quotas.give_back(caller, left.into_inner()).await;
    count_outcomes(metrics, &results);
    if results.invalid.is_empty()
        && let Some(failure) = why_all_failed(&results.submitted)
    {
        let failures = results.submitted.iter().filter_map(|(_, result)| result.as_ref().err());
        return Err(ApiError::of_batch(failure, failures.filter_map(|failure| failure.key.as_ref())));
    }
    Ok(results)
}

/// Parses the items and sends the valid ones to the queues. Once the store has failed and the
/// deadline has passed, the rest is not parsed. Returns the results of the items that were not sent.
async fn parse_items<J: QueuedJob>(
    items: Vec<(usize, Bytes)>,
    parse: impl Fn(usize, &[u8]) -> Result<J, Problem>,
    mut batch: PacedBatch<'_, J>,
    deadline: Deadline,
) -> BulkResults {
    let (mut results, mut since_yield, mut errors) = (BulkResults::default(), 0, 0);
    for (number, item) in items {
        if since_yield >= YIELD_AFTER {
            since_yield = 0;
            tokio::task::yield_now().await;
        }
        since_yield += item.len();
        if batch.has_failed() && deadline.has_passed() {
            results.submitted.push((number, Err(ItemFailure::not_tried())));
            continue;
        }
        match parse(number, &item) {
            Ok(job) => batch.send(number, job, &mut results.submitted).await,
            Err(problem) => results.invalid.push((number, shortened(problem, &mut errors))),
        }
    }
    batch.finish(&mut results.submitted).await;
    results
}

/// Removes the field errors of a problem once those of the answer exceed [`MAX_ERRORS`].
fn shortened(mut problem: Problem, errors: &mut usize) -> Problem {
    let texts = |e: &FieldError| e.field.len() + e.detail.len() + e.allowed.len();
    *errors += problem.errors.iter().map(texts).sum::<usize>();
    if *errors > MAX_ERRORS && !problem.errors.is_empty() {
        let count = problem.errors.len();
        problem.errors = Vec::new();
        problem.detail = format!("wrong fields: {count}; submit the job alone to see them all");
    }
    problem
}

fn count_outcomes(metrics: &Metrics, results: &BulkResults) {
    let is_over = |(_, problem): &&(usize, Problem)| problem.status == StatusCode::TOO_MANY_REQUESTS;
    let over_quota = results.invalid.iter().filter(is_over).count();
    metrics.submitted(SubmitOutcome::OverQuota, over_quota);
    metrics.submitted(SubmitOutcome::Invalid, results.invalid.len() - over_quota);
    for (_, result) in &results.submitted {
        let outcome = result.as_ref().map_or(SubmitOutcome::Unavailable, |submitted| submitted.answer.into());
        metrics.submitted(outcome, 1);
    }
}

/// Returns the failure to report if the store answered for none of the jobs: a failure with an unknown outcome, else the
/// first. Returns `None` if the store accepted or refused a job, or if `results` is empty.
fn why_all_failed(results: &[ItemResult]) -> Option<&Unavailable> {
    let failures = results.iter().map(|(_, result)| Some(&result.as_ref().err()?.error));
    let failures: Option<Vec<_>> = failures.collect();
    let failures = failures?;
    let unknown = failures.iter().find(|failure| failure.outcome_is_unknown());
    unknown.or(failures.first()).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringback_core::job::TenantScope;
    use ringback_store::Shortage;

    use super::*;
    use crate::limits::MemoryBudget;
    use crate::state::tests::unprepared;

    /// Parses two invalid items and two jobs, `wait` after the request began, when the store has failed. Returns the
    /// numbers of the items that were found invalid, and of the others.
    async fn parsed_after(wait: Duration) -> (Vec<usize>, Vec<usize>) {
        let (api, deadline) = (unprepared(), Deadline::from_now());
        let permit = MemoryBudget::default().acquire(1).await.unwrap();
        let (batch, results) = api.submits.submit_all(&permit, deadline, None);
        drop(results);
        tokio::time::advance(wait).await;
        let items = ["{}", r#"{"topic":"t","url":"http://h/"}"#, "5", r#"{"topic":"u","url":"http://h/"}"#];
        let items = items.map(|item| Bytes::from_static(item.as_bytes())).into_iter().enumerate().collect();
        let results = parse_items(
            items,
            |_, item| api.admission.parse_job(item, None, &mut None, &Principal::operator(TenantScope::All)),
            batch,
            deadline,
        )
        .await;
        let numbers = results.invalid.iter().map(|(number, _)| *number).collect();
        (numbers, results.submitted.iter().map(|(number, _)| *number).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn items_are_parsed_until_the_deadline_though_the_store_has_failed() {
        assert_eq!(parsed_after(Duration::from_secs(1)).await, (vec![0, 2], vec![1, 3]));
        assert_eq!(parsed_after(Duration::from_secs(2)).await, (vec![], vec![0, 1, 2, 3]));
    }

    #[test]
    fn field_errors_are_listed_until_they_are_too_many() {
        let text = || "x".repeat(MAX_ERRORS / 6);
        let error = || FieldError { field: text(), detail: text(), allowed: text() };
        let mut errors = 0;
        let shown = [0; 3].map(|_| shortened(Problem::fields(vec![error()]), &mut errors));
        assert_eq!(shown.each_ref().map(|problem| problem.errors.len()), [1, 1, 0]);
        assert!(shown[2].detail.contains("wrong fields: 1"));
        assert_eq!(shortened(Problem::unreadable("no"), &mut errors).detail, "no");
    }

    #[test]
    fn an_unknown_outcome_of_one_item_makes_that_of_the_batch_unknown() {
        let failed = |failures: Vec<Unavailable>| -> Vec<ItemResult> {
            let failures = failures.into_iter().map(|error| Err(ItemFailure { error, key: None }));
            failures.enumerate().collect()
        };
        let nearly_full = || Unavailable::NearlyFull(Shortage::Memory);
        let known = failed(vec![nearly_full(), Unavailable::NotTried]);
        assert!(matches!(why_all_failed(&known), Some(Unavailable::NearlyFull(_))));
        let unknown = failed(vec![nearly_full(), Unavailable::TooLate]);
        assert!(matches!(why_all_failed(&unknown), Some(Unavailable::TooLate)));
        assert!(why_all_failed(&[]).is_none());
    }
}
