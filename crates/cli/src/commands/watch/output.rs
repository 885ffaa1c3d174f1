//! Prints the events of `ringback watch`: one line each, in columns for people or as JSON for scripts. Messages about
//! the connection go to standard error; only that events were missed is a line of JSON.

use anstyle::{AnsiColor, Style};
use ringback_core::clock::Timestamp;
use ringback_wire::{JobEvent, JobResponse};
use serde::Serialize;

use crate::args::Format;
use crate::client::ClientError;
use crate::output::{Colour, Output, Times, escape_text, job_details, note, relative};

/// The width of the longest kind.
const KIND: usize = 9;

/// Prints the events of one run.
pub(crate) struct EventPrinter {
    format: Format,
    colour: Colour,
    times: Times,
    /// The kinds to print; empty means all.
    kinds: Vec<String>,
    /// The width of the longest job name so far.
    width: usize,
    /// Whether the wait for the server has been printed.
    is_waiting: bool,
}

/// An event as a line of JSON.
#[derive(Serialize)]
struct Line<'a, T> {
    event: &'a str,
    #[serde(flatten)]
    what: T,
}

impl EventPrinter {
    pub(crate) fn new(out: &Output, kinds: Vec<String>) -> Self {
        let (format, colour, times) = (out.format, out.colour, out.times.clone());
        Self { format, colour, times, kinds, width: 0, is_waiting: false }
    }

    pub(crate) fn event(&mut self, out: &mut Output, name: &str, event: &JobEvent) -> anyhow::Result<()> {
        if !self.kinds.is_empty() && !self.kinds.iter().any(|kind| kind == name) {
            return Ok(());
        }
        match self.format {
            Format::Json => json(out, name, event),
            Format::Table => out.line(self.row(name, event)),
        }
    }

    fn row(&mut self, name: &str, event: &JobEvent) -> String {
        let tenant = event.tenant.as_ref().map(|tenant| format!("~{tenant}/")).unwrap_or_default();
        let job = escape_text(&format!("{tenant}{}/{}", event.topic, event.id));
        self.width = self.width.max(job.len());
        let gap = " ".repeat(KIND.saturating_sub(name.len()));
        let kind = self.colour.paint(name, style(name, event));
        let (at, details) = (self.times.show(&event.at), self.details(event));
        let line = format!("{at}  {kind}{gap}  {job:width$}  {details}", width = self.width);
        line.trim_end().to_owned()
    }

    /// The details of an event, separated by commas.
    fn details(&self, event: &JobEvent) -> String {
        let mut parts = Vec::new();
        if let (Some(number), Some(outcome)) = (event.attempt, &event.outcome) {
            parts.push(format!("{number}: {outcome}"));
        }
        parts.extend(event.status.map(|status| format!("answered {status}")));
        parts.extend(event.error.clone());
        parts.extend(event.duration_ms.map(|took| format!("after {took} ms")));
        parts.extend(event.reason.clone());
        let due = |due: &str| format!("due {}{}", self.times.show(due), from(&event.at, due));
        parts.extend(event.due_at.as_deref().map(due));
        parts.extend((!event.tags.is_empty()).then(|| format!("tags {}", event.tags.join(" "))));
        escape_text(&parts.join(", "))
    }

    /// Prints the current state of the watched job.
    pub(crate) fn job(&self, out: &mut Output, job: &JobResponse) -> anyhow::Result<()> {
        match self.format {
            Format::Json => json(out, "state", job),
            Format::Table => out.bytes(job_details(job, &out.view()).as_bytes()),
        }
    }

    /// Prints that events may be missing.
    pub(crate) fn missed(&mut self, out: &mut Output) -> anyhow::Result<()> {
        self.is_waiting = false;
        match self.format {
            Format::Json => out.line(r#"{"event":"missed"}"#),
            Format::Table => out.note("some events may be missing"),
        }
    }

    /// Prints that the stream has ended.
    pub(crate) fn broken(&mut self, why: &ClientError) {
        note(&format!("the stream of events ended: {why}; reconnecting"));
        self.is_waiting = false;
    }

    /// Prints, once, that the stream could not be opened again.
    pub(crate) fn waiting(&mut self, error: &ClientError) {
        if !std::mem::replace(&mut self.is_waiting, true) {
            note(&format!("{error}; trying again"));
        }
    }
}

fn json(out: &mut Output, event: &str, what: impl Serialize) -> anyhow::Result<()> {
    out.line(serde_json::to_string(&Line { event, what })?)
}

fn style(name: &str, event: &JobEvent) -> Style {
    match name {
        "done" => AnsiColor::Green.on_default(),
        "dead" => AnsiColor::Red.on_default(),
        "cancelled" => Style::new().dimmed(),
        "attempt" if event.outcome.as_deref() != Some("complete") => AnsiColor::Yellow.on_default(),
        _ => Style::new(),
    }
}

/// The time between an event and a due time; empty when it is due at once.
fn from(at: &str, due: &str) -> String {
    let Ok(at) = at.parse::<jiff::Timestamp>() else { return String::new() };
    let at = Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap_or(0));
    match relative(due, at) {
        text if text.is_empty() || text == "now" => String::new(),
        text => format!(" ({text})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> JobEvent {
        let at = "2026-11-20T09:30:15.017Z".to_owned();
        JobEvent { topic: "pay".to_owned(), id: id.to_owned(), at, ..JobEvent::default() }
    }

    fn printer() -> EventPrinter {
        EventPrinter {
            format: Format::Table,
            colour: Colour::No,
            times: Times::Utc,
            kinds: Vec::new(),
            width: 0,
            is_waiting: false,
        }
    }

    #[test]
    fn a_line_has_the_details_and_columns_that_only_grow() {
        let mut printer = printer();
        assert_eq!(
            printer.row("done", &event("order-1")),
            "2026-11-20T09:30:15.017Z  done       pay/order-1"
        );
        let failed = JobEvent {
            attempt: Some(2),
            outcome: Some("retry".to_owned()),
            status: Some(503),
            duration_ms: Some(17),
            due_at: Some("2026-11-20T09:31:00.017Z".to_owned()),
            ..event("1")
        };
        let expected = "2026-11-20T09:30:15.017Z  attempt    pay/1        2: retry, answered 503, after 17 ms, \
                        due 2026-11-20T09:31:00.017Z (in 45s)";
        assert_eq!(printer.row("attempt", &failed), expected);
        let dead = JobEvent { reason: Some("exhausted".to_owned()), ..event("1") };
        let of_tenant = JobEvent { tenant: Some("a".to_owned()), ..event("1") };
        assert_eq!(printer.row("done", &of_tenant), "2026-11-20T09:30:15.017Z  done       ~a/pay/1");
        assert_eq!(printer.row("dead", &dead), "2026-11-20T09:30:15.017Z  dead       pay/1        exhausted");
    }

    #[test]
    fn a_line_for_scripts_names_the_event_and_has_the_data_as_it_came() {
        let line = serde_json::to_string(&Line { event: "done", what: &event("1") }).unwrap();
        assert_eq!(line, r#"{"event":"done","topic":"pay","id":"1","at":"2026-11-20T09:30:15.017Z"}"#);
    }
}
