//! Reads a history line by line.

use std::fmt;
use std::io::{self, BufRead, Read as _};

use super::entry::Entry;

/// The longest line, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Why a history cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// The number of the line, from 1.
    pub line: u32,
    pub why: String,
}

impl Unreadable {
    pub(crate) fn new(line: u32, why: impl fmt::Display) -> Self {
        Self { line, why: why.to_string() }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Unreadable {}

/// Calls `each` with the number (from 1), the text and the entry of each line, and returns the number of lines. Fails
/// at the first line that cannot be read, is longer than 1 MiB or has no end, or that `each` rejects.
pub(crate) fn read_lines<R: BufRead>(
    mut input: R,
    mut each: impl FnMut(u32, &[u8], Entry<'_>) -> Result<(), Unreadable>,
) -> Result<u32, Unreadable> {
    let (mut line, mut buffer) = (0_u32, Vec::new());
    loop {
        let number = line.checked_add(1).ok_or_else(|| Unreadable::new(line, "too many lines"))?;
        buffer.clear();
        let failed = |error: io::Error| Unreadable::new(number, error);
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut buffer).map_err(failed)? == 0 {
            return Ok(line);
        }
        if buffer.pop() != Some(b'\n') {
            return Err(Unreadable::new(number, "the line has no end, or is longer than 1 MiB"));
        }
        let entry = serde_json::from_slice(&buffer).map_err(|error| Unreadable::new(number, error))?;
        each(number, &buffer, entry)?;
        line = number;
    }
}
