//! The thread that writes the log: whole lines, then how many were dropped or suppressed. A write that fails loses its
//! lines and ends nothing.

use std::io::Write;

use ringback_core::clock::{Clock as _, SystemClock};
use tracing::Level;

use super::super::callsite_limits::SuppressedLines;
use super::super::log_format::{LogFormat, MissingLines};
use super::{Batch, DroppedLines, LogQueue};

/// The most bytes of a write, unless a line is longer. A pipe takes as much (`PIPE_BUF`) in one piece, so lines of
/// several processes that share a pipe do not mix.
const MAX_WRITE: usize = 4096;
/// The target of lines about the log itself.
const TARGET: &str = "ringback_service::telemetry";

/// Writes what is in the queue.
pub(super) struct Writer<W> {
    queue: LogQueue,
    format: LogFormat,
    out: W,
    /// Dropped lines that the log does not mention yet.
    dropped: Option<DroppedLines>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(queue: LogQueue, format: LogFormat, out: W) -> Self {
        Self { queue, format, out, dropped: None }
    }

    /// Runs as long as the process.
    pub(super) fn run(mut self) {
        let mut spare = Vec::new();
        loop {
            let Batch { mut lines, dropped, suppressed, until } = self.queue.next(spare);
            self.write(&lines);
            if let Some(DroppedLines { lines, since }) = dropped {
                let since = self.dropped.map_or(since, |before| before.since);
                let lines = self.dropped.map_or(0, |before| before.lines) + lines;
                self.dropped = Some(DroppedLines { lines, since });
            }
            self.report_dropped();
            suppressed.iter().for_each(|lines| self.report_suppressed(lines));
            self.queue.finish(until);
            lines.clear();
            spare = lines;
        }
    }

    fn write(&mut self, mut lines: &[u8]) {
        while !lines.is_empty() {
            let (chunk, rest) = lines.split_at(whole_lines(lines));
            if self.out.write_all(chunk).is_err() {
                self.dropped = DroppedLines::add(self.dropped, self.queue.drop_lines(chunk));
            }
            lines = rest;
        }
    }

    fn report_dropped(&mut self) {
        let Some(DroppedLines { lines, since }) = self.dropped else { return };
        let message = "log lines were dropped: stderr did not take them in time";
        let line = MissingLines { level: Level::ERROR, target: TARGET, message, like: None, lines, since };
        // Otherwise the next report includes them.
        if self.out.write_all(line.line(self.format, SystemClock.now()).as_bytes()).is_ok() {
            self.dropped = None;
        }
    }

    fn report_suppressed(&mut self, suppressed: &SuppressedLines) {
        let SuppressedLines { level, target, like, lines, since, .. } = suppressed;
        let (message, like) = ("similar lines were suppressed", Some(like.as_str()));
        let line = MissingLines { level: *level, target, message, like, lines: *lines, since: *since };
        self.write(line.line(self.format, SystemClock.now()).as_bytes());
    }
}

/// The length of the next write: as many whole lines as fit, at least one.
fn whole_lines(lines: &[u8]) -> usize {
    let fitting = &lines[..lines.len().min(MAX_WRITE)];
    let end = |at: usize| at + 1;
    let last = fitting.iter().rposition(|byte| *byte == b'\n').map(end);
    last.or_else(|| lines.iter().position(|byte| *byte == b'\n').map(end)).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_has_as_many_whole_lines_as_fit() {
        assert_eq!(whole_lines(b"one\ntwo\n"), 8);
        assert_eq!(whole_lines(b"no end"), 6);
        let long = [vec![b'x'; MAX_WRITE], b"\nnext\n".to_vec()].concat();
        assert_eq!(whole_lines(&long), MAX_WRITE + 1);
        let many = b"a line\n".repeat(1000);
        assert_eq!(whole_lines(&many), MAX_WRITE / 7 * 7);
    }
}
