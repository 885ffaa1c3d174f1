//! Interned names: each is kept once, in one text, and records refer to it by a number.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

/// Names and their numbers, which count from 0.
#[derive(Default)]
pub(crate) struct Names {
    text: String,
    /// Where each name ends in the text.
    ends: Vec<usize>,
    /// Numbers by hash. A name whose hash is taken by another one has the next free hash.
    numbers: HashMap<u64, u32, BuildHasherDefault<NoHash>>,
}

impl Names {
    /// The number of a name, which is added if it is new.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        match self.look_up(name) {
            Ok(number) => number,
            Err(free) => {
                let number = u32::try_from(self.ends.len()).expect("there are fewer names than 2^32");
                self.text.push_str(name);
                self.ends.push(self.text.len());
                self.numbers.insert(free, number);
                number
            }
        }
    }

    /// The number of a known name, or as an error the hash to store a new name under.
    fn look_up(&self, name: &str) -> Result<u32, u64> {
        let mut hash = fingerprint(name);
        loop {
            match self.numbers.get(&hash) {
                None => return Err(hash),
                Some(&number) if self.name(number) == name => return Ok(number),
                Some(_) => hash = hash.wrapping_add(1),
            }
        }
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.ends.len()).expect("there are fewer names than 2^32")
    }
}

/// A hash of a text, the same in each run.
pub(crate) fn fingerprint(text: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
}

/// Takes numbers that are hashes already as they are.
#[derive(Default)]
pub(crate) struct NoHash(u64);

impl Hasher for NoHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_number() {
        let mut names = Names::default();
        let numbers = ["a/1", "", "a/1", "a/2", ""].map(|name| names.number(name));
        assert_eq!(numbers, [0, 1, 0, 2, 1]);
        assert_eq!([0, 1, 2].map(|number| names.name(number)), ["a/1", "", "a/2"]);
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn names_with_the_same_hash_stay_apart() {
        let mut names = Names::default();
        names.number("a");
        names.numbers.insert(fingerprint("b"), 0);
        assert_eq!([names.number("b"), names.number("b"), names.number("a")], [1, 1, 0]);
    }
}
