//! The settings of secrets: their names, and a parser of signing secrets. Where values come from is up to the caller.

use crate::signing_secret::SigningSecret;

/// The most signing secrets of an installation.
const MAX_SECRETS: usize = 8;

/// Name, default and meaning of the setting with the keys that seal secrets. Its value is a secret.
pub const MASTER_KEYS: (&str, &str, &str) = (
    "MASTER_KEYS",
    "",
    "Keys that seal secrets in the store, at most 16, each an id, a colon and the base64 of 32 bytes (ringback secret master-key makes one); the first one seals, each opens what it has sealed. Empty: topics have no secrets, but ringback up on an embedded store makes a key. Use the same everywhere",
);

/// Name, default and meaning of the setting with the key with which everything is allowed. Its value is a secret.
pub const ROOT_KEY: (&str, &str, &str) = (
    "ROOT_KEY",
    "",
    "Key with which a caller of the API may do everything, 32 to 256 visible ASCII characters; with it each call needs a key. Empty: only callers on this machine are served. Use the same everywhere",
);

/// Name, default and meaning of the setting with the secrets that sign callbacks of all topics. Its value is a secret.
pub const SIGNING_SECRET: (&str, &str, &str) = (
    "SIGNING_SECRET",
    "",
    "Secrets that sign the callbacks of all topics, at most 8, each whsec_ and the base64 of 24 to 64 bytes; several while they rotate. Empty: only topics with secrets of their own are signed",
);

/// Name, default and meaning of the setting with the prefix of the headers.
pub const WEBHOOK_PREFIX: (&str, &str, &str) = (
    "WEBHOOK_PREFIX",
    "webhook",
    "Beginning of the names of the headers -id, -timestamp and -signature of callbacks, such as svix: 1 to 32 of a-z 0-9 -, beginning with a letter, not ringback. Use the same everywhere",
);

/// Parses the value of [`SIGNING_SECRET`]. `get` returns the value of a name.
///
/// # Errors
/// The name and the mistake, without the secrets.
pub fn parse_signing_secrets(
    mut get: impl FnMut(&'static str) -> String,
) -> Result<Vec<SigningSecret>, Vec<(&'static str, String)>> {
    let (name, ..) = SIGNING_SECRET;
    secrets(&get(name)).map_err(|why| vec![(name, why)])
}

fn secrets(text: &str) -> Result<Vec<SigningSecret>, String> {
    let entries: Vec<_> =
        text.split([',', ' ', '\t', '\n', '\r']).filter(|entry| !entry.is_empty()).collect();
    if entries.len() > MAX_SECRETS {
        return Err(format!("has {} secrets; at most {MAX_SECRETS} are allowed", entries.len()));
    }
    let parse = |(index, entry)| {
        let why = || format!("entry {} must be {}", index + 1, SigningSecret::ALLOWED);
        SigningSecret::parse(entry).ok_or_else(why)
    };
    entries.into_iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn parse(text: &str) -> Result<usize, Vec<&'static str>> {
        let parsed = parse_signing_secrets(|_| text.to_owned());
        parsed.map(|secrets| secrets.len()).map_err(|errors| {
            assert!(errors.iter().all(|(_, why)| !why.contains("MfKQ")), "{errors:?}");
            errors.into_iter().map(|(name, _)| name).collect()
        })
    }

    #[test]
    fn secrets_are_separated_by_white_space_or_commas() {
        assert_eq!(parse(""), Ok(0));
        assert_eq!(parse(&format!(" {SECRET},\n{SECRET} ")), Ok(2));
    }

    #[test]
    fn a_mistake_shows_no_secret() {
        assert_eq!(parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Err(vec!["SIGNING_SECRET"]));
        assert_eq!(parse(&format!("{SECRET} ").repeat(9)), Err(vec!["SIGNING_SECRET"]));
    }
}
