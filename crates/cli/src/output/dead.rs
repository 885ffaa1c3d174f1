//! Dead jobs and redrives as rows and details for people.

use ringback_core::wire::{DeadJobAnswer, RevivalAnswer};

use super::job::{failure, state};
use super::{Cell, Table, View};

/// The row of a dead job in a list.
pub(crate) fn dead_row(dead: &DeadJobAnswer, view: &View) -> [Cell; 7] {
    [
        Cell::from(&dead.job.id),
        Cell::from(view.time(&dead.died_at)),
        Cell::from(view.relative(&dead.died_at)),
        Cell::from(dead.job.attempts),
        Cell::from(dead.job.reason.as_deref().unwrap_or_default()),
        Cell::from(dead.job.last.as_ref().map(failure).unwrap_or_default()),
        Cell::from(dead.job.tags.join(" ")),
    ]
}

/// The row of a redrive in a list.
pub(crate) fn redrive_row(redrive: &RevivalAnswer, view: &View) -> [Cell; 7] {
    [
        Cell::from(&redrive.id),
        state(&redrive.state),
        Cell::from(redrive.revived),
        Cell::from(redrive.rate),
        Cell::from(view.time(&redrive.started_at)),
        Cell::from(view.relative(&redrive.started_at)),
        Cell::from(redrive.reason.as_deref().unwrap_or_default()),
    ]
}

/// The details of a redrive, one per line.
pub(crate) fn redrive_details(redrive: &RevivalAnswer, view: &View) -> String {
    let time = |time: &str| Cell::from(view.both(time));
    let mut rows = vec![
        [Cell::from("redrive"), Cell::from(&redrive.id)],
        [Cell::from("topic"), Cell::from(&redrive.topic)],
        [Cell::from("state"), state(&redrive.state)],
        [Cell::from("revived"), Cell::from(redrive.revived)],
        [Cell::from("rate"), Cell::from(format!("{}/s", redrive.rate))],
        [Cell::from("started"), time(&redrive.started_at)],
    ];
    rows.extend(redrive.ended_at.as_deref().map(|at| [Cell::from("ended"), time(at)]));
    rows.extend(redrive.reason.as_ref().map(|reason| [Cell::from("reason"), Cell::from(reason)]));
    rows.extend(redrive.died_after.as_deref().map(|at| [Cell::from("died after"), time(at)]));
    rows.extend(redrive.died_before.as_deref().map(|at| [Cell::from("died before"), time(at)]));
    Table::new([""; 2], view.colour).page(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redrive_is_shown_with_its_filter() {
        let redrive = RevivalAnswer {
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
        let text = redrive_details(&redrive, &View::plain(1_763_600_060_000));
        let expected = "\
redrive      0123456789abcdef
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
