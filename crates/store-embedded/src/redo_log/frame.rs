//! The format of the redo log: frames, and the first and last block of the file. A frame has the rows that one group
//! has changed, with a number and a checksum over all of it. The checksum is seeded with the random generation of the
//! log, so that no bytes of a job can be taken for a frame.
//!
//! All numbers are little-endian. A frame is: checksum (8 bytes), number (8), length of the rows (4),
//! `RBFR`, the rows, and zeros up to the next block. A row is: twice the number of its table, plus one
//! for a row that was removed (1 byte); length of the key (4), key; and, unless the row was removed,
//! length of the value (4), value.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Frames begin at multiples of this, so that writing a frame never touches the block of another.
pub(crate) const BLOCK: usize = 4096;
/// The length of the part of a frame before the rows.
const HEAD: usize = 24;
const FRAME: [u8; 4] = *b"RBFR";
/// The beginning of a log.
const FILE: [u8; 16] = *b"ringback-redo-01";
/// The beginning of an end mark.
const END: [u8; 16] = *b"ringback-redoend";

#[derive(Debug)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    pub(crate) fn new() -> Self {
        Self(vec![0; HEAD])
    }

    /// Returns the length of the rows in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() - HEAD
    }

    pub(crate) fn put(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.0.push(table * 2);
        self.part(key);
        self.part(value);
    }

    pub(crate) fn remove(&mut self, table: u8, key: &[u8]) {
        self.0.push(table * 2 + 1);
        self.part(key);
    }

    fn part(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&length(bytes).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// Sets number, length and checksum, fills the last block with zeros, and returns the bytes.
    pub(crate) fn seal(&mut self, generation: u64, sequence: u64) -> &[u8] {
        let end = self.0.len();
        self.0[8..16].copy_from_slice(&sequence.to_le_bytes());
        let rows = length(&self.0[HEAD..]);
        self.0[16..20].copy_from_slice(&rows.to_le_bytes());
        self.0[20..HEAD].copy_from_slice(&FRAME);
        let checksum = xxh3_64_with_seed(&self.0[8..end], generation);
        self.0[..8].copy_from_slice(&checksum.to_le_bytes());
        self.0.resize(end.next_multiple_of(BLOCK), 0);
        &self.0
    }

    pub(crate) fn clear(&mut self) {
        self.0.truncate(HEAD);
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a group has some MiB")
}

/// Returns the first block of a log, with its generation and the number of the checkpoint that its frames follow.
pub(crate) fn head(generation: u64, base: u64) -> Vec<u8> {
    block(FILE, generation, base)
}

/// Returns the end mark, the last block of a log. A log without one behind its frames was cut.
pub(crate) fn end_mark(generation: u64) -> Vec<u8> {
    block(END, generation, 0)
}

/// Returns a block of `magic`, the generation and the number of a checkpoint, with a checksum over all of it.
fn block(magic: [u8; 16], generation: u64, base: u64) -> Vec<u8> {
    let mut block = [&magic[..], &generation.to_le_bytes(), &base.to_le_bytes()].concat();
    block.extend_from_slice(&xxh3_64_with_seed(&block, generation).to_le_bytes());
    block.resize(BLOCK, 0);
    block
}

/// The first block of a log that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) generation: u64,
    /// The number of the checkpoint that the frames follow.
    pub(crate) base: u64,
}

impl Head {
    /// Reads the first block of `file`; `None` if it is not the first block of a log.
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        let (generation, base) = (number(file.get(FILE.len()..)?)?, number(file.get(FILE.len() + 8..)?)?);
        (file.get(..BLOCK)? == head(generation, base)).then_some(Self { generation, base })
    }
}

/// A frame that was read and has the right checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) sequence: u64,
    pub(crate) rows: &'a [u8],
}

impl<'a> Whole<'a> {
    /// Reads the frame at the start of `bytes`; `None` unless it is whole.
    pub(crate) fn parse(bytes: &'a [u8], generation: u64) -> Option<Self> {
        let sequence = number(bytes.get(8..)?)?;
        if bytes.get(20..HEAD)? != FRAME {
            return None;
        }
        let length = u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?) as usize;
        let frame = bytes.get(..HEAD.checked_add(length)?)?;
        let whole = number(frame)? == xxh3_64_with_seed(&frame[8..], generation);
        whole.then(|| Self { sequence, rows: &frame[HEAD..] })
    }

    pub(crate) fn file_length(&self) -> usize {
        (HEAD + self.rows.len()).next_multiple_of(BLOCK)
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// A row that was written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) table: u8,
    pub(crate) key: &'a [u8],
    /// `None` if the row was removed.
    pub(crate) value: Option<&'a [u8]>,
}

/// Returns the first of `rows`, and the rest; `None` if the first cannot be read.
pub(crate) fn row(rows: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (tag, rest) = rows.split_first()?;
    let (key, rest) = part(rest)?;
    let (value, rest) = match tag % 2 {
        0 => part(rest).map(|(value, rest)| (Some(value), rest))?,
        _ => (None, rest),
    };
    Some((Row { table: tag / 2, key, value }, rest))
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}
