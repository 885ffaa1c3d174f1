//! The secret header values of a policy, sealed: the field `sealed_headers` of a stored policy has them, and its
//! `headers` have a mask in their place. Here they are moved between the two fields; sealing and opening them needs the
//! master key, which is not known here.

use ringback_core::job::{MASK, is_masked, is_secret};
use ringback_core::topic_policy::{MAX_SEALED_HEADERS, Policy};
use serde_json::{Map, Value};

use super::mask::{with_headers, without_sealed_headers};
use super::{SEALED_HEADERS, parse_policy};
use crate::field_parsers::object::{Fields, Mistakes, read};
use crate::problem::Problem;

const ALLOWED: &str = "what GET /v1/export/topics prints of this topic; leave it out otherwise";

/// The field `sealed_headers` of a policy; `None` if missing, or wrong, which adds a mistake that does not show it.
pub(super) fn sealed_headers(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Box<str>> {
    let raw = fields.get(SEALED_HEADERS)?;
    let sealed = read::<String>(raw).filter(|text| text.len() <= MAX_SEALED_HEADERS);
    if sealed.is_none() {
        mistakes.add(SEALED_HEADERS, "they are not sealed headers", ALLOWED);
    }
    sealed.map(Into::into)
}

/// The secret header values of a policy that are not masked, as a JSON object by name; `None` if there are none.
pub fn secret_header_values(policy: &Policy) -> Option<String> {
    let plain = |(name, value): &&(String, String)| is_secret(name) && !is_masked(name, value);
    let values = policy.headers.entries().iter().filter(plain);
    let values: Map<_, _> = values.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    (!values.is_empty()).then(|| Value::Object(values).to_string())
}

/// A policy with its secret header values masked, and with `sealed` as its `sealed_headers`.
///
/// # Errors
/// As [`parse_policy`]: a mask is longer than a short value, so that the headers can be too long with it.
pub fn with_sealed_headers(policy: &Policy, sealed: &str) -> Result<Policy, Problem> {
    let masked = with_headers(&without_sealed_headers(policy.written().into()), |name, value| {
        if is_secret(name) {
            *value = MASK.into();
        }
    });
    let fields = masked.strip_suffix('}').unwrap_or_default();
    let json = format!("{fields},\"{SEALED_HEADERS}\":{}}}", Value::from(sealed));
    parse_policy(json.as_bytes())
}

/// A policy with opened values in place of its masks; `None` if one is missing in `values`, or it is not valid then.
pub fn with_opened_headers(policy: &Policy, values: &[u8]) -> Option<Policy> {
    let values = serde_json::from_slice::<Map<String, Value>>(values).ok()?;
    let mut is_complete = true;
    let json = with_headers(&without_sealed_headers(policy.written().into()), |name, value| {
        if value.as_str().is_some_and(|value| is_masked(name, value)) {
            let opened = values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            match opened {
                Some((_, opened)) => *value = opened.clone(),
                None => is_complete = false,
            }
        }
    });
    parse_policy(json.as_bytes()).ok().filter(|_| is_complete)
}

/// The headers of a policy with opened values in place of their masks; `None` if `values` does not have one for each
/// mask. Each attempt needs them, so nothing else of the policy is parsed.
pub fn opened_headers(policy: &Policy, values: &[u8]) -> Option<Vec<(String, String)>> {
    let values = serde_json::from_slice::<Map<String, Value>>(values).ok()?;
    let opened = |(name, value): &(String, String)| {
        let value = if is_masked(name, value) { values.get(name)?.as_str()? } else { value };
        Some((name.clone(), value.to_owned()))
    };
    policy.headers.entries().iter().map(opened).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> Policy {
        parse_policy(json.as_bytes()).unwrap()
    }

    #[test]
    fn sealed_values_are_taken_out_and_put_back() {
        let json = r#"{"timeout":"5s","headers":{"Authorization":"Bearer 1","X-A":"1","x-key":"\"2\""},"headers_to":[]}"#;
        let plain = policy(json);
        let values = secret_header_values(&plain).unwrap();
        assert_eq!(values, r#"{"authorization":"Bearer 1","x-key":"\"2\""}"#);
        let sealed = with_sealed_headers(&plain, "k1.abc").unwrap();
        let expected = r#"{"timeout":"5s","headers":{"Authorization":"[masked by ringback]","X-A":"1","x-key":"[masked by ringback]"},"headers_to":[],"sealed_headers":"k1.abc"}"#;
        assert_eq!(sealed.written(), expected);
        assert_eq!((sealed.sealed_headers.as_deref(), secret_header_values(&sealed)), (Some("k1.abc"), None));
        let opened = opened_headers(&sealed, values.as_bytes());
        assert_eq!(opened.as_deref(), Some(plain.headers.entries()));
        assert_eq!(with_opened_headers(&sealed, values.as_bytes()), Some(plain));
        for wrong in [r#"{"authorization":"Bearer 1"}"#, "[]", r#"{"authorization":1,"x-key":"2"}"#] {
            assert_eq!(with_opened_headers(&sealed, wrong.as_bytes()), None, "{wrong}");
            assert_eq!(opened_headers(&sealed, wrong.as_bytes()), None, "{wrong}");
        }
        // Sealed again, they take the place of the former.
        let again = with_sealed_headers(&sealed, "k2.d").unwrap();
        assert_eq!(again.sealed_headers.as_deref(), Some("k2.d"));
    }

    #[test]
    fn a_policy_without_secret_headers_has_nothing_to_seal() {
        assert_eq!(secret_header_values(&policy(r#"{"headers":{"x-a":"1"}}"#)), None);
        assert_eq!(secret_header_values(&policy("{}")), None);
    }

    #[test]
    fn the_longest_secret_headers_stay_within_the_limits() {
        let value = |n: usize| format!("\"x-key-{n}\":\"{}\"", "k".repeat(4_000));
        let plain = policy(&format!("{{\"headers\":{{{},{}}}}}", value(1), value(2)));
        let sealed = with_sealed_headers(&plain, &"s".repeat(MAX_SEALED_HEADERS)).unwrap();
        assert_eq!(sealed.sealed_headers.map(|sealed| sealed.len()), Some(MAX_SEALED_HEADERS));
        // A mask is longer than these values.
        let short: Vec<_> = (10..42).map(|n| format!("\"x-key-{n}{}\":\"1\"", "y".repeat(240))).collect();
        let plain = policy(&format!("{{\"headers\":{{{}}}}}", short.join(",")));
        assert_eq!(with_sealed_headers(&plain, "k1.abc").unwrap_err().errors[0].field, "headers");
        let long = format!("{{\"sealed_headers\":\"{}\"}}", "s".repeat(MAX_SEALED_HEADERS + 1));
        let problem = parse_policy(long.as_bytes()).unwrap_err();
        assert!(problem.status == 413 || problem.errors[0].field == SEALED_HEADERS, "{problem:?}");
        let problem = parse_policy(br#"{"sealed_headers":5}"#).unwrap_err();
        assert_eq!(problem.errors[0].field, SEALED_HEADERS);
        assert!(!problem.errors[0].detail.contains('5'));
    }
}
