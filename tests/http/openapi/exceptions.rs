//! Reads `exceptions.json`: where the OpenAPI document and the API may differ, each with a reason. The Rust tests, the
//! hooks of schemathesis and the rules of redocly all use it.

use std::sync::LazyLock;

use serde_json::Value;

/// The content of `exceptions.json`, parsed once.
pub(crate) fn exceptions() -> &'static Value {
    static EXCEPTIONS: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("exceptions.json")).expect("valid JSON"));
    &EXCEPTIONS
}

/// Whether a field that is valid by its schema may be refused with this detail. `value` is what was sent in the field.
pub(crate) fn may_be_refused(field: &str, value: &Value, detail: &str) -> bool {
    // A job of a schedule is one of its fields.
    let field = field.strip_prefix("job.").unwrap_or(field);
    let known = exceptions()["refused though valid"].as_array().expect("a list");
    known.iter().any(|exception| {
        let has_field = exception["fields"].as_array().expect("a list").iter().any(|name| name == field);
        let has_detail = exception["detail"].as_str().is_none_or(|text| detail.contains(text));
        let has_value = match exception["value"].as_str() {
            None => true,
            Some("text") => value.to_string().contains('"'),
            Some("fraction") => value.is_f64(),
            Some("not ASCII") => !value.to_string().is_ascii(),
            Some(other) => panic!("no kind of value is called {other}"),
        };
        has_field && has_detail && has_value
    })
}

#[test]
fn every_exception_has_a_reason() {
    for (kind, list) in exceptions().as_object().expect("an object") {
        for exception in list.as_array().expect("a list") {
            assert!(
                exception["reason"].as_str().is_some_and(|reason| reason.len() > 15),
                "{kind}: {exception}"
            );
        }
    }
}
