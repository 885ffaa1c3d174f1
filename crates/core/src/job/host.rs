//! The host of callback URLs by which jobs are found, with or without a port.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// A host, and one of its ports or all of them. The host is written as the URL Standard serialises it: in lower case,
/// with IDNA applied, an IPv6 address in brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    host: String,
    /// `None` for all ports.
    port: Option<u16>,
}

/// A text that is no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a host, nor a host and a port")]
pub struct InvalidHost;

impl HostPattern {
    /// The form of a host, for error messages.
    pub const ALLOWED: &'static str = "a host such as merchant.example, 192.0.2.1 or [2001:db8::1], or a host and a port such as merchant.example:8443; without a port it means all ports";

    /// The host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; `None` for all ports.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether an origin, a scheme with an authority, is one of the host. A pull job has an empty origin, and no host.
    pub fn matches(&self, origin: &str) -> bool {
        let (authority, default) = match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
            (Some(authority), _) => (authority, 80),
            (None, Some(authority)) => (authority, 443),
            (None, None) => return false,
        };
        let Some(rest) = authority.strip_prefix(self.host.as_str()) else { return false };
        let port = match rest.strip_prefix(':') {
            Some(port) => port.parse().ok(),
            None if rest.is_empty() => Some(default),
            None => return false,
        };
        self.port.is_none_or(|wanted| port == Some(wanted))
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let is_other = |c: char| c.is_control() || c.is_whitespace() || "/\\@?#".contains(c);
        if text.is_empty() || text.len() > 300 || text.contains(is_other) || text.ends_with(':') {
            return Err(InvalidHost);
        }
        let parse = |scheme: &str| Url::parse(&format!("{scheme}://{text}/")).map_err(|_| InvalidHost);
        let (http, https) = (parse("http")?, parse("https")?);
        let host = http.host_str().ok_or(InvalidHost)?.to_owned();
        // A URL leaves out the port that its scheme has by default.
        Ok(Self { host, port: http.port().or(https.port()) })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.iter().try_for_each(|port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_as_urls_are() {
        for (text, written) in [
            ("Merchant.Example", "merchant.example"),
            ("münchen.de", "xn--mnchen-3ya.de"),
            ("127.1:80", "127.0.0.1:80"),
            ("h:443", "h:443"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            let host: HostPattern = text.parse().unwrap();
            assert_eq!(host.to_string(), written);
            assert_eq!(written.parse(), Ok(host));
        }
        for text in [
            "", ":", "h:", "h:x", "h:70000", "a b", "http://h", "h/", "u@h", "h?", "[::1", "::1", "a\nb", "%",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(InvalidHost), "{text:?}");
        }
    }

    #[test]
    fn without_a_port_all_ports_match() {
        let matches = |host: &str, origin: &str| host.parse::<HostPattern>().unwrap().matches(origin);
        for origin in ["http://h", "https://h", "http://h:8080", "https://h:1"] {
            assert!(matches("h", origin), "{origin}");
        }
        for origin in ["", "http://h2", "http://a.h", "http://hh:80", "h"] {
            assert!(!matches("h", origin), "{origin}");
        }
        assert!(
            matches("h:80", "http://h") && !matches("h:80", "https://h") && matches("h:443", "https://h")
        );
        assert!(matches("h:8080", "http://h:8080") && !matches("h:808", "http://h:8080"));
        assert!(matches("[::1]", "http://[::1]:7") && matches("[::1]:7", "http://[::1]:7"));
        assert!(!matches("[::1]", "http://[::1]7"));
    }
}
