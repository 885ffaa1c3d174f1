//! Counts the results of a restore by kind, and prints them.

use serde::Serialize;

use crate::args::Format;
use crate::output::{Cell, Output, Table};

/// The counts of lines by result.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Results {
    pub(super) lines: u64,
    pub(super) created: u64,
    pub(super) repeated: u64,
    pub(super) refused: u64,
}

impl Results {
    fn is_none(&self) -> bool {
        self.lines == 0
    }
}

/// The result, in the form that `--output json` prints.
#[derive(Debug, Default, Serialize)]
pub(super) struct Restored {
    /// Left out of a restore without credentials.
    #[serde(skip_serializing_if = "Results::is_none")]
    pub(super) credentials: Results,
    /// Left out of a restore without paused destinations.
    #[serde(skip_serializing_if = "Results::is_none")]
    pub(super) destinations: Results,
    pub(super) topics: Results,
    pub(super) jobs: Results,
    /// Left out of a restore without schedules.
    #[serde(skip_serializing_if = "Results::is_none")]
    pub(super) schedules: Results,
    /// Whether all lines have a result.
    pub(super) complete: bool,
}

impl Restored {
    /// Prints the counts.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn print(&self, out: &mut Output) -> anyhow::Result<()> {
        if out.format == Format::Json {
            return out.line(serde_json::to_string(self)?);
        }
        let row = |kind: &str, results: Results| {
            let Results { lines, created, repeated, refused } = results;
            let [lines, created, repeated, refused] = [lines, created, repeated, refused].map(Cell::from);
            [Cell::from(kind), lines, created, repeated, refused]
        };
        let credentials = (!self.credentials.is_none()).then(|| row("credentials", self.credentials));
        let destinations = (!self.destinations.is_none()).then(|| row("destinations", self.destinations));
        let rows = [row("topics", self.topics), row("jobs", self.jobs)];
        let schedules = (!self.schedules.is_none()).then(|| row("schedules", self.schedules));
        let rows: Vec<_> = credentials.into_iter().chain(destinations).chain(rows).chain(schedules).collect();
        let columns = ["", ">LINES", ">CREATED", ">REPEATED", ">REFUSED"];
        out.bytes(Table::new(columns, out.colour).page(&rows).as_bytes())
    }
}
