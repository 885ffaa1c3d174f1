//! Reads the answers of scripts. redis-rs reads most of them, as tuples and lists. The busiest calls use the
//! functions in `take`, which do not copy payloads.

use redis::{FromRedisValue, Value};
use ringback_core::job::{Job, JobKey};
use ringback_core::state::State;
use ringback_core::store_types::{MoveResult, SettleResult, StoreError};
use strum::VariantArray as _;

use super::record::{self, FixedFields};

/// Reads an answer. Fails with `Unreadable`, which names it by `what`, if it has another form.
pub(crate) fn read<T: FromRedisValue>(answer: Value, what: &'static str) -> Result<T, StoreError> {
    redis::from_redis_value(answer).map_err(|_| StoreError::Unreadable(what))
}

/// Functions that take an answer apart without copying strings.
pub(crate) mod take {
    use bytes::Bytes;
    use redis::Value;

    use super::read;
    use ringback_core::store_types::StoreError;

    pub(crate) fn list(value: Value) -> Result<Vec<Value>, StoreError> {
        match value {
            Value::Array(items) => Ok(items),
            _ => Err(StoreError::Unreadable("a reply that is not a list")),
        }
    }

    pub(crate) fn int(value: &Value) -> Result<i64, StoreError> {
        match value {
            Value::Int(n) => Ok(*n),
            _ => Err(StoreError::Unreadable("a reply that is not a number")),
        }
    }

    pub(crate) fn bytes(value: Value) -> Result<Bytes, StoreError> {
        read(value, "a reply that is not a string")
    }
}

/// Reads a page of a scan: the server's run, where to go on, and what was found. Fails with `Outdated` if the answer is
/// the run alone: then the scan began in another run.
pub(crate) fn scanned<T: FromRedisValue>(
    mut answer: Vec<Value>,
    what: &'static str,
) -> Result<(String, String, T), StoreError> {
    if let [_server_run] = answer.as_slice() {
        return Err(StoreError::Outdated);
    }
    let found = answer.pop().ok_or(StoreError::Unreadable(what))?;
    let (server_run, at) = read(Value::Array(answer), what)?;
    Ok((server_run, at, read(found, what)?))
}

pub(crate) fn state(code: i64) -> Result<State, StoreError> {
    u8::try_from(code).ok().and_then(record::state).ok_or(StoreError::Unreadable("a state"))
}

pub(crate) fn state_code(state: State) -> usize {
    State::VARIANTS.iter().position(|other| *other == state).map_or(0, |index| index + 1)
}

/// Reads a job from the code of its state, its job state and the start of its record, or from its tombstone alone.
pub(crate) fn job(parts: Vec<Value>, key: &JobKey, what: &'static str) -> Result<Job, StoreError> {
    if parts.len() == 1 {
        let (tombstone,) = read(Value::Array(parts), what)?;
        return record::parse_tombstone(tombstone, key.clone());
    }
    let (code, job_state, record): (i64, bytes::Bytes, Vec<u8>) = read(Value::Array(parts), what)?;
    let tags = record::tags_of(&record)?;
    Ok(FixedFields::parse(state(code)?, job_state, &record)?.into_job(key.clone(), tags))
}

pub(crate) fn described(mut parts: Vec<Value>, key: &JobKey) -> Result<(i64, Job), StoreError> {
    const WHAT: &str = "an answer about a job";
    if parts.is_empty() {
        return Err(StoreError::Unreadable(WHAT));
    }
    let status = take::int(&parts.remove(0))?;
    Ok((status, job(parts, key, WHAT)?))
}

/// Reads the answer of a reschedule, a run, a revive or a purge. An empty one means that the job is unknown.
pub(crate) fn moved(parts: Vec<Value>, key: &JobKey) -> Result<MoveResult, StoreError> {
    if parts.is_empty() {
        return Ok(MoveResult::Unknown);
    }
    match described(parts, key)? {
        (200, job) => Ok(MoveResult::Applied(job)),
        (409, job) => Ok(MoveResult::Refused(job)),
        _ => Err(StoreError::Unreadable("an answer about a job")),
    }
}

pub(crate) fn settled(answer: i64) -> Result<SettleResult, StoreError> {
    match answer {
        1 => Ok(SettleResult::Applied),
        2 => Ok(SettleResult::Replayed),
        3 => Ok(SettleResult::Late),
        4 => Ok(SettleResult::Stale),
        _ => Err(StoreError::Unreadable("a settle's answer")),
    }
}
