//! The content of entries: what a handler says about its change, and how long values are cut and the queries of URLs
//! removed, so that an entry stays small and shows no secret.

use std::convert::Infallible;

use axum::response::{IntoResponseParts, ResponseParts};
use ringback_core::store_types::{AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_ENTRY};
use ringback_wire::{AuditLogEntry, AuditLogTarget};
use serde::Serialize;
use serde_json::{Value, json};

/// The most bytes of `before` and of `after`, as JSON.
const MAX_VALUE: usize = 1_500;
/// The most bytes of a part of the target.
const MAX_PART: usize = 128;

/// What a call has changed, as its handler knows it. A part of the response, which no caller sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(super) target: AuditLogTarget,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
    pub(super) count: Option<u64>,
    pub(super) is_nothing: bool,
}

impl Change {
    /// Nothing was changed, and the call leaves no entry.
    pub(crate) fn nothing() -> Self {
        Self { is_nothing: true, ..Self::default() }
    }

    /// Something was changed: `target` adds to what the path of the call names.
    pub(crate) fn of(target: AuditLogTarget) -> Self {
        Self { target, ..Self::default() }
    }

    /// Sets the value before the change. It must not have a secret, except in the query of a URL, which is removed.
    pub(crate) fn before(self, shown: impl Serialize) -> Self {
        Self { before: shown_in_log(shown), ..self }
    }

    /// Sets the value after the change. It must not have a secret, except in the query of a URL, which is removed.
    pub(crate) fn after(self, shown: impl Serialize) -> Self {
        Self { after: shown_in_log(shown), ..self }
    }

    /// Sets how many jobs, or ended jobs, were changed.
    pub(crate) fn count(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }
}

impl IntoResponseParts for Change {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// Cuts a part of the target, which may be any text that a caller has sent, to [`MAX_PART`].
pub(super) fn part(text: &str) -> String {
    cut(text, MAX_PART).to_owned()
}

pub(super) fn row(id: AuditLogId, owner: AuditLogOwner, entry: &mut AuditLogEntry) -> AuditLogRow {
    let mut written = json_of(entry);
    if written.len() > MAX_AUDIT_LOG_ENTRY {
        // Cannot be, unless a part of the target is longer than any that is valid.
        (entry.before, entry.after) = (None, None);
        entry.target = AuditLogTarget::default();
        written = json_of(entry);
    }
    AuditLogRow { id, owner, written: written.into() }
}

fn json_of(shown: &impl Serialize) -> String {
    serde_json::to_string(shown).expect("plain data always serialises")
}

/// A value without the queries of URLs, which may have secrets. If its JSON is longer than [`MAX_VALUE`], an object
/// with the beginning of it and its length. `None` for null.
fn shown_in_log(shown: impl Serialize) -> Option<Value> {
    let mut value = serde_json::to_value(shown).expect("plain data always serialises");
    drop_queries(&mut value);
    let json = value.to_string();
    if json.len() <= MAX_VALUE {
        return Some(value).filter(|value| !value.is_null());
    }
    // In a string, its quotes take two bytes each.
    let mut most = MAX_VALUE;
    loop {
        let shortened = json!({"cut": cut(&json, most), "bytes": json.len()});
        if shortened.to_string().len() <= MAX_VALUE {
            return Some(shortened);
        }
        most -= 50;
    }
}

fn drop_queries(value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
            if let Some(query) = text.find('?').filter(|_| is_url) {
                text.truncate(query + 1);
                text.push('…');
            }
        }
        Value::Array(values) => values.iter_mut().for_each(drop_queries),
        Value::Object(fields) => fields.values_mut().for_each(drop_queries),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The beginning of a text, of at most so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use ringback_wire::AuditLogOutcome;

    use super::*;

    #[test]
    fn a_value_that_is_long_is_cut_and_says_so() {
        let short = json!({"a": "x".repeat(100)});
        assert_eq!(Change::default().after(&short).after, Some(short));
        for text in ["x".repeat(2_000), "\"".repeat(2_000), "é\n".repeat(2_000), "\u{1}".repeat(9_000)] {
            let long = json!({"a": text});
            let after = Change::default().after(&long).after.unwrap();
            assert_eq!(after["bytes"], long.to_string().len());
            let beginning = after["cut"].as_str().unwrap();
            assert!(long.to_string().starts_with(beginning) && beginning.len() > 500, "{after}");
            assert!(after.to_string().len() <= MAX_VALUE);
        }
        assert_eq!(Change::default().after(Value::Null).after, None);
    }

    #[test]
    fn urls_are_shown_without_their_queries() {
        let change =
            Change::default().before(json!({"url": "https://a.example/b?token=hunter2#c", "other": "a?b"}));
        assert_eq!(change.before, Some(json!({"url": "https://a.example/b?…", "other": "a?b"})));
    }

    #[test]
    fn the_longest_entry_fits() {
        let long = || Some(part(&"\u{1}".repeat(1_000)));
        let target = AuditLogTarget { topic: long(), id: long(), ..AuditLogTarget::default() };
        let value = shown_in_log("\"".repeat(9_000));
        let mut entry = AuditLogEntry {
            id: "0".repeat(26),
            at: "2026-11-26T20:14:07.312Z".to_owned(),
            who: format!("key:{}", "k".repeat(64)),
            address: Some("ffff:".repeat(8)),
            tenant: Some("t".repeat(32)),
            operation: "o".repeat(20),
            target: target.clone(),
            before: value.clone(),
            after: value,
            count: Some(u64::MAX),
            outcome: AuditLogOutcome::Unknown,
            trace_id: Some("0".repeat(32)),
        };
        let id = || AuditLogId::least_of(ringback_core::clock::Timestamp::default());
        let written = row(id(), AuditLogOwner::Installation, &mut entry.clone()).written;
        assert!(written.len() <= MAX_AUDIT_LOG_ENTRY, "{}", written.len());
        entry.target = AuditLogTarget { id: Some("i".repeat(128)), topic: Some("t".repeat(64)), ..target };
        let written = row(id(), AuditLogOwner::Installation, &mut entry).written;
        assert!(written.len() <= MAX_AUDIT_LOG_ENTRY && written.contains("iii"), "{}", written.len());
    }
}
