//! Renders ended jobs of the archive, as rows of a table and with their details.

use ringback_wire::EndedJobDetails;

use super::job::{failure, result, state};
use super::request::{body, content};
use super::{Cell, Table, View, escape_text};

pub(crate) fn end_row(end: &EndedJobDetails, view: &View) -> [Cell; 9] {
    [
        Cell::from(&end.topic),
        Cell::from(&end.id),
        state(&end.state),
        Cell::from(view.time(&end.finished_at)),
        Cell::from(view.relative(&end.finished_at)),
        Cell::from(end.attempts),
        Cell::from(end.reason.as_deref().unwrap_or_default()),
        Cell::from(end.last.as_ref().map(failure).unwrap_or_default()),
        Cell::from(end.tags.join(" ")),
    ]
}

/// The details of an ended job, one per line, with its logged attempts, and its body if the archive has it.
pub(crate) fn end_details(end: &EndedJobDetails, view: &View) -> String {
    let time = |time: &str| Cell::from(view.both(time));
    let mut rows = vec![
        [Cell::from("job"), Cell::from(format!("{}/{}", end.topic, end.id))],
        [Cell::from("state"), state(&end.state)],
        [Cell::from("finished"), time(&end.finished_at)],
        [Cell::from("created"), time(&end.created_at)],
        [Cell::from("first due"), time(&end.first_due_at)],
        [Cell::from("attempts"), Cell::from(end.attempts)],
        [Cell::from("failures"), Cell::from(end.failures)],
    ];
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.map(|value| [Cell::from(name), Cell::from(value)]));
    };
    add("reason", end.reason.clone());
    add("tags", (!end.tags.is_empty()).then(|| end.tags.join(" ")));
    add("url", end.url.clone());
    if let Some(request) = &end.request {
        add("method", request.method.clone());
        add("content", if end.has_body == Some(false) { None } else { Some(content(request)) });
        for (name, value) in request.headers.iter() {
            add("header", Some(format!("{name}: {value}")));
        }
        for (key, value) in request.context.iter() {
            add("context", Some(format!("{key}={value}")));
        }
    }
    for attempt in end.log.iter().flatten() {
        let result = match (attempt.status, attempt.error.as_deref()) {
            (None, Some(error)) => error.to_owned(),
            (status, error) => result(status, error),
        };
        let text = format!("{} {} after {} ms", view.time(&attempt.at), result, attempt.duration_ms);
        add(&format!("attempt {}", attempt.attempt), Some(escape_text(&text)));
    }
    if end.log.is_some() && !end.attempts_complete {
        add("", Some("not all attempts were logged".to_owned()));
    }
    let mut text = Table::new([""; 2], view.colour).page(&rows);
    let body = end.request.as_ref().filter(|_| end.has_body == Some(true)).and_then(|request| body(request));
    if let Some(body) = body.filter(|body| !body.is_empty()) {
        text += &format!("\n{body}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_shown_with_its_attempts_and_its_body() {
        let json = r#"{"topic":"pay","id":"order-1","state":"dead","reason":"exhausted","finished_at":"2025-11-20T00:53:20.000Z",
            "created_at":"2025-11-20T00:53:10.000Z","first_due_at":"2025-11-20T00:53:10.000Z","due_at":"2025-11-20T00:53:19.000Z",
            "attempts":2,"failures":2,"url":"http://h/a","tags":["customer:42"],"attempts_complete":false,"has_body":true,
            "log":[{"attempt":2,"at":"2025-11-20T00:53:19.007Z","duration_ms":4,"status":503,"by":"n"}],
            "request":{"url":"http://h/a","body":{"a": 1},"context":{"k":"v"}}}"#;
        let text = end_details(&serde_json::from_str(json).unwrap(), &View::plain(1_763_600_060_000));
        let expected = "\
job        pay/order-1
state      dead
finished   2025-11-20T00:53:20.000Z (1m ago)
created    2025-11-20T00:53:10.000Z (1m 10s ago)
first due  2025-11-20T00:53:10.000Z (1m 10s ago)
attempts   2
failures   2
reason     exhausted
tags       customer:42
url        http://h/a
content    application/json, 8 bytes
context    k=v
attempt 2  2025-11-20T00:53:19.007Z answered 503 after 4 ms
           not all attempts were logged

{\"a\": 1}
";
        assert_eq!(text, expected);
    }
}
