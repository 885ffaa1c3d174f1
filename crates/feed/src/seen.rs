//! `SeenRows`: which rows are known to be in the store, or to be no jobs, so that they are not submitted again and
//! again. Kept by the process that has the feed; another one that takes over submits every row once more, which changes
//! nothing.

use std::collections::HashMap;

/// The most rows that are remembered, at about 50 bytes each. Others are submitted with each pass.
const MAX_ROWS: usize = 2_000_000;

/// What is remembered of the rows of a feed.
#[derive(Debug, Default)]
pub(crate) struct SeenRows {
    /// The rows that were loaded.
    pub(crate) loaded: Memory,
    /// Rows that are not jobs.
    pub(crate) refused: Memory,
    /// Rows that went, and whose jobs are cancelled.
    pub(crate) gone: Memory,
    /// Whether a pass was completed, so that all rows are remembered.
    pub(crate) is_complete: bool,
}

impl SeenRows {
    /// Ends a complete pass: forgets rows that the pass has not met.
    pub(crate) fn end_pass(&mut self) {
        [&mut self.loaded, &mut self.refused, &mut self.gone].into_iter().for_each(Memory::end_pass);
        self.is_complete = true;
    }

    /// How many rows are remembered.
    pub(crate) fn len(&self) -> usize {
        self.loaded.rows.len() + self.refused.rows.len() + self.gone.rows.len()
    }
}

/// Hashes of rows by the hash of their id.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    rows: HashMap<u128, Entry>,
    pass: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    content: u64,
    /// The last pass that met the row.
    pass: u32,
}

impl Memory {
    /// Whether a row is known with this content. If so, marks it as met by this pass.
    pub(crate) fn knows(&mut self, id: u128, content: u64) -> bool {
        let pass = self.pass;
        let known = self.rows.get_mut(&id).filter(|entry| entry.content == content);
        known.map(|entry| entry.pass = pass).is_some()
    }

    /// Remembers the content of a row, unless [`MAX_ROWS`] others are remembered.
    pub(crate) fn note(&mut self, id: u128, content: u64) {
        if self.rows.len() < MAX_ROWS || self.rows.contains_key(&id) {
            self.rows.insert(id, Entry { content, pass: self.pass });
        }
    }

    pub(crate) fn forget(&mut self, id: u128) {
        self.rows.remove(&id);
    }

    fn end_pass(&mut self) {
        let pass = self.pass;
        self.rows.retain(|_, entry| entry.pass == pass);
        self.pass = pass.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_known_by_its_last_content_and_until_a_pass_does_not_meet_it() {
        let mut memory = Memory::default();
        memory.note(1, 10);
        memory.note(2, 20);
        assert!(memory.knows(1, 10) && !memory.knows(1, 11) && !memory.knows(3, 10));
        memory.note(1, 11);
        assert!(!memory.knows(1, 10), "only the last content counts");
        memory.end_pass();
        assert!(memory.knows(1, 11));
        memory.end_pass();
        assert!(memory.knows(1, 11) && !memory.knows(2, 20), "the second pass did not meet row 2");
        memory.forget(1);
        assert!(!memory.knows(1, 11));
    }
}
