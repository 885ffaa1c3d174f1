//! What goes into the scripts and what comes back, beside records: settlements packed the
//! way settle.lua reads them, and the answers of submit, settle and stats as values.

use std::time::Duration;

use redis::Value;

use super::layout::{self, Head};
use super::script::reply;
use crate::clock::millis_up;
use crate::job::JobKey;
use crate::outcome::{LastAttempt, Outcome};
use crate::state::State;
use crate::store::{Answer, Lease, Settled, StoreError, Submitted, start};

/// The most bytes of an error's word that are kept: a record has one byte for the length of
/// each text.
const MOST_ERROR: usize = 128;
pub(super) fn state(code: i64) -> Result<State, StoreError> {
    let index = usize::try_from(code - 1).ok();
    index.and_then(|i| State::ALL.get(i).copied()).ok_or(StoreError::Unreadable("a state"))
}

pub(super) fn submitted(answer: Value, key: &JobKey) -> Result<Submitted, StoreError> {
    let mut parts = reply::list(answer)?.into_iter();
    let (Some(code), Some(what)) = (parts.next(), parts.next()) else {
        return Err(StoreError::Unreadable("a submit's answer"));
    };
    let ended = parts.next().is_some();
    let raw = reply::bytes(what)?;
    let job = if ended {
        layout::parse_tombstone(raw, key.clone())?
    } else {
        Head::parse(raw)?.into_job(key.clone())
    };
    let answer = match reply::int(&code)? {
        201 => Answer::Created,
        200 => Answer::Repeated,
        409 => Answer::Conflict,
        _ => return Err(StoreError::Unreadable("a submit's answer")),
    };
    Ok(Submitted { answer, job })
}

/// Packed the way settle.lua reads it: locator, receipt, kind, delay, and the last attempt as a
/// head ends with it.
pub(super) fn settlement(lease: &Lease, outcome: &Outcome) -> Vec<u8> {
    let nothing = LastAttempt::default();
    let (kind, delay, last, reason) = match outcome {
        Outcome::Complete => (1, Duration::ZERO, &nothing, ""),
        Outcome::Retry { after, last } => (2, *after, last, ""),
        Outcome::Bury { reason, last } => (3, Duration::ZERO, last, reason.name()),
        Outcome::Release { after } => (4, *after, &nothing, ""),
    };
    let error = start(last.error.as_deref().unwrap_or_default(), MOST_ERROR);
    let six = |ms: u64| ms.to_be_bytes()[2..].to_vec();
    let duration = u32::try_from(last.duration.as_millis()).unwrap_or(u32::MAX);
    let mut packed = Vec::with_capacity(64);
    packed.extend_from_slice(&lease.locator.0);
    packed.extend_from_slice(&receipt(lease));
    packed.push(kind);
    packed.extend_from_slice(&six(millis_up(delay)));
    packed.extend_from_slice(&six(last.at.as_millis()));
    packed.extend_from_slice(&last.status.unwrap_or(0).to_be_bytes());
    packed.extend_from_slice(&duration.to_be_bytes());
    packed.push(u8::try_from(error.len()).unwrap_or(u8::MAX));
    packed.push(u8::try_from(reason.len()).unwrap_or(u8::MAX));
    packed.extend_from_slice(error.as_bytes());
    packed.extend_from_slice(reason.as_bytes());
    packed
}

/// A lease's number and random bits, as a head has them.
pub(super) fn receipt(lease: &Lease) -> [u8; 16] {
    let mut packed = [0; 16];
    packed[..8].copy_from_slice(&lease.receipt.number.to_be_bytes());
    packed[8..].copy_from_slice(&lease.receipt.bits);
    packed
}

pub(super) fn settled(answer: &Value) -> Result<Settled, StoreError> {
    match reply::int(answer)? {
        1 => Ok(Settled::Applied),
        2 => Ok(Settled::Replayed),
        3 => Ok(Settled::Late),
        4 => Ok(Settled::Stale),
        _ => Err(StoreError::Unreadable("a settle's answer")),
    }
}

pub(super) fn counters(value: Value) -> Result<Vec<(String, u64)>, StoreError> {
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
