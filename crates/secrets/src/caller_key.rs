//! The keys by which callers of the API prove who they are: those that the API makes, `rbk_` and 48 characters, and the
//! root key of an installation, which its operator chooses.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::Rng;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

const PREFIX: &str = "rbk_";
/// The random bytes of a key: 256 bits.
const RANDOM: usize = 32;
/// The bytes of the checksum behind them, which tells a mistyped key from an unknown one without asking a store.
const CHECKSUM: usize = 4;

/// A key that the API has made. It is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct CallerKey(Zeroizing<[u8; RANDOM]>);

impl CallerKey {
    /// Makes a key of 256 random bits.
    pub fn generate(rng: &mut impl Rng) -> Self {
        let mut bytes = Zeroizing::new([0; RANDOM]);
        rng.fill_bytes(&mut *bytes);
        Self(bytes)
    }

    /// Parses a key; `None` if it has another form, or its checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?);
        let (random, checksum) = bytes.split_first_chunk::<RANDOM>()?;
        let key = Self(Zeroizing::new(*random));
        (checksum == key.checksum()).then_some(key)
    }

    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(RANDOM + CHECKSUM));
        bytes.extend_from_slice(&*self.0);
        bytes.extend_from_slice(&self.checksum());
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + 48));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(&*bytes, &mut text);
        text
    }

    /// What is stored of the key. The key cannot be found from it, having too many random bits to be guessed.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(*self.0).into())
    }

    fn checksum(&self) -> [u8; CHECKSUM] {
        let digest = Sha256::new().chain_update(PREFIX).chain_update(*self.0).finalize();
        *digest.first_chunk().expect("a digest has 32 bytes")
    }
}

impl fmt::Debug for CallerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerKey(***)")
    }
}

/// SHA-256 of the random bits of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyHash(pub [u8; 32]);

/// Takes the same time for all hashes.
impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

impl Eq for KeyHash {}

fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

/// The root key of an installation, with which everything is allowed.
#[derive(Clone)]
pub struct RootKey(Zeroizing<String>);

impl RootKey {
    pub const ALLOWED: &'static str = "32 to 256 visible ASCII characters, such as 32 random bytes in base64";

    /// Makes a root key of 256 random bits, and returns its text.
    pub fn generate(rng: &mut impl Rng) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0; RANDOM]);
        rng.fill_bytes(&mut *bytes);
        Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes))
    }

    /// Whether a text is this key. The time that it takes depends on the length of the text alone.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        is_same(&Sha256::digest(&*self.0).into(), &Sha256::digest(text).into())
    }

    /// A tag that nobody else can make for a tenant and some random bytes.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    #[must_use]
    pub fn tag(&self, tenant: &str, random: [u8; 4]) -> [u8; 4] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(b"ringback receipt ");
        mac.update(&random);
        mac.update(tenant.as_bytes());
        *mac.finalize().into_bytes().first_chunk().expect("a tag has 32 bytes")
    }
}

impl FromStr for RootKey {
    type Err = String;

    /// The error does not show the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_key = (32..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let why = || format!("must be {}", Self::ALLOWED);
        is_key.then(|| Self(Zeroizing::new(text.to_owned()))).ok_or_else(why)
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written_and_a_mistyped_one_is_none() {
        let key = CallerKey::generate(&mut StdRng::seed_from_u64(1));
        let text = key.text();
        assert_eq!((text.len(), &text[..4]), (52, "rbk_"));
        assert_eq!(CallerKey::parse(&text).as_ref(), Some(&key));
        for at in 4..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(CallerKey::parse(std::str::from_utf8(&other).unwrap()), None, "at {at}");
        }
        for wrong in ["", "rbk_", &text[4..], &text[..51], &format!("{}A", *text)] {
            assert_eq!(CallerKey::parse(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "CallerKey(***)");
    }

    #[test]
    fn keys_differ_and_so_do_their_hashes() {
        let mut rng = StdRng::seed_from_u64(1);
        let (a, b) = (CallerKey::generate(&mut rng), CallerKey::generate(&mut rng));
        assert_ne!(a, b);
        assert_ne!(a.hash(), b.hash());
        assert_eq!(a.hash(), a.hash());
    }

    #[test]
    fn a_root_key_is_long_and_not_shown() {
        let text = "0123456789abcdef0123456789abcdef";
        let key: RootKey = text.parse().unwrap();
        assert!(key.is(text) && !key.is(&text[1..]) && !key.is(""));
        assert_eq!(format!("{key:?}"), "RootKey(***)");
        for wrong in [&text[1..], "", &format!("{text} "), &"x".repeat(257)] {
            let error = wrong.parse::<RootKey>().unwrap_err();
            assert!(!error.contains("0123"), "{error}");
        }
    }

    #[test]
    fn a_root_key_that_is_made_is_one_and_differs_each_time() {
        let mut rng = StdRng::seed_from_u64(1);
        let [a, b] = [(); 2].map(|()| RootKey::generate(&mut rng));
        assert!(a.parse::<RootKey>().unwrap().is(&a) && a.len() == 43);
        assert_ne!(a, b);
    }

    #[test]
    fn tags_differ_by_key_tenant_and_random_bytes() {
        let [a, b] = ['a', 'b'].map(|c| c.to_string().repeat(32).parse::<RootKey>().unwrap());
        let tags = [a.tag("t", [1; 4]), a.tag("u", [1; 4]), a.tag("t", [2; 4]), b.tag("t", [1; 4])];
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[at + 1..].contains(tag), "{at}");
        }
        assert_eq!(a.tag("t", [1; 4]), tags[0]);
    }
}
