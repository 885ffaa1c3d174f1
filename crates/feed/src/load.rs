//! `Loader`: submits rows as jobs, after admission by the limits, the guard and the quota of the tenant as in the API;
//! and cancels the jobs of rows that went.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use ringback_admission::{Admission, Principal, QuotaError, limit_reached, weight};
use ringback_core::crash_point;
use ringback_core::job::{IfExists, JobId, JobKey, NewJob, Topic};
use ringback_core::limits::{MAX_BATCH, MAX_BATCH_BYTES};
use ringback_core::store_types::{Cancelled, Shard, StoreError, SubmitResult};
use ringback_store::{ConfigUnknown, Shortage, Store};
use ringback_wire::Problem;

use crate::config::Changed;
use crate::row::Candidate;

/// After parsing so many rows other tasks get a turn.
const YIELD_AFTER: usize = 32;
/// How many jobs are cancelled at the same time.
const CANCELS: usize = 32;

/// Loads the rows of one feed.
pub(crate) struct Loader<'a> {
    pub(crate) store: &'a Store,
    pub(crate) admission: &'a Admission,
    pub(crate) caller: Principal,
    pub(crate) topic: Topic,
    pub(crate) changed: Changed,
    /// Whether a call to the store is under way; it stays true if the call was given up.
    pub(crate) is_calling: &'a AtomicBool,
}

/// The result of submitting a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SubmittedRow {
    /// It is a job now.
    Submitted,
    /// Its job has its content now.
    Replaced,
    /// It was one already, with this content.
    Known,
    /// Its job has other content and keeps it: it has ended, or changes are not wanted.
    Kept,
    /// Its job is being delivered and can be changed later.
    InFlight,
    /// There are too many topics or origins. Which limit that is.
    Full(String),
    /// It is not a job. Why.
    Refused(String),
}

/// Why rows could not be loaded. They are loaded later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    NearlyFull(Shortage),
    #[error(transparent)]
    Policies(#[from] ConfigUnknown),
    #[error("{0}")]
    Quota(String),
}

impl From<QuotaError> for LoadError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Policies(error) => error.into(),
            QuotaError::Store(error) => error.into(),
        }
    }
}

/// The results of submitting some rows.
#[derive(Debug)]
pub(crate) struct Loading {
    /// The results, in the order of the rows; `None` for those that could not be loaded.
    pub(crate) results: Vec<Option<SubmittedRow>>,
    /// Why some could not.
    pub(crate) error: Option<LoadError>,
}

type Numbered = (usize, NewJob);

impl Loader<'_> {
    /// Loads rows. Those beyond the quota of the tenant are not tried, and none is while the policies have not been
    /// read.
    pub(crate) async fn load(&self, rows: &[&Candidate]) -> Loading {
        let (mut results, mut jobs) = (vec![None; rows.len()], Vec::with_capacity(rows.len()));
        for (number, row) in rows.iter().enumerate() {
            if number % YIELD_AFTER == YIELD_AFTER - 1 {
                tokio::task::yield_now().await;
            }
            match self.parse(row) {
                Ok(job) => jobs.push((number, job)),
                Err(problem) if problem.status == http::StatusCode::SERVICE_UNAVAILABLE => {
                    return Loading { results, error: Some(ConfigUnknown.into()) };
                }
                Err(problem) => results[number] = Some(SubmittedRow::Refused(in_one_line(&problem))),
            }
        }
        let error = self.submit(jobs, &mut results).await.err();
        Loading { results, error }
    }

    /// Parses a row as the API parses a submit. With [`Changed::Replace`], the job may replace another with its id.
    ///
    /// # Errors
    /// The problem of the row; a 503 until the policies have been read.
    pub(crate) fn parse(&self, row: &Candidate) -> Result<NewJob, Problem> {
        let mut job = self.admission.parse_job(&row.json, None, &mut None, &self.caller)?;
        if self.changed == Changed::Replace {
            job.if_exists = IfExists::Update { token: self.admission.token() };
        }
        Ok(job)
    }

    async fn submit(
        &self,
        mut jobs: Vec<Numbered>,
        results: &mut [Option<SubmittedRow>],
    ) -> Result<(), LoadError> {
        if jobs.is_empty() {
            return Ok(());
        }
        if let Some(shortage) = self.store.shortage().await {
            return Err(LoadError::NearlyFull(shortage));
        }
        let allowed = self.admission.quotas.take(&self.caller, jobs.len()).await?;
        let beyond = jobs.split_off(allowed.jobs.min(jobs.len()));
        let mut shards = vec![Vec::new(); self.store.shards().count()];
        for job in jobs {
            shards[usize::from(self.store.shard_of(&job.1.key).number())].push(job);
        }
        let of_shards = self.store.shards().zip(shards).filter(|(_, jobs)| !jobs.is_empty());
        crash_point!("feed.before_submit");
        self.is_calling.store(true, Ordering::Relaxed);
        let submitted = join_all(of_shards.map(|(shard, jobs)| self.submit_to(shard, jobs))).await;
        self.is_calling.store(false, Ordering::Relaxed);
        crash_point!("feed.after_submit");
        let mut error = (!beyond.is_empty()).then(|| LoadError::Quota(allowed.refusal().detail));
        let mut unused = 0;
        for (loaded, failure) in submitted {
            for (number, result) in loaded {
                unused += usize::from(!matches!(result, SubmittedRow::Submitted | SubmittedRow::Replaced));
                results[number] = Some(result);
            }
            error = failure.map(LoadError::from).or(error);
        }
        // Rows that are submitted again, by a process that does not remember them, are not new jobs of the tenant.
        self.admission.quotas.give_back(&self.caller, unused).await;
        error.map_or(Ok(()), Err)
    }

    /// Submits the jobs of a shard, until the store fails. Returns the results up to then, and the error.
    async fn submit_to(
        &self,
        shard: Shard,
        jobs: Vec<Numbered>,
    ) -> (Vec<(usize, SubmittedRow)>, Option<StoreError>) {
        let mut loaded = Vec::with_capacity(jobs.len());
        for call in calls(jobs) {
            let (numbers, jobs): (Vec<_>, Vec<_>) = call.into_iter().unzip();
            match self.store.submit(shard, &jobs).await {
                Ok(submitted) => {
                    let results = submitted.into_iter().map(|submitted| submitted.answer.into());
                    loaded.extend(numbers.into_iter().zip(results));
                }
                Err(error) => return (loaded, Some(error)),
            }
        }
        (loaded, None)
    }

    /// Cancels the jobs of rows that went. Returns how many were cancelled, or will be unless their delivery succeeds.
    ///
    /// # Errors
    /// If the store fails. Cancelling again does no harm.
    pub(crate) async fn cancel(&self, ids: &[JobId]) -> Result<u64, StoreError> {
        let topic = self.topic.of_tenant(self.caller.tenant());
        let mut cancelled = 0;
        for part in ids.chunks(CANCELS) {
            let keys = part.iter().map(|id| JobKey { topic: topic.clone(), id: id.clone() });
            let calls = keys.map(|key| async move { self.store.cancel(&key).await });
            for answer in join_all(calls).await {
                cancelled += match answer? {
                    Cancelled::Cancelled { .. } | Cancelled::Requested { .. } => 1,
                    Cancelled::TooLate | Cancelled::Unknown => 0,
                };
            }
        }
        Ok(cancelled)
    }
}

impl From<SubmitResult> for SubmittedRow {
    fn from(result: SubmitResult) -> Self {
        match result {
            SubmitResult::Created => Self::Submitted,
            SubmitResult::Replaced | SubmitResult::Postponed => Self::Replaced,
            SubmitResult::Repeated | SubmitResult::Cancelled => Self::Known,
            SubmitResult::Conflict => Self::Kept,
            SubmitResult::Reserved { .. } => Self::InFlight,
            SubmitResult::Full(limit) => Self::Full(in_one_line(&limit_reached(limit))),
        }
    }
}

/// Splits the jobs of a shard, in order, into calls within the limits of the store on jobs and bytes.
fn calls(jobs: Vec<Numbered>) -> Vec<Vec<Numbered>> {
    let (mut calls, mut bytes) = (Vec::<Vec<Numbered>>::new(), 0);
    for job in jobs {
        let size = weight(&job.1);
        match calls.last_mut() {
            Some(call) if call.len() < MAX_BATCH && bytes + size <= MAX_BATCH_BYTES => {
                bytes += size;
                call.push(job);
            }
            _ => {
                bytes = size;
                calls.push(vec![job]);
            }
        }
    }
    calls
}

pub(crate) fn in_one_line(problem: &Problem) -> String {
    let errors: Vec<_> = problem
        .errors
        .iter()
        .map(|error| format!("{}: {}; allowed: {}", error.field, error.detail, error.allowed))
        .collect();
    if errors.is_empty() { problem.detail.clone() } else { errors.join("; ") }
}
