//! Renders the request of a job and the settings that apply to it, one per line, with the body at the end; and the URL
//! and the type of the body as cells of a list.

use ringback_wire::{EffectiveLimits, EffectiveRetry, EffectiveSettings, RequestDetails, SetBy};

use super::{Cell, Colour, Table, escape_lines};

/// The request and the settings that apply, with where each comes from, and the body.
pub(crate) fn request_details(
    request: &RequestDetails,
    effective: &EffectiveSettings,
    colour: Colour,
) -> String {
    let mut rows = vec![row("url", effective.url.clone().unwrap_or_else(|| "none: a pull job".to_owned()))];
    rows.push(row("content", content(request)));
    let value = |from: SetBy, value: &str| format!("{value}{}", origin(from));
    rows.extend(effective.timeout.iter().map(|of| row("timeout", value(of.from, &of.value))));
    rows.extend(effective.ttr.iter().map(|of| row("ttr", value(of.from, &of.value))));
    rows.push(row("retry", retry(&effective.retry)));
    rows.extend(
        effective.expect_body.iter().map(|body| row("expect body", format!("{body:?} (of the topic)"))),
    );
    rows.extend(effective.limits.iter().map(|of| row("limits", format!("{} (of the topic)", limits(of)))));
    rows.extend(effective.on_dead.iter().map(|of| row("on dead", value(of.from, &of.value))));
    rows.extend(effective.on_done.iter().map(|of| row("on done", value(of.from, &of.value))));
    rows.extend(request.traceparent.iter().map(|trace| row("trace", trace.clone())));
    rows.extend(headers(request, effective));
    rows.extend(request.context.iter().map(|(key, value)| row("context", format!("{key}={value}"))));
    let mut text = Table::new([""; 2], colour).page(&rows);
    if let Some(body) = body(request).filter(|body| !body.is_empty()) {
        text += &format!("\n{body}\n");
    }
    text
}

fn row(name: &str, value: String) -> [Cell; 2] {
    [Cell::from(name), Cell::from(value)]
}

/// A note on where a setting comes from; empty for the job itself.
fn origin(from: SetBy) -> &'static str {
    match from {
        SetBy::Job => "",
        SetBy::Topic => " (of the topic)",
        SetBy::Installation => " (of the installation)",
        SetBy::Default => " (default)",
    }
}

fn retry(retry: &EffectiveRetry) -> String {
    let end = match retry.max {
        -1 => "for ever".to_owned(),
        1 => "dead after 1 failure".to_owned(),
        max => format!("dead after {max} failures"),
    };
    let what = if retry.delays.is_empty() {
        format!("none, {end}")
    } else {
        format!("{}, {end}, jitter {}", retry.delays.join(", "), retry.jitter)
    };
    format!("{what}{}", origin(retry.from))
}

fn limits(EffectiveLimits { rate, burst, in_flight }: &EffectiveLimits) -> String {
    limits_summary(rate.as_deref(), *burst, *in_flight)
}

/// Limits in few words: `10/s, burst 20, 5 in flight`.
pub(crate) fn limits_summary(rate: Option<&str>, burst: Option<u32>, in_flight: Option<u32>) -> String {
    let parts = [
        rate.map(str::to_owned),
        burst.map(|burst| format!("burst {burst}")),
        in_flight.map(|most| format!("{most} in flight")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The headers of the callback with where each comes from; of a pull job, its own headers.
fn headers<'a>(
    request: &'a RequestDetails,
    effective: &'a EffectiveSettings,
) -> impl Iterator<Item = [Cell; 2]> + 'a {
    let all = if request.url.is_some() { &effective.headers } else { &request.headers };
    all.iter().map(move |(name, value)| {
        let is_own = request.headers.iter().any(|(own, _)| own == name);
        let from = if is_own { SetBy::Job } else { SetBy::Topic };
        row("header", format!("{name}: {value}{}", origin(from)))
    })
}

/// The content type and the size of the body, as text.
pub(super) fn content(request: &RequestDetails) -> String {
    match request.delivered_body() {
        Ok((bytes, _)) if bytes.is_empty() => "no body".to_owned(),
        Ok((bytes, content_type)) => format!("{content_type}, {} bytes", bytes.len()),
        Err(_) => "a body that is not base64".to_owned(),
    }
}

/// The columns of [`request_cells`].
pub(crate) const REQUEST_COLUMNS: [&str; 2] = ["URL", "BODY"];

/// The URL, and the type and size of the body, of a job in a list; empty without a request.
pub(crate) fn request_cells(request: Option<&RequestDetails>) -> [Cell; 2] {
    let url = |request: &RequestDetails| request.url.clone().unwrap_or_else(|| "(pull)".to_owned());
    [request.map(url), request.map(content)].map(|text| Cell::from(text.unwrap_or_default()))
}

/// The body as text, with control characters escaped; a note if it is not text. `None` if it is not valid base64.
pub(super) fn body(request: &RequestDetails) -> Option<String> {
    let (bytes, _) = request.delivered_body().ok()?;
    Some(match std::str::from_utf8(&bytes) {
        Ok(text) => escape_lines(text.trim_end_matches('\n')),
        Err(_) => "(not text; --output json has it as base64)".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(request: &str, effective: &str) -> String {
        let request = serde_json::from_str(request).unwrap();
        request_details(&request, &serde_json::from_str(effective).unwrap(), Colour::No)
    }

    #[test]
    fn a_request_is_shown_with_what_applies_and_where_it_comes_from() {
        let request = r#"{"url":"http://h/a","body":{"a": 1},"headers":{"x-a":"1"},"context":{"k":"v"},"timeout":"2s"}"#;
        let effective = r#"{"url":"http://h/a","retry":{"from":"installation","delays":["15s","3m"],"max":3,"jitter":0.1},
            "timeout":{"from":"job","value":"2s"},"headers":{"x-token":"[masked by ringback]","x-a":"1"},
            "expect_body":"ok","limits":{"rate":"10/s","burst":20,"in_flight":null},"on_dead":{"from":"topic","value":"http://h/dead"}}"#;
        let expected = "\
url          http://h/a
content      application/json, 8 bytes
timeout      2s
retry        15s, 3m, dead after 3 failures, jitter 0.1 (of the installation)
expect body  \"ok\" (of the topic)
limits       10/s, burst 20 (of the topic)
on dead      http://h/dead (of the topic)
header       x-token: [masked by ringback] (of the topic)
header       x-a: 1
context      k=v

{\"a\": 1}
";
        assert_eq!(details(request, effective), expected);
    }

    #[test]
    fn no_body_controls_the_terminal() {
        let effective = r#"{"retry":{"from":"job","delays":[],"max":1,"jitter":0.0},"ttr":{"from":"default","value":"30s"}}"#;
        // "a\x1b[31m\n\tb"
        let text = details(r#"{"body_base64":"YRtbMzFtCgli","content_type":"text/plain"}"#, effective);
        assert!(text.ends_with("\n\na\\u{1b}[31m\n\tb\n"), "{text}");
        assert!(text.contains("url      none: a pull job\ncontent  text/plain, 9 bytes\n"), "{text}");
        assert!(text.contains("retry    none, dead after 1 failure\n"), "{text}");
        let binary = details(r#"{"body_base64":"/w=="}"#, effective);
        assert!(binary.ends_with("(not text; --output json has it as base64)\n"), "{binary}");
        let none = details("{}", effective);
        assert!(none.contains("content  no body\n") && none.ends_with("failure\n"), "{none}");
    }
}
