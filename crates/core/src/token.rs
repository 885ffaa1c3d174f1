//! [`Token`]: the name of one request, by which a store recognises its repetition.

use sha2::{Digest, Sha256};

/// Identifies one request, and stays the same when the request is repeated. A repeated call is
/// recognised by it and gets the same result. Random, or made from the caller's idempotency key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token(pub [u8; 8]);

impl Token {
    /// The token for a caller's idempotency key: 64 bits of the key's SHA-256. That is enough, because a
    /// token is only compared with the last one of the same job.
    pub fn of_key(key: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(key).into();
        Self(*digest.first_chunk().expect("a digest has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_gives_the_same_token_and_another_key_another() {
        assert_eq!(Token::of_key("a"), Token::of_key("a"));
        assert_ne!(Token::of_key("a"), Token::of_key("b"));
    }
}
