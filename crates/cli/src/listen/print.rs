//! Prints the requests that a receiver gets: with headings, headers and body for people, or one line of JSON each. A
//! request is untrusted text, so its control characters are escaped.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style as Colours};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::args::Format;
use crate::output::{Colour, Times, escape_json, escape_lines, escape_text};

/// The most bytes of a body that people see. JSON has the whole body.
const SHOWN: usize = 16 * 1024;
/// The most requests that wait to be printed. More wait before they are answered.
const WAITING: usize = 16;

/// A request as it arrived, and the status that it is answered with; `None` if its sender was gone before.
pub(super) struct Received {
    /// RFC 3339 with milliseconds, UTC.
    pub(super) at: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    /// The body, or why it was not read.
    pub(super) body: Result<Bytes, &'static str>,
    pub(super) status: Option<StatusCode>,
}

/// How requests are printed.
pub(super) struct Style {
    format: Format,
    colour: Colour,
    times: Times,
}

/// Sends requests to a thread that prints them, so that a blocked terminal blocks nothing else.
#[derive(Clone)]
pub(super) struct Printer(mpsc::Sender<Received>);

impl Printer {
    /// Starts the thread that prints. It ends when the last clone of the printer is dropped, or, with the error, when
    /// standard output cannot be written.
    pub(super) fn start(style: Style) -> (Self, JoinHandle<io::Result<()>>) {
        let (tx, mut rx) = mpsc::channel::<Received>(WAITING);
        let printing = tokio::task::spawn_blocking(move || {
            while let Some(received) = rx.blocking_recv() {
                let text = style.print(&received);
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
            }
            Ok(())
        });
        (Self(tx), printing)
    }

    /// Queues a request to be printed, and waits while 16 others are queued. Does nothing if the thread has ended.
    pub(super) async fn print(&self, received: Received) {
        self.0.send(received).await.ok();
    }

    /// Queues a request to be printed without waiting. Drops it if 16 others are queued.
    pub(super) fn print_soon(&self, received: Received) {
        self.0.try_send(received).ok();
    }

    /// Waits until the thread has ended.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// A request as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    at: &'a str,
    method: &'a str,
    path: &'a str,
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_missing: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

impl Style {
    /// The style that the flags and the terminal select.
    pub(super) fn of_stdout(format: Format, times: Times) -> Self {
        Self { format, colour: Colour::of_stdout(), times }
    }

    fn print(&self, received: &Received) -> String {
        match self.format {
            Format::Json => json(received),
            Format::Table => self.text(received),
        }
    }

    fn text(&self, received: &Received) -> String {
        let Received { at, method, path, headers, body, status } = received;
        let heading = format!("{} {}", escape_text(method), escape_text(path));
        let heading = self.colour.paint(&heading, Colours::new().bold());
        let answer = match status {
            Some(status) => self.colour.paint(status.as_str(), colours_of(*status)),
            None => self.colour.paint("no answer", AnsiColor::Yellow.on_default()),
        };
        let mut text = format!("{heading} -> {answer}  {}\n", self.times.show(at));
        for (name, value) in headers {
            let name = self.colour.paint(name.as_str(), AnsiColor::Cyan.on_default());
            let _ = writeln!(text, "  {name}: {}", escape_text(&String::from_utf8_lossy(value.as_bytes())));
        }
        let body = match body {
            Ok(body) if body.is_empty() => String::new(),
            Ok(body) => body_text(body),
            Err(why) => format!("({why})"),
        };
        if !body.is_empty() {
            text.push('\n');
            for line in body.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text + "\n"
    }
}

fn colours_of(status: StatusCode) -> Colours {
    let colour = if status.is_success() { AnsiColor::Green } else { AnsiColor::Yellow };
    colour.on_default()
}

/// The first 16 KiB of a body, as text with its line breaks and tabs, or as base64; and how many bytes follow.
fn body_text(body: &[u8]) -> String {
    let shown = match str::from_utf8(body) {
        Ok(text) => {
            let end = (0..=SHOWN.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            let start = &text[..end.unwrap_or(0)];
            (start.len(), escape_lines(start))
        }
        Err(_) => {
            let start = &body[..body.len().min(SHOWN)];
            (start.len(), format!("(base64) {}", STANDARD.encode(start)))
        }
    };
    let (length, mut text) = shown;
    if length < body.len() {
        let _ = write!(text, "\n... and {} more bytes", body.len() - length);
    }
    text
}

fn json(received: &Received) -> String {
    let Received { at, method, path, headers, body, status } = received;
    let mut all = Map::new();
    for name in headers.keys() {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        all.insert(name.to_string(), values.join(", ").into());
    }
    let whole = body.as_ref().ok().filter(|body| !body.is_empty());
    let text = whole.and_then(|body| str::from_utf8(body).ok());
    let line = Line {
        at,
        method,
        path,
        headers: all,
        body: text,
        body_base64: whole.filter(|_| text.is_none()).map(|body| STANDARD.encode(body)),
        body_missing: body.as_ref().err().copied(),
        status: status.map(|status| status.as_u16()),
    };
    escape_json(&serde_json::to_string(&line).expect("plain data always serialises")) + "\n"
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn received(body: Result<&[u8], &'static str>) -> Received {
        let hostile = HeaderValue::from_bytes(b"a\x9b31m\xc2\x9b2J\t").unwrap();
        Received {
            at: "2026-11-22T06:17:47.733Z".to_owned(),
            method: "POST".to_owned(),
            path: "/hook?a=1".to_owned(),
            headers: [("x-b".parse().unwrap(), hostile)].into_iter().collect(),
            body: body.map(Bytes::copy_from_slice),
            status: Some(StatusCode::OK),
        }
    }

    fn shown(format: Format, body: Result<&[u8], &'static str>) -> String {
        Style { format, colour: Colour::No, times: Times::Utc }.print(&received(body))
    }

    #[test]
    fn people_see_heading_headers_and_body() {
        let text = shown(Format::Table, Ok(b"{\n\t\"a\": \"\x1b[31m\"\n}\r"));
        let expected = "POST /hook?a=1 -> 200  2026-11-22T06:17:47.733Z\n  x-b: a\u{fffd}31m\\u{9b}2J\\t\n\n  \
            {\n  \t\"a\": \"\\u{1b}[31m\"\n  }\\r\n\n";
        assert_eq!(text, expected);
        assert!(shown(Format::Table, Ok(b"\xff\0")).ends_with("\n\n  (base64) /wA=\n\n"));
        assert!(shown(Format::Table, Ok(b"")).ends_with("\\t\n\n"));
        assert!(shown(Format::Table, Err("larger")).ends_with("\n\n  (larger)\n\n"));
        let gone = Received { status: None, ..received(Err("gone")) };
        let text = Style { format: Format::Table, colour: Colour::No, times: Times::Utc }.print(&gone);
        assert!(text.starts_with("POST /hook?a=1 -> no answer  2026-11-22T06:17:47.733Z\n"), "{text}");
    }

    #[test]
    fn a_long_body_is_cut_for_people_and_whole_in_json() {
        let long = "ä".repeat(SHOWN);
        let text = shown(Format::Table, Ok(long.as_bytes()));
        assert!(text.ends_with(&format!("ä\n  ... and {SHOWN} more bytes\n\n")), "{}", text.len());
        let line: Value = serde_json::from_str(&shown(Format::Json, Ok(long.as_bytes()))).unwrap();
        assert_eq!(line["body"], long);
    }

    #[test]
    fn a_line_of_json_has_no_control_characters() {
        let line = shown(Format::Json, Ok("\u{1b}[31m\u{9b}\n".as_bytes()));
        assert!(!line.trim_end_matches('\n').chars().any(char::is_control), "{line}");
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&parsed["body"], &parsed["status"]), (&"\u{1b}[31m\u{9b}\n".into(), &200.into()));
        assert_eq!((&parsed["method"], &parsed["path"]), (&"POST".into(), &"/hook?a=1".into()));
        let binary: Value = serde_json::from_str(&shown(Format::Json, Ok(b"\xff\0"))).unwrap();
        assert_eq!((&binary["body"], &binary["body_base64"]), (&Value::Null, &"/wA=".into()));
    }
}
