//! Dead jobs and revivals as people see them.

use anstyle::{AnsiColor, Style};
use ringback_core::clock::Timestamp;
use ringback_core::wire::{DeadJobAnswer, LastAnswer, RevivalAnswer};

use super::{Align, Cell, Colour, Table, relative};

/// The row of a dead job in a list.
pub(crate) fn dead_row(dead: &DeadJobAnswer, now: Timestamp) -> [Cell; 6] {
    [
        Cell::from(&dead.job.id),
        Cell::from(&dead.died_at),
        Cell::from(relative(&dead.died_at, now)),
        Cell::from(dead.job.attempts),
        Cell::from(dead.job.reason.as_deref().unwrap_or_default()),
        Cell::from(dead.job.last.as_ref().map(failure).unwrap_or_default()),
    ]
}

/// What was seen of a failed attempt.
fn failure(last: &LastAnswer) -> String {
    let status = last.status.map(|status| format!("answered {status}"));
    let error = last.error.as_ref().map(|error| format!("no answer: {error}"));
    status.or(error).unwrap_or_else(|| "failed".to_owned())
}

/// The row of a revival in a list.
pub(crate) fn revival_row(revival: &RevivalAnswer, now: Timestamp) -> [Cell; 7] {
    [
        Cell::from(&revival.id),
        state(&revival.state),
        Cell::from(revival.revived),
        Cell::from(revival.rate),
        Cell::from(&revival.started_at),
        Cell::from(relative(&revival.started_at, now)),
        Cell::from(revival.reason.as_deref().unwrap_or_default()),
    ]
}

/// All that is known of a revival, a line each.
pub(crate) fn revival_details(revival: &RevivalAnswer, now: Timestamp, colour: Colour) -> String {
    let time = |time: &str| Cell::from(format!("{time} ({})", relative(time, now)));
    let mut rows = vec![
        [Cell::from("revival"), Cell::from(&revival.id)],
        [Cell::from("topic"), Cell::from(&revival.topic)],
        [Cell::from("state"), state(&revival.state)],
        [Cell::from("revived"), Cell::from(revival.revived)],
        [Cell::from("rate"), Cell::from(format!("{}/s", revival.rate))],
        [Cell::from("started"), time(&revival.started_at)],
    ];
    rows.extend(revival.ended_at.as_deref().map(|at| [Cell::from("ended"), time(at)]));
    rows.extend(revival.reason.as_ref().map(|reason| [Cell::from("reason"), Cell::from(reason)]));
    rows.extend(revival.died_after.as_deref().map(|at| [Cell::from("died after"), time(at)]));
    rows.extend(revival.died_before.as_deref().map(|at| [Cell::from("died before"), time(at)]));
    Table::new([("", Align::Left); 2], colour).page(&rows)
}

fn state(name: &str) -> Cell {
    let style = match name {
        "done" => AnsiColor::Green.on_default(),
        "running" => AnsiColor::Yellow.on_default(),
        _ => Style::new(),
    };
    Cell::styled(name, style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revival_is_shown_with_what_it_was_asked_for() {
        let revival = RevivalAnswer {
            id: "0123456789abcdef".to_owned(),
            topic: "demo".to_owned(),
            state: "running".to_owned(),
            revived: 17,
            rate: 100,
            started_at: "2025-11-20T00:53:20.000Z".to_owned(),
            ended_at: None,
            reason: Some("gone".to_owned()),
            died_after: None,
            died_before: Some("2025-11-20T00:53:10.000Z".to_owned()),
        };
        let text = revival_details(&revival, Timestamp::from_millis(1_763_600_060_000), Colour::No);
        let expected = "\
revival      0123456789abcdef
topic        demo
state        running
revived      17
rate         100/s
started      2025-11-20T00:53:20.000Z (1m ago)
reason       gone
died before  2025-11-20T00:53:10.000Z (1m 10s ago)
";
        assert_eq!(text, expected);
    }
}
