//! The field `retry`: the retry policy of a job or a topic.

use serde_json::value::RawValue;

use super::object::{Fields, Mistakes, read, shown, wrong_type};
use super::values::duration;
use crate::retry::{DEFAULT_JITTER, Max, RetryPolicy};

/// The retry policy.
pub(crate) fn retry(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<RetryPolicy> {
    const ALLOWED: &str = "an object with delays (1 to 50, each 10 ms to 30 days) or preset (default, standard-webhooks, none), \
        and optionally max (failures, -1 for ever) and jitter (0 to 1)";
    let raw = fields.get("retry")?;
    let Ok(policy) = serde_json::from_str::<Fields<'_>>(raw.get()) else {
        return wrong_type(mistakes, "retry", raw, ALLOWED);
    };
    policy.check_names("retry.", &["delays", "preset", "max", "jitter"], mistakes);
    let jitter = match policy.get("jitter") {
        None => DEFAULT_JITTER,
        Some(raw) => read::<f32>(raw).filter(|j| (0.0..=1.0).contains(j)).unwrap_or_else(|| {
            mistakes.add("retry.jitter", format!("{} is no share", shown(raw)), "0 to 1");
            DEFAULT_JITTER
        }),
    };
    let max = match policy.get("max") {
        None => Max::Tiers,
        Some(raw) => max(raw).unwrap_or_else(|| {
            mistakes.add(
                "retry.max",
                format!("{} is no bound", shown(raw)),
                "1 to 4294967295, or -1 for ever",
            );
            Max::Tiers
        }),
    };
    let tiers = match (policy.get("delays"), policy.get("preset")) {
        (Some(raw), None) => delays(raw),
        (None, Some(raw)) => {
            read::<String>(raw).and_then(|name| RetryPolicy::preset(&name)).ok_or_else(|| {
                ("retry.preset", format!("{} is unknown", shown(raw)), "default, standard-webhooks, none")
            })
        }
        _ => Err(("retry", "needs exactly one of delays and preset".to_owned(), ALLOWED)),
    };
    match tiers {
        Ok(tiers) => tiers.with(max, jitter).map_err(|e| mistakes.add("retry", e, ALLOWED)).ok(),
        Err((field, detail, allowed)) => {
            mistakes.add(field, detail, allowed);
            None
        }
    }
}

fn delays(raw: &RawValue) -> Result<RetryPolicy, (&'static str, String, &'static str)> {
    let wrong = |detail: String| ("retry.delays", detail, "1 to 50 durations, each 10 ms to 30 days");
    let list: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| wrong(format!("{} is no list", shown(raw))))?;
    let delays = list.into_iter().map(duration).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    RetryPolicy::new(delays, Max::Tiers, DEFAULT_JITTER).map_err(|e| wrong(e.to_string()))
}

fn max(raw: &RawValue) -> Option<Max> {
    match read::<i64>(raw)? {
        -1 => Some(Max::Unlimited),
        n => u32::try_from(n).ok().filter(|n| *n > 0).map(Max::Failures),
    }
}
