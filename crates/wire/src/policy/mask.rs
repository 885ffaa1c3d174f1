//! Secret header values of a policy: masked where the policy is shown, and kept where it is put as it
//! was shown.

use std::borrow::Cow;

use ringback_core::job::{MASK, is_masked, is_secret};
use ringback_core::topic_policy::Policy;
use serde_json::{Map, Value};

use super::secrets::{without_field, without_secrets};
use super::{SEALED_HEADERS, parse_policy};
use crate::field_parsers::object::{Mistakes, open, read};
use crate::problem::Problem;

/// A policy as it is shown: JSON, each field as it was written, without its secrets, and with secret header values
/// masked.
pub(crate) fn masked_policy(policy: &Policy) -> Cow<'_, str> {
    let written = without_sealed_headers(without_secrets(policy));
    if !policy.headers.entries().iter().any(|(name, _)| is_secret(name)) {
        return written;
    }
    let mask = |name: &str, value: &mut Value| {
        if is_secret(name) {
            *value = MASK.into();
        }
    };
    Cow::Owned(with_headers(&written, mask))
}

/// A policy as it is to be stored: each masked header value is replaced by that of the stored policy.
///
/// # Errors
/// 422 if no value is stored for a masked header, or a stored value would go to an origin that it did not go to; else
/// as [`parse_policy`], since the stored values may be too long together with the new ones.
pub fn unmask_policy(policy: &Policy, stored: Option<&Policy>) -> Result<Policy, Problem> {
    let values = stored.map_or(&[][..], |stored| stored.headers.entries());
    let value_of = |name: &str| values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut mistakes = Mistakes::default();
    let written = with_headers(policy.written(), |name, value| {
        if !value.as_str().is_some_and(|value| is_masked(name, value)) {
            return;
        }
        match value_of(name) {
            Some((_, kept)) => {
                *value = kept.as_str().into();
                if let Some(origin) = stored.and_then(|stored| new_origin(policy, stored)) {
                    let detail =
                        format!("{name} is {MASK}, and its stored value has not gone to {origin} before");
                    mistakes.add("headers_to", detail, "the origins as they are stored, or the value itself");
                }
            }
            None => mistakes.add(
                "headers",
                format!("{name} is {MASK}, which keeps a stored value, and none is stored for it"),
                "the value itself, or no such header",
            ),
        }
    });
    mistakes.or(())?;
    parse_policy(written.as_bytes())
}

/// An origin (or `all origins`) that gets the headers of a policy, and did not get those of the stored one.
fn new_origin<'a>(policy: &'a Policy, stored: &Policy) -> Option<&'a str> {
    match (&policy.headers_to, &stored.headers_to) {
        (_, None) => None,
        (None, Some(_)) => Some("all origins"),
        (Some(new), Some(_)) => {
            new.iter().map(String::as_str).find(|origin| !stored.sends_headers_to(origin))
        }
    }
}

/// The JSON of a policy without its sealed headers.
pub(super) fn without_sealed_headers(written: Cow<'_, str>) -> Cow<'_, str> {
    without_field(written, SEALED_HEADERS)
}

/// The JSON of a policy whose header values `change` may change, by their names. All other fields stay as they are.
pub(super) fn with_headers(written: &str, mut change: impl FnMut(&str, &mut Value)) -> String {
    let fields = open(written.as_bytes()).expect("a policy keeps the JSON that it was parsed from");
    let mut parts = Vec::new();
    for (field, raw) in fields.iter() {
        let value = if field == "headers" {
            let headers = read::<Map<String, Value>>(raw);
            let mut headers = headers.expect("the headers of a policy are an object of strings");
            headers.iter_mut().for_each(|(name, value)| change(name, value));
            Value::Object(headers).to_string()
        } else {
            raw.get().to_owned()
        };
        parts.push(format!("\"{field}\":{value}"));
    }
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> Policy {
        parse_policy(json.as_bytes()).unwrap()
    }

    const STORED: &str = r#"{"timeout":2.5,"headers":{"Authorization":"Bearer \"1\"","X-A":"1","x-api-key":"hunter2"},"expect_body":"ok"}"#;
    const SHOWN: &str = r#"{"timeout":2.5,"headers":{"Authorization":"[masked by ringback]","X-A":"1","x-api-key":"[masked by ringback]"},"expect_body":"ok"}"#;

    #[test]
    fn a_policy_is_shown_without_its_secrets_and_else_as_it_was_written() {
        assert_eq!(masked_policy(&policy(STORED)), SHOWN);
        for plain in ["{}", r#"{"headers":{"X-A":"1"},"timeout":"1s"}"#] {
            let policy = policy(plain);
            assert_eq!(masked_policy(&policy), policy.written());
        }
    }

    #[test]
    fn a_policy_that_is_put_as_it_was_shown_is_the_stored_one() {
        let (stored, put) = (policy(STORED), policy(SHOWN));
        assert_eq!(unmask_policy(&put, Some(&stored)).unwrap(), stored);
        // Names of headers are compared without case, and the other fields are new.
        let put = policy(r#"{"headers":{"X-API-KEY":"[masked by ringback]","x-a":"[masked by ringback]"}}"#);
        let expected = policy(r#"{"headers":{"X-API-KEY":"hunter2","x-a":"[masked by ringback]"}}"#);
        assert_eq!(unmask_policy(&put, Some(&stored)).unwrap(), expected);
    }

    #[test]
    fn a_mask_without_a_stored_value_is_refused_by_the_name_of_the_header() {
        let put = policy(
            r#"{"headers":{"x-token":"[masked by ringback]","cookie":"[masked by ringback]","x-a":"1"}}"#,
        );
        for stored in [None, Some(policy(STORED)), Some(policy("{}"))] {
            let problem = unmask_policy(&put, stored.as_ref()).unwrap_err();
            assert_eq!(problem.status, 422);
            let details: Vec<_> = problem.errors.iter().map(|error| error.detail.as_str()).collect();
            assert!(
                details[0].starts_with("cookie is [masked") && details[1].starts_with("x-token is"),
                "{details:?}"
            );
            assert_eq!(problem.errors[0].field, "headers");
        }
    }

    #[test]
    fn a_kept_value_goes_to_no_other_origin() {
        let stored =
            policy(r#"{"headers":{"x-token":"1"},"headers_to":["https://a.example","https://b.example"]}"#);
        let put = |to: &str| {
            let put = policy(&format!(r#"{{"headers":{{"x-token":"{MASK}"}},"headers_to":{to}}}"#));
            unmask_policy(&put, Some(&stored))
        };
        assert_eq!(put(r#"["https://a.example"]"#).unwrap().headers, stored.headers);
        assert!(put("[]").is_ok());
        for to in [r#"["https://a.example","https://evil.example"]"#, r#"["*"]"#, "null"] {
            let problem = put(to).expect_err(to);
            assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, "headers_to"), "{to}");
        }
        // One that goes everywhere.
        let everywhere = policy(r#"{"headers":{"x-token":"1"},"headers_to":["*"]}"#);
        let put =
            policy(&format!(r#"{{"headers":{{"x-token":"{MASK}"}},"headers_to":["https://c.example"]}}"#));
        assert!(unmask_policy(&put, Some(&everywhere)).is_ok());
    }

    #[test]
    fn kept_values_count_for_the_limits() {
        let long = format!(r#"{{"headers":{{"x-key":"{}"}}}}"#, "k".repeat(8_000));
        let put = format!(r#"{{"headers":{{"x-key":"{MASK}","x-a":"{}"}}}}"#, "a".repeat(500));
        let problem = unmask_policy(&policy(&put), Some(&policy(&long))).unwrap_err();
        assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, "headers"));
    }
}
