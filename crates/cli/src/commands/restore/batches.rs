//! Reads the jobs of a backup into batches as an import sends them.

use std::io::BufRead;

use bytes::BytesMut;

use super::super::import::{Batch, FULL, MAX_LINES};
use crate::backup_file::{Damage, Kind, Lines};

/// The batches of a backup.
pub(super) struct Batches<R> {
    source: Option<R>,
    lines: Option<Lines<R>>,
    sequence: u64,
}

impl<R: BufRead> Batches<R> {
    /// The batches of the jobs of a backup, of which nothing was read.
    pub(super) fn new(source: R) -> Self {
        Self { source: Some(source), lines: None, sequence: 0 }
    }

    fn batch(&mut self) -> Result<Option<Batch>, Damage> {
        if let Some(source) = self.source.take() {
            self.lines = Some(Lines::open(source)?.1);
        }
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let mut batch = Batch { sequence: self.sequence, ..Batch::default() };
        let (mut bytes, read_before) = (BytesMut::new(), lines.bytes());
        while batch.lines.len() < MAX_LINES && bytes.len() < FULL {
            let Some(line) = lines.next()? else { break };
            if line.kind != Kind::Job {
                continue;
            }
            let start = bytes.len();
            bytes.extend_from_slice(line.json.as_bytes());
            bytes.extend_from_slice(b"\n");
            batch.lines.push((line.number, start..bytes.len()));
            batch.last_line = line.number;
        }
        batch.source_bytes = lines.bytes() - read_before;
        batch.bytes = bytes.freeze();
        self.sequence += 1;
        Ok(Some(batch).filter(|batch| !batch.lines.is_empty()))
    }
}

impl<R: BufRead> Iterator for Batches<R> {
    type Item = Result<Batch, Damage>;

    fn next(&mut self) -> Option<Result<Batch, Damage>> {
        let batch = self.batch().transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.lines = None;
        }
        batch
    }
}
