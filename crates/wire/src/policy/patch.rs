//! Changes of a policy: a patch is merged into what is stored, and what a change has dropped is named.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ringback_core::job::Headers;
use ringback_core::topic_policy::Policy;
use serde_json::value::RawValue;

use super::mask::masked_policy;
use super::{PolicyPatchRequest, parse_policy};
use crate::declare::Request as _;
use crate::field_parsers::object::{Fields, Mistakes, open, read};
use crate::problem::Problem;

const HEADERS: &str = "headers";
const ARCHIVE: &str = "archive";
const ORDER: &str = "order";
const ORDER_ON_DEAD: &str = "order_on_dead";

/// A change of some fields of a policy (RFC 7396): a field takes the place of the stored one, and null removes it.
/// `headers` and `archive` are merged one by one. The fields of `retry` belong together, and so do those of `limits`:
/// each of the two is replaced as a whole.
#[derive(Clone, Debug)]
pub struct PolicyPatch(Vec<(String, Box<RawValue>)>);

impl PolicyPatch {
    /// Parses a patch. The values of its fields are checked when it is merged.
    ///
    /// # Errors
    /// A 400 problem if it is not a JSON object in UTF-8, 413 if it is too long, 422 with all wrong names.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let (fields, mut mistakes) = (open(json)?, Mistakes::default());
        fields.check_names("", &PolicyPatchRequest::names(), &mut mistakes);
        mistakes.or(Self(fields.iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())).collect()))
    }

    /// The policy of the fields of this change alone, to check them before the stored policy is read.
    ///
    /// # Errors
    /// As [`parse_policy`].
    pub fn alone(&self) -> Result<Policy, Problem> {
        // What is said about an order may belong to a stored one.
        let ordered = parse_policy(br#"{"order":"key"}"#).expect("it is a policy");
        self.merged(Some(&ordered))
    }

    /// The stored policy with this change, as a caller would put the whole: secret header values that are kept are
    /// masked, and the secrets of the topic are left out.
    ///
    /// # Errors
    /// As [`parse_policy`].
    pub fn merged(&self, stored: Option<&Policy>) -> Result<Policy, Problem> {
        let shown = stored.map_or(Cow::Borrowed("{}"), masked_policy);
        let stored = open(shown.as_bytes()).expect("a policy keeps the JSON that it was parsed from");
        let mut merged: Vec<(&str, Cow<'_, str>)> = Vec::new();
        let removes_order = self.0.iter().any(|(name, raw)| name == ORDER && raw.get() == "null");
        for (name, raw) in stored.iter() {
            let is_kept = !(removes_order && name == ORDER_ON_DEAD);
            if is_kept && self.0.iter().all(|(given, _)| given != name) {
                merged.push((name, raw.get().into()));
            }
        }
        for (name, raw) in &self.0 {
            let is_merged = [HEADERS, ARCHIVE].contains(&name.as_str());
            let both = if is_merged { merged_entries(name, stored.get(name), raw) } else { None };
            merged.push((name, both.map_or(raw.get().into(), Cow::Owned)));
        }
        let fields: Vec<_> = merged.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        parse_policy(format!("{{{}}}", fields.join(",")).as_bytes())
    }
}

/// The entries of a stored object with those of a patch in place of the ones of the same names, in any case. `None` if
/// the patch is not an object or has invalid headers: then the whole policy is refused.
fn merged_entries(name: &str, stored: Option<&RawValue>, patch: &RawValue) -> Option<String> {
    if name == HEADERS {
        // The names are checked, also of those to remove.
        let all: BTreeMap<String, Option<String>> = read(patch)?;
        Headers::parse(all.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect())
            .ok()?;
    }
    let patch = serde_json::from_str::<Fields<'_>>(patch.get()).ok()?;
    let stored = serde_json::from_str::<Fields<'_>>(stored.map_or("{}", RawValue::get)).ok()?;
    let is_kept = |name: &str| patch.iter().all(|(given, _)| !given.eq_ignore_ascii_case(name));
    let kept = stored.iter().filter(|(name, _)| is_kept(name));
    let given = patch.iter().filter(|(_, raw)| raw.get() != "null");
    let quoted = |name: &str| serde_json::to_string(name).expect("a text always serialises");
    let entries: Vec<_> =
        kept.chain(given).map(|(name, raw)| format!("{}:{}", quoted(name), raw.get())).collect();
    Some(format!("{{{}}}", entries.join(",")))
}

/// The names of the fields that a policy had before a change and does not have after it. Sealed ones are never named.
pub fn dropped_fields(before: Option<&Policy>, after: &Policy) -> Vec<String> {
    let Some(before) = before else { return Vec::new() };
    let (before, after) = (masked_policy(before), masked_policy(after));
    let names = |written: &str| -> Vec<String> {
        open(written.as_bytes())
            .map(|all| all.iter().map(|(name, _)| name.to_owned()).collect())
            .unwrap_or_default()
    };
    let left = names(&after);
    names(&before).into_iter().filter(|name| !left.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(stored: &str, patch: &str) -> Result<Policy, Problem> {
        let stored = parse_policy(stored.as_bytes()).unwrap();
        PolicyPatch::parse(patch.as_bytes())?.merged(Some(&stored))
    }

    #[test]
    fn given_fields_replace_null_removes_and_the_others_stay() {
        for (stored, patch, wanted) in [
            (r#"{"expect_body":"ok"}"#, r#"{"timeout":"5s"}"#, r#"{"timeout":"5s","expect_body":"ok"}"#),
            (
                r#"{"timeout":"1s","expect_body":"ok"}"#,
                r#"{"timeout":2.50}"#,
                r#"{"timeout":2.5,"expect_body":"ok"}"#,
            ),
            (
                r#"{"timeout":"1s","expect_body":"ok"}"#,
                r#"{"timeout":null,"ttr":null}"#,
                r#"{"expect_body":"ok"}"#,
            ),
            (
                r#"{"retry":{"delays":["1s"],"max":3}}"#,
                r#"{"retry":{"preset":"none"}}"#,
                r#"{"retry":{"preset":"none"}}"#,
            ),
            (
                r#"{"limits":{"rate":"1/s","burst":2}}"#,
                r#"{"limits":{"in_flight":5}}"#,
                r#"{"limits":{"in_flight":5}}"#,
            ),
            (r#"{"limits":{"in_flight":5}}"#, r#"{"limits":null}"#, "{}"),
            (
                r#"{"order":"key"}"#,
                r#"{"order_on_dead":"hold"}"#,
                r#"{"order":"key","order_on_dead":"hold"}"#,
            ),
            (r#"{"order":"key","order_on_dead":"hold"}"#, r#"{"order":null}"#, "{}"),
            (
                r#"{"archive":{"states":["done"]}}"#,
                r#"{"archive":{"bodies":true}}"#,
                r#"{"archive":{"bodies":true,"states":["done"]}}"#,
            ),
            (
                r#"{"archive":{"states":["done"],"bodies":true}}"#,
                r#"{"archive":{"states":null}}"#,
                r#"{"archive":{"bodies":true}}"#,
            ),
            ("{}", "{}", "{}"),
            ("{}", r#"{"headers":{"x-a":null}}"#, r#"{"headers":{}}"#),
        ] {
            assert_eq!(merged(stored, patch).unwrap().written(), wanted, "{patch}");
        }
        let on_dead = PolicyPatch::parse(br#"{"order_on_dead":"hold"}"#).unwrap();
        assert!(on_dead.alone().is_ok());
        assert_eq!(on_dead.merged(None).unwrap_err().errors[0].field, "order_on_dead");
        let new = PolicyPatch::parse(br#"{"timeout":"5s"}"#).unwrap().merged(None).unwrap();
        assert_eq!(new.written(), r#"{"timeout":"5s"}"#);
    }

    #[test]
    fn headers_are_merged_one_by_one_and_secret_values_stay_masked() {
        let stored = r#"{"headers":{"X-A":"1","x-b":"\"2\"","x-token":"hunter2"},"headers_to":["*"]}"#;
        let policy = merged(stored, r#"{"headers":{"x-a":"3","x-c":"4","x-b":null}}"#).unwrap();
        let expected = [("x-token", "[masked by ringback]"), ("x-a", "3"), ("x-c", "4")];
        let mut entries = policy.headers.entries().to_vec();
        entries.sort();
        let mut expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        expected.sort();
        assert_eq!(entries, expected);
        assert!(
            merged(stored, r#"{"headers":null,"headers_to":null}"#).unwrap().headers.entries().is_empty()
        );
    }

    #[test]
    fn wrong_patches_are_refused_with_the_names_of_their_fields() {
        for (patch, field) in [
            (r#"{"time_out":"5s"}"#, "time_out"),
            (r#"{"timeout":"5s","timeout":"6s"}"#, "timeout"),
            (r#"{"timeout":-1}"#, "timeout"),
            (r#"{"order":null,"order_on_dead":"hold"}"#, "order_on_dead"),
            (r#"{"headers":5}"#, "headers"),
            (r#"{"headers":{"x-a":5}}"#, "headers"),
            (r#"{"secrets":[]}"#, "secrets"),
            (r#"{"sealed_headers":"k"}"#, "sealed_headers"),
        ] {
            let problem = merged(r#"{"headers":{"x-b":"1"},"headers_to":["*"]}"#, patch).expect_err(patch);
            assert!(
                problem.status == 422 && problem.errors[0].field.starts_with(field),
                "{patch}: {problem:?}"
            );
        }
        for patch in ["[]", "\"hunter2\"", "{"] {
            assert_eq!(PolicyPatch::parse(patch.as_bytes()).unwrap_err().status, 400, "{patch}");
        }
    }

    #[test]
    fn dropped_fields_are_those_that_were_set_and_no_longer_are() {
        let policy = |json: &str| parse_policy(json.as_bytes()).unwrap();
        let before =
            policy(r#"{"timeout":"1s","expect_body":"ok","headers":{"x-a":"1"},"limits":{"in_flight":5}}"#);
        let after = policy(r#"{"timeout":"2s","ttr":"5s"}"#);
        assert_eq!(dropped_fields(Some(&before), &after), ["headers", "expect_body", "limits"]);
        assert!(dropped_fields(None, &after).is_empty());
    }
}
