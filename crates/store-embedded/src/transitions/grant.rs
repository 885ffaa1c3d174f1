//! The steps that reserve and pull share: finding ready jobs of a lane, granting a lease on each, and returning the same
//! jobs again to a caller that repeats a call.

use ringback_core::store_types::{LeaseId, Shard, TransitionName};

use crate::error::Result;
use crate::tables::{Body, Granted, Record, Stage, StoredJob};
use crate::txn::Txn;
use crate::txn::state_changes::To;

/// The most bytes of jobs that one call reserves; the last job may exceed them.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// How many bytes a job counts in addition to its payload.
const JOB_BYTES: usize = 256;

/// The caller of a reserve or pull.
pub(crate) struct Caller {
    pub(crate) name: String,
    /// The number of this call; the same number again repeats the answer.
    pub(crate) sequence: u64,
    /// Random bits for the receipts.
    pub(crate) bits: [u8; 8],
}

/// Returns the jobs that this call got before and still holds; `None` if it is new or longer ago than a minute.
pub(crate) fn granted_before(txn: &Txn<'_>, caller: &Caller) -> Result<Option<Vec<StoredJob>>> {
    let (shard, now) = (txn.shard(), txn.now());
    let granted = txn.tables.last_reserves.recall(shard, &caller.name, caller.sequence, now)?;
    let Some(Granted { bits, numbers, .. }) = granted else { return Ok(None) };
    let mut jobs = Vec::new();
    for number in numbers {
        if let Some(job) = txn.tables.records.get(number)?
            && job.lease().is_some_and(|lease| lease.bits == bits)
        {
            jobs.extend(txn.tables.records.with_body(job)?);
        }
    }
    Ok(Some(jobs))
}

/// Converts the jobs that a call was granted by `read`. Logs and leaves out a job for which that returns `None`: its
/// lease will expire and be recovered.
pub(crate) fn read_granted<T>(
    shard: Shard,
    jobs: &[StoredJob],
    read: impl Fn(&Record, &Body) -> Option<T>,
) -> Vec<T> {
    let jobs = jobs.iter().filter_map(|(record, body)| {
        let job = read(record, body);
        if job.is_none() {
            tracing::error!(shard = shard.0, job.number = record.number, "a reserved job cannot be read");
        }
        job
    });
    jobs.collect()
}

/// The entries of a lane that were read.
pub(crate) struct Taken {
    /// How many entries were read, including those that led to no ready job.
    pub(crate) entries: usize,
    /// Whether the lane has more.
    pub(crate) is_rest: bool,
}

/// Reads the first entries of a lane, at most `limit` and while `budget` is not 0. Adds their jobs to `jobs`, unreserved,
/// and subtracts their bytes from `budget`. Removes entries that lead to no ready job with a body, or to one that waits
/// behind another of its key.
pub(crate) fn find_ready(
    txn: &mut Txn<'_>,
    lane: &str,
    limit: usize,
    budget: &mut usize,
    jobs: &mut Vec<StoredJob>,
) -> Result<Taken> {
    let shard = txn.shard();
    // One entry more than the limit shows whether some are left.
    let found = txn.tables.ready.first(shard, lane, limit + 1)?;
    let mut entries = 0;
    for (position, number) in found.iter().take(limit) {
        if *budget == 0 {
            break;
        }
        entries += 1;
        let job = txn.tables.records.get(*number)?;
        let job = job.filter(|job| job.stage == Stage::Ready { position: *position });
        match job.map(|job| txn.tables.records.with_body(job)).transpose()?.flatten() {
            Some((job, _)) if txn.is_met_behind(&job)? => {}
            Some((job, body)) => {
                *budget = budget.saturating_sub(body.weight() + JOB_BYTES);
                jobs.push((job, body));
            }
            None => txn.tables.ready.remove(shard, lane, *position)?,
        }
    }
    Ok(Taken { entries, is_rest: entries < found.len() })
}

/// Grants a lease on each job, for the time in ms that `duration` returns, counts an attempt, and remembers the call
/// for [`granted_before`]. Does nothing without jobs.
pub(crate) fn grant_leases(
    txn: &mut Txn<'_>,
    caller: &Caller,
    jobs: &mut [StoredJob],
    duration: impl Fn(&Record) -> u64,
) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let first = txn.now_us().max(txn.row.lease + 1);
    txn.because(TransitionName::Reserve, None);
    let mut numbers = Vec::with_capacity(jobs.len());
    for (lease, (job, _)) in (first..).zip(jobs) {
        let deadline = txn.now_up() + duration(job);
        job.attempts += 1;
        txn.enter(job, To::Reserved(LeaseId { number: lease, bits: caller.bits }, deadline))?;
        numbers.push(job.number);
        txn.row.lease = lease;
    }
    let granted = Granted { at: txn.now(), sequence: caller.sequence, bits: caller.bits, numbers };
    let shard = txn.shard();
    txn.tables.last_reserves.remember(shard, &caller.name, &granted)
}
