//! What goes into the scripts and what comes back, beside records: settlements and histories
//! packed the way settle.lua and import.lua read them, and the answers of submit, settle and
//! stats as values.

use std::time::Duration;

use redis::Value;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    Lease, Limit, MoveResult, Receipt, Settled, StoreError, SubmitResult, Submitted,
};
use ringback_core::job::{History, Job, JobKey};
use ringback_core::limits::{MAX_ERROR, MAX_IMPORTED_COUNT, truncated};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::state::State;

use super::layout::{self, Head, six};
use super::script::reply;

/// The most bytes of a reason that are kept.
pub(crate) const MOST_REASON: usize = 64;
/// The largest number of six bytes.
const MOST_SIX: u64 = (1 << 48) - 1;

pub(crate) fn state(code: i64) -> Result<State, StoreError> {
    let index = usize::try_from(code - 1).ok();
    index.and_then(|i| State::ALL.get(i).copied()).ok_or(StoreError::Unreadable("a state"))
}

/// The answer to one job of a submit or an import.
pub(crate) fn submitted(answer: Value, key: &JobKey) -> Result<Submitted, StoreError> {
    if let Value::BulkString(times) = answer {
        return Ok(Submitted { answer: SubmitResult::Created, job: arrived(&times, key)? });
    }
    let parts = reply::list(answer)?;
    if let [Value::Int(422), what] = parts.as_slice() {
        return Ok(Submitted::refused(limit(what)?, key));
    }
    let (code, job) = described(parts, key)?;
    let answer = match code {
        201 => SubmitResult::Created,
        200 => SubmitResult::Repeated,
        409 => SubmitResult::Conflict,
        _ => return Err(UNREADABLE),
    };
    Ok(Submitted { answer, job })
}

const UNREADABLE: StoreError = StoreError::Unreadable("an answer about a job");

fn limit(what: &Value) -> Result<Limit, StoreError> {
    match what {
        Value::BulkString(name) if name == b"topics" => Ok(Limit::Topics),
        Value::BulkString(name) if name == b"lanes" => Ok(Limit::Lanes),
        _ => Err(UNREADABLE),
    }
}

/// A code, and a job: its state, run and record's start, or its tombstone.
fn described(parts: Vec<Value>, key: &JobKey) -> Result<(i64, Job), StoreError> {
    let mut parts = parts.into_iter();
    let (Some(code), Some(what)) = (parts.next(), parts.next()) else { return Err(UNREADABLE) };
    let job = match (parts.next(), parts.next()) {
        (Some(run), Some(record)) => {
            Head::parse(state(reply::int(&what)?)?, reply::bytes(run)?, &reply::bytes(record)?)?
                .into_job(key.clone())
        }
        _ => layout::parse_tombstone(reply::bytes(what)?, key.clone())?,
    };
    Ok((reply::int(&code)?, job))
}

/// The answer of a reschedule, a run, a revive or a purge.
pub(crate) fn moved(parts: Vec<Value>, key: &JobKey) -> Result<MoveResult, StoreError> {
    if parts.is_empty() {
        return Ok(MoveResult::Unknown);
    }
    match described(parts, key)? {
        (200, job) => Ok(MoveResult::Applied(job)),
        (409, job) => Ok(MoveResult::Refused(job)),
        _ => Err(UNREADABLE),
    }
}

/// A new job: due and created.
fn arrived(times: &[u8], key: &JobKey) -> Result<Job, StoreError> {
    let [due @ .., _, _, _, _, _, _] = times else { return Err(UNREADABLE) };
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b));
    let (due, created) = (number(due), number(&times[due.len()..]));
    Ok(Job {
        key: key.clone(),
        state: if due <= created { State::Ready } else { State::Delayed },
        due: Timestamp::from_millis(due),
        created: Timestamp::from_millis(created),
        attempts: 0,
        failures: 0,
        last: None,
        reason: None,
    })
}

/// Packed the way settle.lua reads it: kind, whether the payload is external, delay, and the
/// last attempt as a run ends with it.
pub(crate) fn settlement(lease: &Lease, outcome: &Outcome) -> Vec<u8> {
    // A duration that is not known is the longest.
    let (status, took) = lease.response().unwrap_or((0, u32::MAX));
    let duration = Duration::from_millis(took.into());
    let seen = LastAttempt { status: Some(status), duration, ..LastAttempt::default() };
    let nothing = LastAttempt::default();
    let (kind, delay, last, reason) = match outcome {
        Outcome::Complete => (1, Duration::ZERO, &seen, ""),
        Outcome::Retry { after, last } => (2, *after, last, ""),
        Outcome::Bury { reason, last } => (3, Duration::ZERO, last, reason.name()),
        Outcome::Release { after } => (4, *after, &nothing, ""),
    };
    let mut packed = Vec::with_capacity(32);
    packed.push(kind);
    packed.push(lease.grant().hint.is_external.into());
    packed.extend_from_slice(&six(millis_up(delay)));
    push_last(&mut packed, last, reason);
    packed
}

/// Packed the way import.lua reads it: whether it is dead, created, attempts, failures, and the
/// last attempt as a run ends with it.
pub(crate) fn history(history: &History) -> Vec<u8> {
    // A time that is not known is the latest: the script brings it down to now.
    let created = history.created.map_or(u64::MAX, Timestamp::as_millis).min(MOST_SIX);
    let mut packed = Vec::with_capacity(64);
    packed.push(history.dead.is_some().into());
    packed.extend_from_slice(&six(created));
    packed.extend_from_slice(&history.attempts.min(MAX_IMPORTED_COUNT).to_be_bytes());
    packed.extend_from_slice(&history.failures.min(MAX_IMPORTED_COUNT).to_be_bytes());
    let nothing = LastAttempt::default();
    let reason = truncated(history.dead.as_deref().unwrap_or_default(), MOST_REASON);
    push_last(&mut packed, history.last.as_ref().unwrap_or(&nothing), reason);
    packed
}

fn push_last(packed: &mut Vec<u8>, last: &LastAttempt, reason: &str) {
    let error = truncated(last.error.as_deref().unwrap_or_default(), MAX_ERROR);
    let duration = u32::try_from(last.duration.as_millis()).unwrap_or(u32::MAX);
    packed.extend_from_slice(&six(last.at.as_millis()));
    packed.extend_from_slice(&last.status.unwrap_or(0).to_be_bytes());
    packed.extend_from_slice(&duration.to_be_bytes());
    packed.push(u8::try_from(error.len()).unwrap_or(u8::MAX));
    packed.push(u8::try_from(reason.len()).unwrap_or(u8::MAX));
    packed.extend_from_slice(error.as_bytes());
    packed.extend_from_slice(reason.as_bytes());
}

/// A lease's number and random bits, as a run has them.
pub(crate) fn receipt(lease: &Lease) -> [u8; 16] {
    held(lease.grant().receipt)
}

/// The same of a receipt alone.
pub(crate) fn held(receipt: Receipt) -> [u8; 16] {
    let mut packed = [0; 16];
    packed[..8].copy_from_slice(&receipt.number.to_be_bytes());
    packed[8..].copy_from_slice(&receipt.bits);
    packed
}

pub(crate) fn settled(answer: &Value) -> Result<Settled, StoreError> {
    match reply::int(answer)? {
        1 => Ok(Settled::Applied),
        2 => Ok(Settled::Replayed),
        3 => Ok(Settled::Late),
        4 => Ok(Settled::Stale),
        _ => Err(StoreError::Unreadable("a settle's answer")),
    }
}

pub(crate) fn counters(value: Value) -> Result<Vec<(String, u64)>, StoreError> {
    let flat: Vec<Value> = match value {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, n)| [name, n]).collect(),
        other => reply::list(other)?,
    };
    let mut words = flat.into_iter();
    let mut counters = Vec::new();
    while let (Some(name), Some(n)) = (words.next(), words.next()) {
        // A count below nothing would be a bug of a script; it shows as nothing.
        counters.push((reply::text(name)?, reply::text(n)?.parse().unwrap_or(0)));
    }
    Ok(counters)
}
