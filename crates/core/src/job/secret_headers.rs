//! Header values that are secrets: recognised by the name of the header, and masked wherever jobs and
//! policies are shown.

use super::Headers;

/// Shown in place of the value of a secret header. It can be a header value, so that a policy can be put as
/// it was shown.
pub const MASK: &str = "[masked by ringback]";

/// A header whose name contains one of these is a secret.
const PARTS: [&str; 13] = [
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "csrf",
    "jwt",
    "key",
    "pass",
    "secret",
    "session",
    "signature",
    "token",
    "xsrf",
];

/// Whether the value of a header is a secret: its name contains one of `PARTS`, in upper or lower case.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Whether a header has the mask in place of its secret value.
pub fn is_masked(name: &str, value: &str) -> bool {
    value == MASK && is_secret(name)
}

impl Headers {
    /// The headers as they are shown: each secret value is [`MASK`].
    #[must_use]
    pub fn masked(&self) -> Self {
        let shown = |(name, value): &(String, String)| {
            (name.clone(), if is_secret(name) { MASK.to_owned() } else { value.clone() })
        };
        Self::from_entries(self.entries().iter().map(shown).collect())
    }

    /// The names of the headers that have the mask in place of their secret value.
    pub fn masked_names(&self) -> impl Iterator<Item = &str> {
        self.entries().iter().filter(|(name, value)| is_masked(name, value)).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(entries: &[(&str, &str)]) -> Headers {
        let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Headers::parse(entries.collect()).unwrap()
    }

    #[test]
    fn secrets_are_recognised_by_the_name_in_any_case() {
        for secret in [
            "authorization",
            "Authorization",
            "PROXY-AUTHORIZATION",
            "cookie",
            "x-api-key",
            "X-Auth-Token",
            "client-secret",
            "set-cookie",
            "x-forwarded-authorization",
            "x-password-hash",
            "X-Passwd",
            "passphrase",
            "x-jwt",
            "X-JWT-Assertion",
            "x-session",
            "x-session-id",
            "PHPSESSION",
            "x-credential",
            "x-amz-credentials",
            "x-pass",
            "x-bearer",
            "x-csrf",
            "x-xsrf",
            "x-hub-signature-256",
            "idempotency-key",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for plain in ["x-merchant", "accept", "x-author", "x-tenant", "content-type", "x-tok-en"] {
            assert!(!is_secret(plain), "{plain}");
        }
    }

    #[test]
    fn shown_headers_have_the_mask_for_each_secret_and_all_else_as_it_is() {
        let shown =
            headers(&[("Authorization", "Bearer 1"), ("x-b", MASK), ("x-a", ""), ("x-key", "")]).masked();
        let expected = [("authorization", MASK), ("x-b", MASK), ("x-a", ""), ("x-key", MASK)];
        assert_eq!(shown, headers(&expected));
        assert_eq!(shown.masked_names().collect::<Vec<_>>(), ["authorization", "x-key"]);
        assert_eq!(headers(&[("x-key", "[masked]")]).masked_names().count(), 0);
    }

    #[test]
    fn no_debug_output_has_a_secret() {
        let text = format!("{:?}", headers(&[("x-api-key", "hunter2"), ("x-a", "1")]));
        assert!(!text.contains("hunter2") && text.contains("x-api-key") && text.contains("\"1\""), "{text}");
    }
}
