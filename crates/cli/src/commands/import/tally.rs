//! Counts the results of an import, prints refused lines and the counts, and knows up to which line all have a result.

use std::collections::BTreeMap;

use ringback_wire::Problem;
use serde::Serialize;

use super::send::BatchResult;
use crate::args::Format;
use crate::failure::fields;
use crate::output::{Cell, Output, Table};
use crate::progress::Progress;

/// The results so far.
#[derive(Debug)]
pub(crate) struct Tally {
    format: Format,
    counts: Counts,
    /// The last lines of the batches that are finished after one that is not, by number.
    finished: BTreeMap<u64, u64>,
    next: u64,
}

/// The counts, in the form that `--output json` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Lines with a result, without blank ones.
    pub(crate) lines: u64,
    pub(crate) created: u64,
    pub(crate) repeated: u64,
    pub(crate) refused: u64,
    /// Whether all lines have a result.
    complete: bool,
    /// All lines of the file up to this one have a result.
    through: u64,
}

/// A refused line, in the form that `--output json` prints.
#[derive(Serialize)]
struct Refused<'a> {
    line: u64,
    status: u16,
    problem: &'a Problem,
}

impl Tally {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, counts: Counts::default(), finished: BTreeMap::new(), next: 0 }
    }

    /// Counts the results of a batch, prints its refused lines, and advances the progress if the batch is finished.
    pub(crate) fn add(&mut self, sent: &BatchResult, progress: &Progress) {
        let refused = sent.refused.len() as u64;
        let lines = sent.created + sent.repeated + refused;
        self.counts.lines += lines;
        self.counts.created += sent.created;
        self.counts.repeated += sent.repeated;
        self.counts.refused += refused;
        for (line, problem) in &sent.refused {
            progress.note(&self.refusal(*line, problem));
        }
        if sent.stopped.is_none() {
            self.finished.insert(sent.batch.sequence, sent.batch.last_line);
            while let Some(last) = self.finished.remove(&self.next) {
                (self.counts.through, self.next) = (last, self.next + 1);
            }
            progress.advance(sent.batch.source_bytes, lines);
        }
    }

    fn refusal(&self, line: u64, problem: &Problem) -> String {
        match self.format {
            Format::Json => {
                let refused = Refused { line, status: problem.status, problem };
                serde_json::to_string(&refused).expect("plain data always serialises")
            }
            Format::Table => {
                let text = format!("line {line}: {} {}\n{}", problem.status, problem.detail, fields(problem));
                text.trim_end().to_owned()
            }
        }
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of refused lines.
    pub(crate) fn refused(&self) -> u64 {
        self.counts.refused
    }

    /// For the error of an import that stopped: a text that says up to which line every line has a result.
    pub(crate) fn how_far(&self) -> String {
        match self.counts.through {
            0 => "some lines from the first one were not imported".to_owned(),
            line => format!("all lines up to {line} have a result, and some after it were not imported"),
        }
    }

    pub(crate) fn print(&mut self, out: &mut Output, complete: bool) -> anyhow::Result<()> {
        self.counts.complete = complete;
        let Counts { lines, created, repeated, refused, .. } = self.counts;
        match self.format {
            Format::Json => out.line(serde_json::to_string(&self.counts)?),
            Format::Table => {
                let columns = [">LINES", ">CREATED", ">REPEATED", ">REFUSED"];
                let row = [lines, created, repeated, refused].map(Cell::from);
                out.bytes(Table::new(columns, out.colour).page(&[row]).as_bytes())
            }
        }
    }
}
