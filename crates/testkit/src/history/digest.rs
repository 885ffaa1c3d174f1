//! SHA-256 digests, written as 64 hexadecimal digits.

use ringback_core::hex::{self, Hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "&str")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of headers in any order: of the sorted lines `name:value`, with names in lower case.
    pub fn of_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let line = |(name, value): (&str, &str)| format!("{}:{value}\n", name.to_ascii_lowercase());
        let mut lines: Vec<_> = headers.into_iter().map(line).collect();
        lines.sort_unstable();
        Self::of(lines.concat().as_bytes())
    }

    /// The first eight bytes, which are enough to distinguish the contents of one run.
    pub(crate) fn fingerprint(self) -> u64 {
        let (first, _) = self.0.split_first_chunk().expect("a digest is longer than that");
        u64::from_be_bytes(*first)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        Hex(&digest.0).to_string()
    }
}

impl TryFrom<&str> for Digest {
    type Error = &'static str;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        hex::read(text).map(Self).ok_or("not 64 hexadecimal digits in lower case")
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
