//! Histories of test runs, and their checker.
//!
//! A run under faults writes one file, its history: what clients asked for and were answered, what receivers saw, which
//! faults there were, and what the product said of itself at the end. [`History`] writes it, [`check`] reads it and
//! says which of the [invariants](Invariant) held. What a line can be is in [`Entry`].
//!
//! The checker needs the lines in no particular order, because it sorts what it has kept of them by job and time. It
//! trusts only what is certain: a call may take effect at any time between its request and its answer.

mod answers;
mod clock;
mod digest;
mod entry;
mod findings;
pub mod generator;
mod ingest;
mod invariant;
mod judge;
mod names;
mod parsed_lines;
mod reader;
mod records;
mod report;
#[cfg(test)]
mod tests;
mod windows;
mod writer;

use std::io::BufRead;

pub use self::answers::{millis, state};
pub use self::digest::Digest;
pub use self::entry::*;
pub use self::findings::Violation;
pub use self::invariant::Invariant;
pub use self::judge::Totals;
pub use self::reader::Unreadable;
pub use self::report::{InvariantResult, Quantiles, Recovery, Report, Standing};
pub use self::writer::History;

/// Checks a history. It is read once, as a stream; about a hundred bytes of each event stay in memory.
///
/// # Errors
/// Describes the first line that cannot be read or contradicts earlier lines. An empty history is an error too.
pub fn check<R: BufRead>(history: R) -> Result<Report, Unreadable> {
    let mut ingest = ingest::Ingest::default();
    let lines = reader::read_lines(history, |line, text, entry| ingest.take(line, text, entry))?;
    let tables = ingest.finish(lines)?;
    Ok(Report::new(&tables, judge::judge(&tables)))
}
