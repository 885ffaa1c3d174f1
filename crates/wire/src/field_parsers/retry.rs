//! The field `retry`: the retry policy of a job or a topic.

use ringback_core::retry::{
    DEFAULT_FACTOR, DEFAULT_JITTER, MAX_FACTOR, MAX_TIER, MAX_TIERS, MIN_TIER, Max, PolicyError, RetryPolicy,
};
use serde_json::value::RawValue;

use super::super::first_items::FirstItems;
use super::object::{Fields, Mistakes, read, shown};
use super::values::{duration, field, object};

/// Reads the retry policy; `None` if it is missing, or wrong, which adds mistakes.
pub(crate) fn retry(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<RetryPolicy> {
    const ALLOWED: &str = "an object with delays (1 to 50, each 10 ms to 30 days), preset (default, standard-webhooks, none) or backoff, \
        and optionally max (failures, -1 for ever) and jitter (0 to 1)";
    const DELAYS: &str = "1 to 50 durations, each 10 ms to 30 days: seconds as a number, or \"15s\", \"3m\", \"1h 30m\", \"1d\" with the units w, d, h, m, s and ms";
    let policy = object(fields, "retry", ALLOWED, mistakes)?;
    policy.check_names("retry.", &["delays", "preset", "backoff", "max", "jitter"], mistakes);
    let jitter = field(&policy, "retry.jitter", "is not a share", "0 to 1", mistakes, |raw| {
        read::<f64>(raw).filter(|jitter| (0.0..=1.0).contains(jitter)).map(|jitter| jitter as f32)
    });
    let max = field(&policy, "retry.max", "is not a bound", "1 to 4294967295, or -1 for ever", mistakes, max);
    let tiers = match (policy.get("delays"), policy.get("preset"), policy.get("backoff")) {
        (Some(raw), None, None) => {
            delays(raw).map_err(|detail| mistakes.add("retry.delays", detail, DELAYS)).ok()
        }
        (None, None, Some(_)) => backoff(&policy, mistakes),
        (None, Some(_), None) => {
            let presets = "default, standard-webhooks, none";
            let preset = |raw| RetryPolicy::preset(&read::<String>(raw)?);
            field(&policy, "retry.preset", "is unknown", presets, mistakes, preset)
        }
        _ => {
            mistakes.add("retry", "needs exactly one of delays, preset and backoff", ALLOWED);
            None
        }
    }?;
    let policy = tiers.with(max.unwrap_or(Max::Tiers), jitter.unwrap_or(DEFAULT_JITTER));
    policy.map_err(|e| mistakes.add("retry", e, ALLOWED)).ok()
}

/// Reads the field `backoff` with delays that grow; `None` if it is missing, or wrong, which adds mistakes.
fn backoff(policy: &Fields<'_>, mistakes: &mut Mistakes) -> Option<RetryPolicy> {
    const ALLOWED: &str = "an object with base and count, and optionally factor and max";
    let fields = object(policy, "retry.backoff", ALLOWED, mistakes)?;
    fields.check_names("retry.backoff.", &["base", "factor", "max", "count"], mistakes);
    for name in ["base", "count"] {
        if fields.get(name).is_none() {
            mistakes.add(format!("retry.backoff.{name}"), "missing", ALLOWED);
        }
    }
    let delay = |name, mistakes: &mut Mistakes| {
        field(&fields, name, "is not a delay", "10 ms to 30 days", mistakes, |raw| {
            duration(raw).ok().filter(|delay| (MIN_TIER..=MAX_TIER).contains(delay))
        })
    };
    let base = delay("retry.backoff.base", mistakes);
    let max = delay("retry.backoff.max", mistakes);
    let factor = field(&fields, "retry.backoff.factor", "is not a factor", "1 to 100", mistakes, |raw| {
        read::<f64>(raw).filter(|factor| (1.0..=MAX_FACTOR).contains(factor))
    });
    let count = field(&fields, "retry.backoff.count", "is not a count", "1 to 50", mistakes, |raw| {
        read::<usize>(raw).filter(|count| (1..=MAX_TIERS).contains(count))
    });
    let policy =
        RetryPolicy::growing(base?, factor.unwrap_or(DEFAULT_FACTOR), max.unwrap_or(MAX_TIER), count?);
    policy.map_err(|error| mistakes.add("retry.backoff", error, ALLOWED)).ok()
}

fn delays(raw: &RawValue) -> Result<RetryPolicy, String> {
    let list: FirstItems<'_, MAX_TIERS> =
        serde_json::from_str(raw.get()).map_err(|_| format!("{} is not a list", shown(raw)))?;
    if list.count > MAX_TIERS {
        return Err(PolicyError::Count(list.count).to_string());
    }
    let delay = |raw| duration(raw).map_err(|why| format!("{} is not a delay: {why}", shown(raw)));
    let delays = list.first.into_iter().map(delay).collect::<Result<Vec<_>, _>>()?;
    RetryPolicy::new(delays, Max::Tiers, DEFAULT_JITTER).map_err(|e| e.to_string())
}

fn max(raw: &RawValue) -> Option<Max> {
    match read::<i64>(raw)? {
        -1 => Some(Max::Unlimited),
        n => u32::try_from(n).ok().filter(|n| *n > 0).map(Max::Failures),
    }
}
