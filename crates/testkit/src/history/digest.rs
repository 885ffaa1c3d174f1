//! SHA-256 digests, written as 64 hexadecimal digits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of headers, whatever their order: each as its name in lower case, a colon and its value.
    pub fn of_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let line = |(name, value): (&str, &str)| format!("{}:{value}\n", name.to_ascii_lowercase());
        let mut lines: Vec<_> = headers.into_iter().map(line).collect();
        lines.sort_unstable();
        Self::of(lines.concat().as_bytes())
    }

    /// Its first eight bytes, which are enough to tell the contents of one run apart.
    pub(crate) fn fingerprint(self) -> u64 {
        let (first, _) = self.0.split_first_chunk().expect("a digest is longer than that");
        u64::from_be_bytes(*first)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        serializer.serialize_str(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(HexVisitor)
    }
}

struct HexVisitor;

impl Visitor<'_> for HexVisitor {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 hexadecimal digits in lower case")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        let text = text.as_bytes();
        if text.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte =
                digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low).ok_or_else(wrong)?;
        }
        Ok(Digest(bytes))
    }
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_was_written() {
        let written = serde_json::to_string(&Digest::of(b"")).expect("it can be written");
        assert_eq!(written, "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"");
        assert_eq!(serde_json::from_str::<Digest>(&written).expect("it can be read"), Digest::of(b""));
        for wrong in ["\"e3\"", "\"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\""] {
            assert!(serde_json::from_str::<Digest>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_order_and_the_case_of_headers_do_not_count() {
        let one = Digest::of_headers([("x-a", "1"), ("X-B", "2")]);
        assert_eq!(one, Digest::of_headers([("x-b", "2"), ("x-a", "1")]));
        assert_ne!(one, Digest::of_headers([("x-b", "1"), ("x-a", "2")]));
    }
}
