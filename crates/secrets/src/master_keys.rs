//! Master keys: they seal secrets at rest, with XChaCha20-Poly1305. A sealed text begins with the id of its key, so that
//! keys can be rotated. It opens only under the name that it was sealed for.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use rand::Rng;
use zeroize::Zeroizing;

/// How many bytes a master key has.
pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// The most keys of one process.
const MAX_KEYS: usize = 16;
const MAX_KEY_ID: usize = 32;
/// The most bytes that are sealed as one text.
const MAX_SEALED: usize = 64 * 1024;

/// The master keys of a process. The first one seals, and each opens what it has sealed.
#[derive(Clone, Default)]
pub struct MasterKeys(Vec<MasterKey>);

#[derive(Clone)]
struct MasterKey {
    id: String,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

/// A sealed text that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// This process does not have its key.
    #[error("it is sealed with the master key {0}, which this process does not have (RINGBACK_MASTER_KEYS)")]
    UnknownKey(String),
    /// It was changed, sealed for another name, or sealed with another key of the same id.
    #[error("it is not what the master key {0} has sealed for this topic")]
    Altered(String),
    /// It is not a sealed text.
    #[error("it is not a sealed text: the id of a master key, a dot and base64")]
    Malformed,
}

impl MasterKeys {
    fn parse(text: &str) -> Result<Self, String> {
        let entries: Vec<_> =
            text.split([',', ' ', '\t', '\n', '\r']).filter(|entry| !entry.is_empty()).collect();
        if entries.len() > MAX_KEYS {
            return Err(format!("has {} keys; at most {MAX_KEYS} are allowed", entries.len()));
        }
        let mut keys = Self::default();
        for (index, entry) in entries.into_iter().enumerate() {
            let key = MasterKey::parse(entry).map_err(|why| format!("entry {}: {why}", index + 1))?;
            if keys.find(&key.id).is_some() {
                return Err(format!("entry {}: there is a key {} already", index + 1, key.id));
            }
            keys.0.push(key);
        }
        Ok(keys)
    }

    /// Makes a key, and returns its entry for `RINGBACK_MASTER_KEYS`: `id:` and base64. Does not check `id`.
    pub fn generate(id: &str, rng: &mut impl Rng) -> Zeroizing<String> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        rng.fill_bytes(&mut *key);
        Zeroizing::new(format!("{id}:{}", STANDARD.encode(*key)))
    }

    /// The id of the key that seals; `None` without any.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        self.0.first().map(|key| key.id.as_str())
    }

    /// Seals a secret for a name with the first key; `None` without a key.
    pub fn seal(&self, name: &str, secret: &[u8], rng: &mut impl Rng) -> Option<String> {
        let key = self.0.first()?;
        let mut nonce = [0; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        let payload = Payload { msg: secret, aad: name.as_bytes() };
        let sealed = key.cipher().encrypt(&XNonce::from(nonce), payload).expect("a secret is short");
        Some(format!("{}.{}", key.id, URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens a text that was sealed for this name.
    ///
    /// # Errors
    /// If it is not a sealed text, its key is not known, or it was changed or sealed for another name.
    pub fn open(&self, name: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (id, rest) = split(sealed).ok_or(OpenError::Malformed)?;
        let bytes = URL_SAFE_NO_PAD.decode(rest).map_err(|_| OpenError::Malformed)?;
        let (nonce, message) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError::Malformed)?;
        let key = self.find(id).ok_or_else(|| OpenError::UnknownKey(id.to_owned()))?;
        let payload = Payload { msg: message, aad: name.as_bytes() };
        let opened = key.cipher().decrypt(&XNonce::from(*nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| OpenError::Altered(id.to_owned()))
    }

    /// Whether a sealed text can be sealed again with a newer key: this process has its key, and it is not the first.
    #[must_use]
    pub fn is_outdated(&self, sealed: &str) -> bool {
        split(sealed).is_some_and(|(id, _)| self.find(id).is_some() && self.current() != Some(id))
    }

    fn find(&self, id: &str) -> Option<&MasterKey> {
        self.0.iter().find(|key| key.id == id)
    }
}

impl FromStr for MasterKeys {
    type Err = String;

    /// Parses `id:key` pairs, separated by white space or commas. A key is the base64 of 32 bytes. The error says which
    /// entry is wrong and why, and shows no key.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

/// The ids of the keys, without the keys.
impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl MasterKey {
    fn parse(entry: &str) -> Result<Self, String> {
        let (id, key) = entry.split_once(':').ok_or("must be an id, a colon and a key")?;
        if !is_key_id(id) {
            return Err(format!("the id must have 1 to {MAX_KEY_ID} letters, digits, - or _"));
        }
        let bytes = Zeroizing::new(STANDARD.decode(key).unwrap_or_default());
        let key = <[u8; KEY_BYTES]>::try_from(bytes.as_slice());
        let key = key.map_err(|_| {
            format!("the key {id} must be the base64 of {KEY_BYTES} bytes (openssl rand -base64 {KEY_BYTES})")
        })?;
        Ok(Self { id: id.to_owned(), key: Zeroizing::new(key) })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.key))
    }
}

fn is_key_id(id: &str) -> bool {
    (1..=MAX_KEY_ID).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// The id of the key and the rest, at most [`MAX_SEALED`] bytes; `None` for another form.
fn split(sealed: &str) -> Option<(&str, &str)> {
    sealed.split_once('.').filter(|(id, rest)| is_key_id(id) && rest.len() <= MAX_SEALED)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    const NAME: &str = "topic/pay/secret/1";

    fn keys(ids: &[&str]) -> MasterKeys {
        let key = |id: &&str| format!("{id}:{}", STANDARD.encode([id.as_bytes()[0]; KEY_BYTES]));
        MasterKeys::parse(&ids.iter().map(key).collect::<Vec<_>>().join(" ")).unwrap()
    }

    fn seal(keys: &MasterKeys) -> String {
        keys.seal(NAME, b"secret", &mut StdRng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let (old, both) = (keys(&["a"]), keys(&["b", "a"]));
        let (by_old, by_new) = (seal(&old), seal(&both));
        assert!(by_old.starts_with("a.") && by_new.starts_with("b."), "{by_old} {by_new}");
        assert_eq!(both.open(NAME, &by_old).unwrap().as_slice(), b"secret");
        assert_eq!(both.open(NAME, &by_new).unwrap().as_slice(), b"secret");
        assert_eq!(old.open(NAME, &by_new), Err(OpenError::UnknownKey("b".to_owned())));
        assert!(both.is_outdated(&by_old) && !both.is_outdated(&by_new));
        assert!(!old.is_outdated(&by_new), "a key that is missing cannot open it");
        assert_eq!(MasterKeys::default().seal(NAME, b"secret", &mut StdRng::seed_from_u64(1)), None);
    }

    #[test]
    fn what_is_sealed_opens_under_its_name_alone_and_only_if_it_is_whole() {
        let keys = keys(&["a"]);
        let sealed = seal(&keys);
        assert_eq!(keys.open("topic/other/secret/1", &sealed), Err(OpenError::Altered("a".to_owned())));
        // Not the last digit: some of its bits mean nothing.
        for index in 2..sealed.len() - 1 {
            let mut bytes = sealed.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(keys.open(NAME, &changed), Err(OpenError::Altered("a".to_owned())), "{index}");
        }
        for wrong in ["", "a", "a.", "a.!", ".AAAA", "a b.AAAA", "a.AAAA"] {
            assert_eq!(keys.open(NAME, wrong), Err(OpenError::Malformed), "{wrong}");
        }
        let other = MasterKeys::parse(&MasterKeys::generate("a", &mut StdRng::seed_from_u64(3))).unwrap();
        assert_eq!(
            other.open(NAME, &sealed),
            Err(OpenError::Altered("a".to_owned())),
            "another key of its id"
        );
    }

    #[test]
    fn the_same_secret_is_sealed_differently_each_time() {
        let (keys, mut rng) = (keys(&["a"]), StdRng::seed_from_u64(1));
        assert_ne!(keys.seal(NAME, b"secret", &mut rng), keys.seal(NAME, b"secret", &mut rng));
    }

    #[test]
    fn a_wrong_entry_is_named_by_its_place_and_no_key_is_shown() {
        let key = STANDARD.encode([7; KEY_BYTES]);
        let short = STANDARD.encode([7; 31]);
        for (text, expected) in [
            (format!("a:{key} b{key}"), "entry 2: must be an id"),
            (format!("a b:{key}"), "entry 1: must be an id"),
            (format!("a.b:{key}"), "entry 1: the id must have"),
            (format!(":{key}"), "entry 1: the id must have"),
            (format!("a:{short}"), "entry 1: the key a must be the base64 of 32 bytes"),
            (format!("a:{key},a:{key}"), "entry 2: there is a key a already"),
            ((0..17).map(|n| format!("k{n}:{key} ")).collect(), "has 17 keys"),
        ] {
            let why = MasterKeys::parse(&text).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
            assert!(!why.contains(&key) && !why.contains(&short), "{why}");
        }
        let keys = MasterKeys::parse(&format!(" a:{key},\n b:{key} ")).unwrap();
        assert_eq!((keys.current(), format!("{keys:?}").as_str()), (Some("a"), r#"["a", "b"]"#));
        assert_eq!(MasterKeys::parse("").unwrap().current(), None);
    }
}
