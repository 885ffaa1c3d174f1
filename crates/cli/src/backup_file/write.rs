//! Writes a backup line by line, with its counts and its checksum.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::format::{Counts, END, End, HEADER, Header, Kind, no_counts};

/// A backup that is being written. `write` takes its bytes.
pub(crate) struct Writer<W> {
    write: W,
    digest: Sha256,
    counts: Counts,
    /// The kind of the last line.
    kind: Kind,
    bytes: u64,
    line: Vec<u8>,
}

/// A backup that is complete.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// The lines by kind.
    pub(crate) counts: Counts,
    /// The length of the whole backup.
    pub(crate) bytes: u64,
    /// The checksum of its lines.
    pub(crate) sha256: String,
}

impl Summary {
    /// The number of lines of a kind.
    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }
}

impl<W: FnMut(&[u8]) -> anyhow::Result<()>> Writer<W> {
    /// Begins a backup with its header.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn begin(write: W, header: &Header) -> anyhow::Result<Self> {
        let (counts, kind) = (no_counts(), Kind::Credential);
        let mut writer = Self { write, digest: Sha256::new(), counts, kind, bytes: 0, line: Vec::new() };
        writer.put(HEADER, &serde_json::to_vec(header)?)?;
        Ok(writer)
    }

    /// Adds a line. `json` has no line breaks.
    ///
    /// # Errors
    /// Those of `write`, and when lines of a later kind came before.
    pub(crate) fn line(&mut self, kind: Kind, json: &[u8]) -> anyhow::Result<()> {
        anyhow::ensure!(kind >= self.kind, "lines of another kind came before");
        self.kind = kind;
        *self.counts.entry(kind).or_default() += 1;
        self.put(kind.into(), json)
    }

    /// Adds the last line, with the counts and the checksum.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn end(mut self) -> anyhow::Result<Summary> {
        let digest = std::mem::take(&mut self.digest).finalize();
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let end = End { counts: std::mem::take(&mut self.counts), sha256 };
        self.put(END, &serde_json::to_vec(&end)?)?;
        Ok(Summary { counts: end.counts, bytes: self.bytes, sha256: end.sha256 })
    }

    fn put(&mut self, kind: &str, json: &[u8]) -> anyhow::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(format!("{{\"kind\":\"{kind}\",\"value\":").as_bytes());
        self.line.extend_from_slice(json);
        self.line.extend_from_slice(b"}\n");
        self.digest.update(&self.line);
        self.bytes += self.line.len() as u64;
        (self.write)(&self.line)
    }
}
