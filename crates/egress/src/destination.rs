//! Host and port of the URL of a callback, read from its origin.

use std::net::IpAddr;

/// The host and the port that a callback URL leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Destination<'a> {
    pub(crate) host: Host<'a>,
    pub(crate) port: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

impl<'a> Destination<'a> {
    /// Reads scheme and authority of a URL in the form of the WHATWG parser, which writes every IPv4 address with four
    /// decimal numbers. Without a port it is that of the scheme. `None` for another form or scheme.
    pub(crate) fn of_origin(origin: &'a str) -> Option<Self> {
        let (scheme, authority) = origin.split_once("://")?;
        let usual = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let has_port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match has_port {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, usual),
        };
        Some(Self { host: Host::parse(host), port })
    }
}

impl<'a> Host<'a> {
    fn parse(text: &'a str) -> Self {
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        inside.unwrap_or(text).parse().map_or(Self::Name(text), Self::Address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_those_of_the_url() {
        let name = |name| Host::Name(name);
        let address = |text: &str| Host::Address(text.parse().unwrap());
        for (origin, host, port) in [
            ("http://a.example", name("a.example"), 80),
            ("https://a.example", name("a.example"), 443),
            ("https://a.example:8443", name("a.example"), 8443),
            ("http://10.0.0.1", address("10.0.0.1"), 80),
            ("http://10.0.0.1:81", address("10.0.0.1"), 81),
            ("https://[::1]", address("::1"), 443),
            ("http://[fd00::2]:8080", address("fd00::2"), 8080),
        ] {
            assert_eq!(Destination::of_origin(origin), Some(Destination { host, port }), "{origin}");
        }
        for wrong in ["", "a.example", "ftp://a.example", "http://a.example:x", "http://a.example:99999"] {
            assert_eq!(Destination::of_origin(wrong), None, "{wrong}");
        }
    }
}
