//! Values at the limits of a schema and just beyond them, and texts in all forms that fields have. Some are valid; the
//! validator decides.

use serde_json::{Map, Value, json};

use super::cases::good;

/// Texts that are right for one field or another, or nearly so.
const TEXTS: [&str; 26] = [
    "0s",
    "200ms",
    "1h 30m",
    "11m",
    "61s",
    "13h",
    "11 years",
    "1 month",
    "PT1H",
    "2026-11-20T09:30:00Z",
    "2026-11-20T09:30:00",
    "2090-01-01T00:00:00Z",
    "http://h/",
    "HTTPS://H.example:8443/a?b=c",
    "http://h:65536/",
    "http://user@h/",
    "http://h/#f",
    "ftp://h/",
    ".",
    "..",
    "a/b",
    "aGVsbG8=",
    "aGVsbG9=",
    "text/plain",
    "text/plain; charset=utf-8",
    " a",
];

/// Longer texts and lists are left to the tests of each limit.
const MAX_EDGE: u64 = 3_000;

/// The edge values of a schema whose references are resolved.
pub(super) fn edges(schema: &Value) -> Vec<Value> {
    let mut values = Vec::new();
    for form in ["oneOf", "anyOf"].iter().flat_map(|kind| schema[*kind].as_array().into_iter().flatten()) {
        values.extend(edges(form));
    }
    for (limit, beyond) in [("minimum", -1.0), ("maximum", 1.0)] {
        if let Some(limit) = schema[limit].as_f64() {
            values.extend([json!(limit), json!(limit + beyond), json!(limit + beyond / 1024.0)]);
            if limit.fract() == 0.0 {
                values.extend([json!(limit as i64), json!((limit + beyond) as i64)]);
            }
        }
    }
    for (limit, beyond) in [("minLength", -1), ("maxLength", 1)] {
        if let Some(limit) = schema[limit].as_i64().filter(|limit| *limit <= MAX_EDGE as i64) {
            let lengths = [limit, limit + beyond].map(|length| usize::try_from(length).unwrap_or_default());
            values.extend(lengths.iter().flat_map(|length| ["x", "ä"].map(|c| json!(c.repeat(*length)))));
        }
    }
    if schema["type"] == "string" {
        values.extend(TEXTS.map(Value::from));
    }
    if schema["format"] == "friendly-duration" {
        let longest = schema["maxLength"].as_u64().expect("a limit") as usize;
        values.extend([longest, longest + 1].map(|length| json!(format!("{:<length$}", "5s"))));
        values.extend(["5s", "5"].map(Value::from));
    }
    if schema["format"] == "timestamp" {
        let longest = schema["maxLength"].as_u64().expect("a limit") as usize;
        let annotated = |length: usize| format!("2026-11-20T09:30:00Z[a={}]", "b".repeat(length - 24));
        values.extend([longest, longest + 1].map(|length| json!(annotated(length))));
    }
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| *most <= MAX_EDGE) {
        values.extend([most, most + 1].map(|count| (0..count).map(|_| good(&schema["items"])).collect()));
    }
    if let Some(most) = schema["maxProperties"].as_u64() {
        let fields = |count| (0..count).map(|n| (format!("k{n}"), json!("v"))).collect::<Map<_, _>>();
        values.extend([most, most + 1].map(|count| Value::Object(fields(count))));
        let names = ["", "host", "Host", "webhook-id", "Ringback-X", "ä", "a b", "x-a:", "x_a"];
        values.extend(names.map(|name| json!({name: "v"})));
        values.extend(["", " v", "v ", "a\tb", "ä", "a\nb"].map(|value| json!({"x-a": value})));
        values.push(json!({"x-a": "v", "X-A": "v"}));
    }
    values.extend(schema["enum"].as_array().into_iter().flatten().cloned());
    values
}

/// An object with only the required fields.
pub(super) fn least(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields = required.map(|name| (name.to_owned(), good(&schema["properties"][name])));
    Value::Object(fields.collect())
}

/// Objects with the required fields alone, and with each other field and each pair of fields added.
pub(super) fn pairs(schema: &Value) -> Vec<Value> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let with = |names: &[&String]| {
        let mut object = least(schema);
        names.iter().for_each(|name| object[name.as_str()] = good(&properties[*name]));
        object
    };
    let names: Vec<_> = properties.keys().filter(|name| *name != "wait").collect();
    let mut objects = vec![with(&[])];
    for (n, name) in names.iter().enumerate() {
        objects.push(with(&[name]));
        objects.extend(names[..n].iter().map(|other| with(&[name, other])));
    }
    objects
}
