//! Renders a job as a row of a list, or with its details one per line; and what several renderings share: the colour of
//! a state, the result of an attempt, and a name with its tenant.

use anstyle::{AnsiColor, Style};
use ringback_wire::{HeldBy, JobResponse, LastAttemptDetails, WaitCause, WaitDetails};

use super::{Cell, Table, View};

/// The state of a job or of a bulk operation, in its colour.
pub(crate) fn state(name: &str) -> Cell {
    let style = match name {
        "done" => AnsiColor::Green.on_default(),
        "dead" | "missing" => AnsiColor::Red.on_default(),
        "ready" | "reserved" | "running" => AnsiColor::Yellow.on_default(),
        "cancelled" => Style::new().dimmed(),
        _ => Style::new(),
    };
    Cell::styled(name, style)
}

/// The status and the error of the last failed attempt, as text.
pub(crate) fn failure(last: &LastAttemptDetails) -> String {
    result(last.status, last.error.as_deref())
}

/// The result of an attempt as text: the status of its answer and its error, as far as there are any, else `failed`.
pub(super) fn result(status: Option<u16>, error: Option<&str>) -> String {
    match (status, error) {
        (Some(status), Some(error)) => format!("answered {status}: {error}"),
        (Some(status), None) => format!("answered {status}"),
        (None, Some(error)) => format!("no answer: {error}"),
        (None, None) => "failed".to_owned(),
    }
}

/// A name in a list, as `~tenant/name` if it belongs to a tenant and the list is of all tenants.
pub(crate) fn whose(tenant: Option<&str>, name: &str) -> String {
    tenant.map_or_else(|| name.to_owned(), |tenant| format!("~{tenant}/{name}"))
}

pub(crate) const JOB_COLUMNS: [&str; 10] =
    ["TOPIC", "ID", "STATE", "DUE", "", ">ATTEMPTS", ">FAILURES", "REASON", "LAST FAILURE", "TAGS"];

pub(crate) fn job_row(job: &JobResponse, view: &View) -> [Cell; 10] {
    [
        Cell::from(&job.topic),
        Cell::from(&job.id),
        state(&job.state),
        Cell::from(view.time(&job.due_at)),
        Cell::from(view.relative(&job.due_at)),
        Cell::from(job.attempts),
        Cell::from(job.failures),
        Cell::from(job.reason.as_deref().unwrap_or_default()),
        Cell::from(job.last.as_ref().map(failure).unwrap_or_default()),
        Cell::from(job.tags.join(" ")),
    ]
}

/// The details of a job, one per line.
pub(crate) fn job_details(job: &JobResponse, view: &View) -> String {
    let time = |time: &str| Cell::from(view.both(time));
    let mut rows = vec![
        [Cell::from("job"), Cell::from(format!("{}/{}", job.topic, job.id))],
        [Cell::from("state"), state(&job.state)],
        [Cell::from("due"), time(&job.due_at)],
        [Cell::from("created"), time(&job.created_at)],
        [Cell::from("attempts"), Cell::from(job.attempts)],
        [Cell::from("failures"), Cell::from(job.failures)],
    ];
    if let Some(last) = &job.last {
        let text = format!("{} {} after {} ms", view.time(&last.at), failure(last), last.duration_ms);
        rows.push([Cell::from("last failure"), Cell::from(text)]);
    }
    if let Some(reason) = &job.reason {
        rows.push([Cell::from("reason"), Cell::from(reason)]);
    }
    if !job.tags.is_empty() {
        rows.push([Cell::from("tags"), Cell::from(job.tags.join(" "))]);
    }
    if !job.paused_by.is_empty() {
        rows.push([Cell::from("paused"), Cell::from(pauses(&job.paused_by))]);
    }
    if let Some(waiting) = &job.waiting {
        rows.push([Cell::from("waiting"), Cell::from(wait(waiting, &job.topic, view))]);
    }
    if let Some(note) = &job.note {
        rows.push([Cell::from("note"), Cell::from(note)]);
    }
    Table::new([""; 2], view.colour).page(&rows)
}

/// A sentence that says which pauses keep a job from being delivered.
fn pauses(paused_by: &[String]) -> String {
    let verb = if paused_by.len() == 1 { "is" } else { "are" };
    format!("its {} {verb} paused; until that is resumed it is not delivered", paused_by.join(" and its "))
}

/// What a job waits for, how many jobs come before it, and until when at least.
fn wait(waiting: &WaitDetails, topic: &str, view: &View) -> String {
    let WaitDetails { cause, by, key, behind, held, since: _, before, more, until } = waiting;
    let by: Vec<_> = by.iter().map(HeldBy::to_string).collect();
    let whose = format!("its {}", by.join(" and its "));
    let verb = if by.len() == 1 { "is" } else { "are" };
    let until = until.as_deref().map(|until| view.both(until));
    let at_the_earliest = |until| format!("at the earliest {until}");
    let (what, until) = match cause {
        WaitCause::Pause => (format!("until {whose} {verb} resumed"), None),
        WaitCause::Order => {
            let (key, behind) = (key.as_deref().unwrap_or_default(), behind.as_deref().unwrap_or_default());
            (order(topic, key, behind, *held), None)
        }
        WaitCause::Breaker => {
            ("for an answer of its receiver, which is probed".to_owned(), until.map(at_the_earliest))
        }
        WaitCause::Limit => (format!("for the limits of {whose}"), until.map(at_the_earliest)),
        WaitCause::FreePlace => ("until a notifier or a consumer takes it".to_owned(), None),
        WaitCause::Retry => ("for its retry".to_owned(), until),
    };
    let before = before.map(|before| match (before, more) {
        (1, false) => "1 job before it".to_owned(),
        (many, false) => format!("{many} jobs before it"),
        (many, true) => format!("{many} or more jobs before it"),
    });
    [Some(what), before, until].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a job waits for behind another one of its key, and what to do if that one is dead and holds the key.
fn order(topic: &str, key: &str, behind: &str, is_held: bool) -> String {
    if is_held {
        format!(
            "until the dead job {behind}, which holds the key {key}, is revived or purged, or `ringback unblock {topic} {key}` passes it over"
        )
    } else {
        format!("for {behind}, the first job of its key {key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unexpected_body_is_shown_beside_its_status() {
        for (status, error, expected) in [
            (Some(503), None, "answered 503"),
            (Some(200), Some("unexpected body"), "answered 200: unexpected body"),
            (None, Some("tls-expired"), "no answer: tls-expired"),
            (None, None, "failed"),
        ] {
            assert_eq!(result(status, error), expected);
        }
    }

    #[test]
    fn what_holds_a_job_is_a_sentence() {
        let sentence = |by: &[&str]| pauses(&by.iter().map(|by| (*by).to_owned()).collect::<Vec<_>>());
        let end = "paused; until that is resumed it is not delivered";
        assert_eq!(sentence(&["topic"]), format!("its topic is {end}"));
        assert_eq!(sentence(&["topic", "destination"]), format!("its topic and its destination are {end}"));
    }

    #[test]
    fn what_a_job_waits_for_is_in_one_line() {
        let line =
            |json: &str| wait(&serde_json::from_str(json).unwrap(), "pay", &View::plain(1_763_600_000_000));
        for (json, expected) in [
            (
                r#"{"for":"pause","by":["topic","destination"],"since":"2025-11-20T00:53:20.000Z","before":0}"#,
                "until its topic and its destination are resumed, 0 jobs before it",
            ),
            (
                r#"{"for":"order","key":"o-7","behind":"o-7~paid","since":"2025-11-20T00:53:20.000Z","before":1}"#,
                "for o-7~paid, the first job of its key o-7, 1 job before it",
            ),
            (
                r#"{"for":"order","key":"o-7","behind":"o-7~paid","held":true,"since":"2025-11-20T00:53:20.000Z","before":2}"#,
                "until the dead job o-7~paid, which holds the key o-7, is revived or purged, or `ringback unblock pay o-7` passes it over, 2 jobs before it",
            ),
            (
                r#"{"for":"limit","by":["destination"],"since":"2025-11-20T00:53:20.000Z","before":12,"until":"2025-11-20T00:53:23.000Z"}"#,
                "for the limits of its destination, 12 jobs before it, at the earliest 2025-11-20T00:53:23.000Z (in 3s)",
            ),
            (
                r#"{"for":"places","since":"2025-11-20T00:53:20.000Z","before":1000,"more":true}"#,
                "until a notifier or a consumer takes it, 1000 or more jobs before it",
            ),
            (
                r#"{"for":"places","since":"2025-11-20T00:53:20.000Z","before":1}"#,
                "until a notifier or a consumer takes it, 1 job before it",
            ),
            (
                r#"{"for":"retry","since":"2025-11-20T00:53:10.000Z","until":"2025-11-20T00:53:35.000Z"}"#,
                "for its retry, 2025-11-20T00:53:35.000Z (in 15s)",
            ),
        ] {
            assert_eq!(line(json), expected);
        }
    }

    #[test]
    fn a_dead_job_is_shown_with_its_last_failure_and_the_reason() {
        let job = JobResponse {
            topic: "demo".to_owned(),
            id: "broken".to_owned(),
            state: "dead".to_owned(),
            due_at: "2025-11-20T00:53:20.000Z".to_owned(),
            created_at: "2025-11-20T00:53:10.000Z".to_owned(),
            attempts: 3,
            failures: 3,
            last: Some(LastAttemptDetails {
                at: "2025-11-20T00:53:20.007Z".to_owned(),
                status: Some(503),
                error: None,
                duration_ms: 4,
            }),
            reason: Some("exhausted".to_owned()),
            tags: vec!["customer:42".to_owned(), "order:7".to_owned()],
            paused_by: Vec::new(),
            waiting: None,
            note: None,
        };
        let text = job_details(&job, &View::plain(1_763_600_060_000));
        let expected = "\
job           demo/broken
state         dead
due           2025-11-20T00:53:20.000Z (1m ago)
created       2025-11-20T00:53:10.000Z (1m 10s ago)
attempts      3
failures      3
last failure  2025-11-20T00:53:20.007Z answered 503 after 4 ms
reason        exhausted
tags          customer:42 order:7
";
        assert_eq!(text, expected);
    }
}
