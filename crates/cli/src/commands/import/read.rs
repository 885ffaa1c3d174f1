//! Reads the lines of a source into batches, with an id for each line that has none. A line that is too long for a job
//! is skipped without being kept in memory, and refused. Blank lines are skipped.

use std::io::{self, BufRead, Read as _};
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use ringback_core::encoding::without_mark;
use ringback_core::job::MAX_JOB;
use ringback_wire::Problem;

use super::line_id::with_id;

/// The most lines of a batch: a fifth of what the API allows, so that each request is short.
pub(crate) const MAX_LINES: usize = 2_000;
/// A batch with this many bytes is full.
pub(crate) const FULL: usize = 4 * 1024 * 1024;

/// Lines that are sent together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// The number of the batch, from 0.
    pub(crate) sequence: u64,
    /// The lines, each with its line break.
    pub(crate) bytes: Bytes,
    /// The number of each line in the source, from 1, and its range in `bytes`.
    pub(crate) lines: Vec<(u64, Range<usize>)>,
    /// The value of the tenant's header, if it is another than that of the command.
    pub(crate) tenant: Option<HeaderValue>,
    /// Lines that are refused without being sent.
    pub(crate) refused: Vec<(u64, Problem)>,
    /// The last line of the source that this batch covers.
    pub(crate) last_line: u64,
    /// The bytes of the source that it covers.
    pub(crate) source_bytes: u64,
}

impl Batch {
    /// The same batch with only the lines at these positions, and without refused ones.
    pub(crate) fn only(&self, places: &[usize]) -> Self {
        let mut bytes = BytesMut::new();
        let mut lines = Vec::with_capacity(places.len());
        for (number, range) in places.iter().filter_map(|place| self.lines.get(*place)) {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[range.clone()]);
            lines.push((*number, start..bytes.len()));
        }
        let tenant = self.tenant.clone();
        Self { bytes: bytes.freeze(), lines, tenant, refused: Vec::new(), ..*self }
    }
}

/// The batches of a source.
pub(crate) struct Batches<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
    sequence: u64,
    ended: bool,
}

impl<R: BufRead> Batches<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0, sequence: 0, ended: false }
    }

    fn batch(&mut self) -> io::Result<Option<Batch>> {
        let mut batch = Batch { sequence: self.sequence, ..Batch::default() };
        let mut bytes = BytesMut::new();
        while batch.lines.len() < MAX_LINES && bytes.len() < FULL {
            let read = self.read_line()?;
            if read.bytes == 0 {
                self.ended = true;
                break;
            }
            batch.source_bytes += read.bytes;
            batch.last_line = self.number;
            if read.too_long {
                batch.refused.push((self.number, too_long()));
                continue;
            }
            let is_first = self.number == 1;
            let line =
                if is_first { without_mark(&self.line).map_err(io::Error::other)? } else { &self.line };
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let start = bytes.len();
            bytes.extend_from_slice(&with_id(line, self.number));
            bytes.extend_from_slice(b"\n");
            batch.lines.push((self.number, start..bytes.len()));
        }
        batch.bytes = bytes.freeze();
        self.sequence += 1;
        Ok(Some(batch).filter(|batch| batch.source_bytes > 0))
    }

    /// Reads the next line into `self.line`. If it is too long, skips the rest of it and says so. 0 bytes at the end.
    fn read_line(&mut self) -> io::Result<ReadLine> {
        self.line.clear();
        // The line break may have two bytes.
        let most = MAX_JOB + 2;
        let mut bytes = (&mut self.source).take(most as u64).read_until(b'\n', &mut self.line)? as u64;
        if bytes == 0 {
            return Ok(ReadLine { bytes, too_long: false });
        }
        self.number += 1;
        if self.line.len() == most && !self.line.ends_with(b"\n") {
            bytes += self.source.skip_until(b'\n')? as u64;
            return Ok(ReadLine { bytes, too_long: true });
        }
        Ok(ReadLine { bytes, too_long: self.line.trim_ascii().len() > MAX_JOB })
    }
}

/// The size of a line that was read.
struct ReadLine {
    bytes: u64,
    too_long: bool,
}

fn too_long() -> Problem {
    let detail = format!("the line is longer than the {MAX_JOB} bytes that a job may have");
    Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail)
}

impl<R: BufRead> Iterator for Batches<R> {
    type Item = io::Result<Batch>;

    fn next(&mut self) -> Option<io::Result<Batch>> {
        if self.ended {
            return None;
        }
        let batch = self.batch().transpose();
        self.ended |= matches!(batch, Some(Err(_)));
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(source: &[u8]) -> Vec<Batch> {
        // A small buffer, so that lines lie across its end.
        Batches::new(io::BufReader::with_capacity(16, source)).collect::<Result<_, _>>().unwrap()
    }

    fn numbers(batch: &Batch) -> Vec<u64> {
        batch.lines.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn line_numbers_are_those_of_the_file_whatever_its_line_breaks() {
        let all = batches(b"\xef\xbb\xbf1\r\n\n  \n{\"id\":4}\r\n\r\n6");
        assert_eq!(all.len(), 1);
        assert_eq!(numbers(&all[0]), [1, 4, 6]);
        assert_eq!(&*all[0].bytes, b"1\n{\"id\":4}\n6\n");
        assert_eq!((all[0].last_line, all[0].source_bytes), (6, 23));
        assert!(batches(b"").is_empty());
        assert!(batches(b"\n\n")[0].lines.is_empty());
    }

    #[test]
    fn a_batch_ends_at_its_most_lines_or_bytes() {
        let all = batches("1\n".repeat(4_001).as_bytes());
        assert_eq!(all.iter().map(|batch| batch.lines.len()).collect::<Vec<_>>(), [2_000, 2_000, 1]);
        assert_eq!(all.iter().map(|batch| batch.sequence).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(all.iter().map(|batch| batch.source_bytes).sum::<u64>(), 8_002);
        let long = format!("\"{}\"\n", "x".repeat(1_000_000)).repeat(6);
        assert_eq!(batches(long.as_bytes()).iter().map(|b| b.lines.len()).collect::<Vec<_>>(), [5, 1]);
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_without_being_kept() {
        let most = "x".repeat(MAX_JOB);
        let source = format!("1\n{most}\r\n{most}x\n{most}xyz{most}\n5");
        let mut reader = Batches::new(source.as_bytes());
        let batch = reader.next().unwrap().unwrap();
        assert_eq!(numbers(&batch), [1, 2, 5]);
        assert_eq!(batch.refused.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(batch.source_bytes, source.len() as u64);
        assert!(reader.line.capacity() < 3 * MAX_JOB);
    }

    #[test]
    fn some_lines_of_a_batch_make_another_one() {
        let batch = &batches(b"1\n\n3\n4\n")[0];
        let some = batch.only(&[0, 2]);
        assert_eq!((numbers(&some), &*some.bytes), (vec![1, 4], &b"1\n4\n"[..]));
        assert_eq!(&some.bytes[some.lines[1].1.clone()], b"4\n");
    }
}
