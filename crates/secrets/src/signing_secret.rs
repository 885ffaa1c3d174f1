//! A secret that signs callbacks: `whsec_` and the base64 of its bytes.

use std::fmt;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use rand::Rng;
use zeroize::Zeroizing;

const PREFIX: &str = "whsec_";
/// How many bytes a secret has, by the specification.
const BYTES: RangeInclusive<usize> = 24..=64;
/// How many bytes a secret has that is made here: as many as SHA-256 yields.
const NEW_BYTES: usize = 32;

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret that signs callbacks. It is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Zeroizing<Vec<u8>>);

impl SigningSecret {
    pub const ALLOWED: &'static str = "whsec_ and the base64 of 24 to 64 random bytes";
    /// The longest text of one, in bytes.
    pub const MAX_TEXT: usize = PREFIX.len() + 88;

    /// Parses a secret; `None` if it is not as [`ALLOWED`](Self::ALLOWED) says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(LENIENT.decode(text.strip_prefix(PREFIX)?).ok()?);
        BYTES.contains(&bytes.len()).then_some(Self(bytes))
    }

    /// Makes a secret of 32 random bytes.
    pub fn generate(rng: &mut impl Rng) -> Self {
        let mut bytes = Zeroizing::new(vec![0; NEW_BYTES]);
        rng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// The text that receivers are given.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(Self::MAX_TEXT));
        text.push_str(PREFIX);
        STANDARD.encode_string(&*self.0, &mut text);
        text
    }

    /// The key of the signatures.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn of(bytes: usize) -> String {
        format!("whsec_{}", STANDARD.encode(vec![7; bytes]))
    }

    #[test]
    fn a_secret_has_24_to_64_bytes() {
        for (bytes, is_valid) in [(0, false), (23, false), (24, true), (32, true), (64, true), (65, false)] {
            assert_eq!(SigningSecret::parse(&of(bytes)).is_some(), is_valid, "{bytes}");
        }
    }

    #[test]
    fn a_secret_is_read_as_it_is_written_also_without_padding() {
        let secret = SigningSecret::generate(&mut StdRng::seed_from_u64(1));
        let text = secret.text();
        assert_eq!(SigningSecret::parse(&text).as_ref(), Some(&secret));
        assert_eq!(SigningSecret::parse(text.trim_end_matches('=')).as_ref(), Some(&secret));
        assert_eq!(text.len(), "whsec_".len() + 44);
        assert_eq!(
            SigningSecret::parse(&of(64)).map(|longest| longest.text().len()),
            Some(SigningSecret::MAX_TEXT)
        );
    }

    #[test]
    fn other_texts_are_no_secrets() {
        let rest = STANDARD.encode([7; 24]);
        for text in [
            "",
            "whsec_",
            &rest,
            &format!("WHSEC_{rest}"),
            &format!("whsec_ {rest}"),
            &format!("whsec_{rest}-"),
            &format!("whsk_{rest}"),
        ] {
            assert!(SigningSecret::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret = SigningSecret::parse(&of(24)).unwrap();
        assert_eq!(format!("{secret:?}"), "SigningSecret(***)");
    }
}
