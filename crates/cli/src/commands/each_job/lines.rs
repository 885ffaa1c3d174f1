//! Reads jobs from lines, each `TOPIC/ID` or `TOPIC ID`. Empty lines are skipped. After a failure to read, it ends.

use std::io::{self, BufRead, Read as _};

use ringback_core::job::JobKey;

use crate::args::values;

/// The longest line, in bytes. A topic and an id have at most 193.
const MAX_LINE: usize = 1024;

/// A line that names no job.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadLine {
    #[error("line {number}: {why}")]
    NoJob { number: u64, why: String },
    #[error("line {number} is longer than {MAX_LINE} bytes; write one TOPIC/ID per line")]
    TooLong { number: u64 },
    #[error("standard input cannot be read after line {number}: {error}")]
    Unreadable { number: u64, error: io::Error },
}

/// The jobs that the lines of a reader name.
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
    is_broken: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, number: 0, is_broken: false }
    }

    /// Reads a line with its line break, or one byte more than the longest that is allowed. Empty at the end.
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.reader.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        Ok(line)
    }

    fn skip(&mut self) -> io::Result<()> {
        loop {
            let line = self.read()?;
            if line.is_empty() || line.ends_with(b"\n") {
                return Ok(());
            }
        }
    }

    fn job(&mut self, line: &[u8]) -> Result<Option<JobKey>, BadLine> {
        self.number += 1;
        let number = self.number;
        if line.len() > MAX_LINE {
            self.skip().map_err(|error| BadLine::Unreadable { number, error })?;
            return Err(BadLine::TooLong { number });
        }
        let line = String::from_utf8_lossy(line);
        let words: Vec<_> = line.split_whitespace().collect();
        match words.len() {
            0 => Ok(None),
            1 | 2 => values::parse_job_key(&words).map(Some),
            _ => Err(format!("{:?} is not a job; write TOPIC/ID or TOPIC ID", words.join(" "))),
        }
        .map_err(|why| BadLine::NoJob { number, why })
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<JobKey, BadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_broken {
            let named = match self.read() {
                Ok(line) if line.is_empty() => return None,
                Ok(line) => self.job(&line),
                Err(error) => Err(BadLine::Unreadable { number: self.number, error }),
            };
            self.is_broken = matches!(named, Err(BadLine::Unreadable { .. }));
            if let Some(named) = named.transpose() {
                return Some(named);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_names_a_job_or_is_reported_with_its_number() {
        let long = "x".repeat(3 * MAX_LINE);
        let text = format!("a/1\r\n\n  b 2 \nc\n{long}\nd/4 e/5 f/6\n\u{1b}/x\ng/7");
        let found: Vec<_> = Lines::new(text.as_bytes())
            .map(|named| named.map_or_else(|error| error.to_string(), |key| key.to_string()))
            .collect();
        let expected = [
            "a/1",
            "b/2",
            "line 4: \"c\" is not a job; write TOPIC/ID or TOPIC ID",
            "line 5 is longer than 1024 bytes; write one TOPIC/ID per line",
            "line 6: \"d/4 e/5 f/6\" is not a job; write TOPIC/ID or TOPIC ID",
            "line 7: \"\\u{1b}\" is not a topic; a topic is 1 to 64 of A-Z a-z 0-9 . _ -, and neither . nor ..",
            "g/7",
        ];
        assert_eq!(found, expected);
    }
}
