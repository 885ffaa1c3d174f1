//! Tests of turning rows into submits: values of each type, and rows that are not jobs.

use super::*;

fn page(columns: &[&str]) -> Page {
    Page { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
}

fn submit(columns: &[&str], row: &[Value]) -> Result<String, String> {
    let columns = Columns::of_jobs(&page(columns))?;
    let candidate = columns.candidate(&"t".parse().unwrap(), row).map_err(|bad| bad.why)?;
    Ok(String::from_utf8(candidate.json).unwrap())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn with(column: &str, value: Value) -> Result<String, String> {
    submit(&["id", "due_at", column], &[Value::Int(7), Value::Int(0), value])
}

const HEAD: &str = r#"{"topic":"t","id":"7","at":"1970-01-01T00:00:00.000Z""#;

#[test]
fn a_body_goes_as_it_is() {
    let json = with("body", Value::Json(r#"{"n": 1.50}"#.to_owned())).unwrap();
    assert_eq!(json, format!(r#"{HEAD},"body":{{"n": 1.50}}}}"#));
    assert_eq!(with("body", text("[1]")).unwrap(), format!(r#"{HEAD},"body":[1]}}"#));
    let plain = with("body", text("hello")).unwrap();
    assert_eq!(
        plain,
        format!(r#"{HEAD},"body_base64":"aGVsbG8=","content_type":"text/plain; charset=utf-8"}}"#)
    );
    assert!(
        with("body", Value::Bytes(vec![0]))
            .unwrap()
            .contains(r#""AA==","content_type":"application/octet-stream""#)
    );
    assert_eq!(with("body", Value::Null).unwrap(), format!("{HEAD}}}"));
}

#[test]
fn json_columns_hold_json_and_arrays_are_lists() {
    let headers = with("headers", text(r#"{"x-a":"1"}"#)).unwrap();
    assert_eq!(headers, format!(r#"{HEAD},"headers":{{"x-a":"1"}}}}"#));
    let tags = with("tags", Value::List(vec![Some("a".to_owned()), None])).unwrap();
    assert_eq!(tags, format!(r#"{HEAD},"tags":["a"]}}"#));
    assert!(with("context", text("{")).unwrap_err().contains("context is not JSON"));
    assert_eq!(with("timeout", text("5s")).unwrap(), format!(r#"{HEAD},"timeout":"5s"}}"#));
    assert_eq!(with("key", Value::Int(7)).unwrap(), format!(r#"{HEAD},"key":"7"}}"#));
}

#[test]
fn due_times_are_times_texts_or_seconds() {
    let at = |value| due_at(&value).map(|at| at.to_string());
    assert_eq!(at(text("2026-11-20 10:30:00")).unwrap(), "2026-11-20T10:30:00.000Z");
    assert_eq!(at(text("2026-11-20T10:30:00.250+01:00")).unwrap(), "2026-11-20T09:30:00.250Z");
    assert_eq!(at(Value::Int(1_763_600_000)).unwrap(), "2025-11-20T00:53:20.000Z");
    for bad in [text("soon"), Value::Int(-1), Value::Float(2_460_000.5), Value::Bool(true)] {
        assert!(at(bad.clone()).unwrap_err().contains("RFC 3339"), "{bad:?}");
    }
}

#[test]
fn columns_that_jobs_do_not_have_are_refused_and_rows_without_an_id_too() {
    assert!(submit(&["id", "due_at", "topic"], &[]).unwrap_err().contains("column topic"));
    assert!(submit(&["id"], &[]).unwrap_err().contains("no column due_at"));
    assert!(submit(&["id", "due_at", "id"], &[]).unwrap_err().contains("twice"));
    assert_eq!(submit(&["id", "due_at"], &[Value::Null, Value::Int(0)]).unwrap_err(), "id is null");
    assert!(Columns::of_ids(&page(&["id", "due_at"])).is_err());
    assert!(Columns::of_outbox(&page(&["seq", "id", "error", "loaded_at", "url"])).is_ok());
}

#[test]
fn a_row_that_is_too_large_is_refused_by_its_id() {
    let columns = Columns::of_jobs(&page(&["id", "due_at", "body"])).unwrap();
    let row = [Value::Int(7), Value::Int(0), text(&"x".repeat(MAX_ROW))];
    let bad = columns.candidate(&"t".parse().unwrap(), &row).unwrap_err();
    assert!(bad.id == "7" && bad.why.contains("bytes"), "{bad:?}");
}

#[test]
fn values_of_headers_are_not_shown() {
    assert_eq!(
        shown(br#"{"id":"1","headers":{"authorization":"s3cret"}}"#),
        r#"{"headers":{"authorization":"***"},"id":"1"}"#
    );
    let body = r#"{"body":{"b":1e400,"a":"\ud800"},"id":"1"}"#;
    assert_eq!(shown(body.as_bytes()), body);
}
