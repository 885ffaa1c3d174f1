//! What reserve and pull share: takes ready jobs from a lane, and grants a lease on each. A caller
//! that repeats a call gets the same jobs again.

use ringback_core::store_types::{LeaseId, Shard, TransitionName};

use crate::error::Result;
use crate::tables::{Body, Granted, Record, Stage, StoredJob};
use crate::txn::Txn;
use crate::txn::state_changes::To;

/// The most bytes of jobs that one call takes; one job may exceed it.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// How much a job counts beside its payload.
const JOB_BYTES: usize = 256;

/// Who reserves.
pub(crate) struct Caller {
    pub(crate) name: String,
    /// The number of this call; the same number again repeats the answer.
    pub(crate) sequence: u64,
    /// Random bits for the receipts.
    pub(crate) bits: [u8; 8],
}

/// The jobs that this call was given before, as far as they are still reserved by it; `None` if the
/// call is new.
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

/// Converts the jobs that a call was granted. A job that cannot be read is left out: its lease will expire and be
/// recovered.
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

/// The entries of a lane that were looked at.
pub(crate) struct Taken {
    /// How many there were, with entries that led to no ready job.
    pub(crate) entries: usize,
    /// Whether the lane has more.
    pub(crate) is_rest: bool,
}

/// Finds the first ready jobs of a lane, at most `limit`, and counts their bytes off the budget.
/// Entries that lead to no ready job are removed.
pub(crate) fn find_ready(
    txn: &mut Txn<'_>,
    lane: &str,
    limit: usize,
    budget: &mut usize,
    jobs: &mut Vec<StoredJob>,
) -> Result<Taken> {
    let shard = txn.shard();
    // One more than may be taken shows whether something is left.
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
            Some((job, body)) => {
                *budget = budget.saturating_sub(body.payload.len() + JOB_BYTES);
                jobs.push((job, body));
            }
            None => txn.tables.ready.remove(shard, lane, *position)?,
        }
    }
    Ok(Taken { entries, is_rest: entries < found.len() })
}

/// Grants a lease on each job, for a time in ms that `duration` names, and remembers the call.
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
