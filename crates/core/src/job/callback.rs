//! Callback URLs, headers and context of a job: their parsers and limits.

use std::fmt;

use http::{HeaderName, HeaderValue};
use url::Url;

use super::host;

/// The longest URL, in bytes.
pub const MAX_URL: usize = 2048;
/// The most headers of a job.
pub const MAX_HEADERS: usize = 32;
/// Names and values of a job's headers together, in bytes.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;
/// The most context entries of a job.
pub const MAX_CONTEXT: usize = 16;
/// Keys and values of a job's context together, in bytes.
pub const MAX_CONTEXT_BYTES: usize = 4 * 1024;

/// Header names that a job cannot set, because the delivery sets them. Nor with `_` in place of `-`: CGI (RFC 3875,
/// section 4.1.18) and what follows it give both to a receiver under one name.
pub const RESERVED_HEADERS: [&str; 12] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "user-agent",
    "traceparent",
    "tracestate",
];
/// Names that begin with one of these are reserved too.
pub const RESERVED_PREFIXES: [&str; 2] = ["webhook-", "ringback-"];

pub const USER_AGENT: &str = concat!("Ringback/", env!("CARGO_PKG_VERSION"));

/// Why a value was refused, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refused {
    /// What was wrong.
    pub detail: String,
    pub allowed: &'static str,
}

fn refused(detail: impl Into<String>, allowed: &'static str) -> Refused {
    Refused { detail: detail.into(), allowed }
}

/// An http or https URL in the form of the WHATWG parser, without the dot of the root behind a name, split into the
/// origin (scheme and authority) and the path (the rest). Topic and origin together are a job's lane. Both are empty
/// for a pull job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    origin: String,
    path: String,
}

impl Callback {
    /// The form of a URL, for error messages.
    pub const ALLOWED: &'static str =
        "an absolute http or https URL of at most 2048 bytes, without credentials or fragment";

    pub fn parse(text: &str) -> Result<Self, Refused> {
        let no = |detail: &str| Err(refused(detail, Self::ALLOWED));
        if text.len() > MAX_URL {
            return no(&format!("{} bytes long", text.len()));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return no("contains white space, a control character or a backslash");
        }
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        if !lower.starts_with("http://") && !lower.starts_with("https://") {
            return no("neither http:// nor https://");
        }
        let url = Url::parse(text).map_err(|e| refused(e.to_string(), Self::ALLOWED))?;
        if !url.username().is_empty() || url.password().is_some() {
            return no("contains credentials");
        }
        if url.fragment().is_some() {
            return no("contains a fragment");
        }
        if url.as_str().len() > MAX_URL {
            return no("too long once encoded");
        }
        Ok(Self { path: url[url::Position::BeforePath..].to_owned(), origin: host::origin(&url) })
    }

    /// Checks that an HTTP client can send to the host and port. [`Callback::parse`] accepts more, so that stored and
    /// imported URLs remain valid. A pull job passes.
    ///
    /// # Errors
    /// What is wrong with its host or port, and what is allowed.
    pub fn check(&self) -> Result<(), Refused> {
        if self.is_pull() {
            return Ok(());
        }
        host::check(&self.origin).map_err(|detail| refused(detail, host::ALLOWED))
    }

    /// A callback from the parts of a parsed one. Checks nothing.
    pub fn from_parts(origin: String, path: String) -> Self {
        Self { origin, path }
    }

    /// No URL: a pull job.
    pub const fn pull() -> Self {
        Self { origin: String::new(), path: String::new() }
    }

    /// Whether the job waits for a consumer instead of being sent to a URL.
    pub const fn is_pull(&self) -> bool {
        self.origin.is_empty()
    }

    /// Scheme and authority.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// A job's own headers in the order given, with names in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The form of headers, for error messages.
    pub const ALLOWED: &'static str = "at most 32 headers by the grammar of RFC 9110, 8 KiB together; \
        not host, content-length, content-type, transfer-encoding, connection, te, trailer, upgrade, expect, \
        user-agent, traceparent, tracestate, nor any that begins with webhook- or ringback-; \
        nor these with _ in place of -";

    /// Parses headers and makes their names lower-case. Refuses more headers or bytes than the limits, and names or
    /// values that are invalid, reserved or given twice.
    pub fn parse(entries: Vec<(String, String)>) -> Result<Self, Refused> {
        let no = |detail: String| Err(refused(detail, Self::ALLOWED));
        check_size(&entries, MAX_HEADERS, MAX_HEADER_BYTES, Self::ALLOWED)?;
        let mut headers: Vec<(String, String)> = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
                return no(format!("{name:?} is not a header name"));
            };
            let name = parsed.as_str();
            if is_reserved(name) {
                return no(format!("{name} is reserved"));
            }
            if headers.iter().any(|(known, _)| known == name) {
                return no(format!("{name} is given twice"));
            }
            check_value(name, &value, Self::ALLOWED)?;
            headers.push((name.to_owned(), value));
        }
        Ok(Self(headers))
    }

    /// Headers from entries that [`Headers::parse`] has accepted before.
    pub fn from_entries(entries: Vec<(String, String)>) -> Self {
        Self(entries)
    }

    pub fn entries(&self) -> &[(String, String)] {
        &self.0
    }
}

/// Without the values of secret headers, so that none gets into a log.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.masked().0).finish()
    }
}

/// Returns the form of a character of a context key in its header: letters in lower case, digits, `-` for all others.
fn in_header(c: char) -> char {
    if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }
}

fn is_reserved(name: &str) -> bool {
    let name = name.replace('_', "-");
    RESERVED_HEADERS.contains(&&*name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A job's context: delivered as headers with every attempt, see [`Context::header`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context(Vec<(String, String)>);

impl Context {
    /// The form of a context, for error messages.
    pub const ALLOWED: &'static str = "at most 16 entries, 4 KiB together; keys that can end a header name \
        (RFC 9110 token), values that can be a header value, no two keys alike but for case and characters other than A-Z a-z 0-9";

    /// The name of the header that carries a key: `ringback-context-` and the key in lower case, with `-` in place of
    /// all but letters and digits. Proxies such as nginx silently drop headers with other names, and CGI cannot tell
    /// `_` from `-`.
    pub fn header(key: &str) -> String {
        "ringback-context-".chars().chain(key.chars().map(in_header)).collect()
    }

    /// Checks keys and values. Refuses too many entries or bytes, invalid ones, and two keys that give the same header.
    pub fn parse(entries: Vec<(String, String)>) -> Result<Self, Refused> {
        let no = |detail: String| Err(refused(detail, Self::ALLOWED));
        check_size(&entries, MAX_CONTEXT, MAX_CONTEXT_BYTES, Self::ALLOWED)?;
        for (i, (key, value)) in entries.iter().enumerate() {
            if key.is_empty() || HeaderName::from_bytes(format!("ringback-context-{key}").as_bytes()).is_err()
            {
                return no(format!("{key:?} cannot end a header name"));
            }
            let is_like = |known: &str| known.chars().map(in_header).eq(key.chars().map(in_header));
            if let Some((known, _)) = entries[..i].iter().find(|(known, _)| is_like(known)) {
                let header = Self::header(key);
                return no(format!("{known} and {key} would both be sent as the header {header}"));
            }
            check_value(key, value, Self::ALLOWED)?;
        }
        Ok(Self(entries))
    }

    /// A context from entries that [`Context::parse`] has accepted before.
    pub fn from_entries(entries: Vec<(String, String)>) -> Self {
        Self(entries)
    }

    pub fn entries(&self) -> &[(String, String)] {
        &self.0
    }
}

fn check_size(
    entries: &[(String, String)],
    max: usize,
    max_bytes: usize,
    allowed: &'static str,
) -> Result<(), Refused> {
    let bytes: usize = entries.iter().map(|(k, v)| k.len() + v.len()).sum();
    if entries.len() > max || bytes > max_bytes {
        return Err(refused(format!("{} entries, {bytes} bytes together", entries.len()), allowed));
    }
    Ok(())
}

fn check_value(name: &str, value: &str, allowed: &'static str) -> Result<(), Refused> {
    if !value.is_ascii() || HeaderValue::from_str(value).is_err() || value.trim() != value {
        let detail = format!(
            "the value of {name} has a line break, a control or non-ASCII character, or white space at an end"
        );
        return Err(refused(detail, allowed));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_origin_and_path() {
        let c = Callback::parse("HTTPS://Merchant.Example:443/notify?a=b%20c").unwrap();
        assert_eq!((c.origin(), c.path()), ("https://merchant.example", "/notify?a=b%20c"));
        let c = Callback::parse("http://10.0.0.1:8080").unwrap();
        assert_eq!(c.to_string(), "http://10.0.0.1:8080/");
        assert_eq!(Callback::parse("https://münchen.de/").unwrap().origin(), "https://xn--mnchen-3ya.de");
    }

    #[test]
    fn urls_outside_the_rules_are_refused() {
        let long = format!("http://h/{}", "x".repeat(2040));
        for bad in [
            "",
            "h",
            "/x",
            "ftp://h/",
            "file:///etc/passwd",
            "http://",
            "http:h",
            "http://u@h/",
            "http://u:p@h/",
            "http://h/#f",
            "http://h/a b",
            "http://h/a\nb",
            "http://h\\x",
            "javascript:1",
            "http://[::1",
            &long,
        ] {
            assert!(Callback::parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn reserved_and_broken_headers_are_refused() {
        let one = |k: &str, v: &str| Headers::parse(vec![(k.to_owned(), v.to_owned())]);
        for (name, value) in [
            ("Host", "x"),
            ("Content-Type", "x"),
            ("webhook-id", "x"),
            ("Ringback-Topic", "x"),
            ("webhook_signature", "x"),
            ("Ringback_Topic", "x"),
            ("Content_length", "x"),
            ("a b", "x"),
            ("", "x"),
            ("x\r\ny", "x"),
            ("x", "a\r\nb"),
            ("x", "a\nb"),
            ("x", "ä"),
            ("x", " a"),
            ("traceparent", "x"),
        ] {
            assert!(one(name, value).is_err(), "{name:?}: {value:?} was taken");
        }
        assert_eq!(one("X-Merchant", "88231").unwrap().entries()[0].0, "x-merchant");
    }

    #[test]
    fn too_many_or_too_large_entries_are_refused() {
        let many = |n: usize, v: &str| (0..n).map(|i| (format!("k{i}"), v.to_owned())).collect::<Vec<_>>();
        assert!(Headers::parse(many(33, "")).is_err());
        assert!(Headers::parse(many(1, &"x".repeat(8192))).is_err());
        assert!(Context::parse(many(17, "")).is_err());
        assert!(Context::parse(many(2, &"x".repeat(2047))).is_err());
        assert!(Context::parse(vec![("a".into(), "1".into()), ("A".into(), "2".into())]).is_err());
        assert!(Context::parse(many(16, "v")).is_ok());
    }
}
