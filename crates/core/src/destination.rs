//! Destinations that callbacks go to (hosts, or single ports of them), origins of callback URLs, and pauses of
//! destinations with the names under which stores keep them.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Host;

use crate::job::{Refused, Tenant, TenantScope, without_root};
use crate::lane::{Lane, NO_TENANT};

/// The longest host, in bytes: that of a name in the DNS.
const MAX_HOST: usize = 253;

/// A host with all of its ports, or one port of it. Hosts are written as in a parsed URL: in lower case, IDNA as ASCII,
/// IPv4 with four decimal numbers, IPv6 in brackets, a name without the dot of the root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Destination {
    host: Box<str>,
    port: Option<u16>,
}

impl Destination {
    /// The form of a destination, for error messages.
    pub const ALLOWED: &'static str = "the host of a callback URL, or host:port with a port from 1 to 65535: \
        a name of at most 253 bytes, an IPv4 address, or an IPv6 address in brackets; no scheme, no path";

    /// Parses a host, or a host and a port, by the rules of the URL standard.
    ///
    /// # Errors
    /// What is wrong: the host, its length over 253 bytes, or the port, which must be 1 to 65535.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let no = |detail| Err(Refused { detail, allowed: Self::ALLOWED });
        let is_number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are inside its brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let port = match port {
            None => None,
            Some(port) => match port.parse().ok().filter(|number| *number > 0 && is_number(port)) {
                Some(number) => Some(number),
                None => return no(format!("{port:?} is not a port")),
            },
        };
        let host = match Host::parse(host) {
            Ok(host) => without_root(&host.to_string()).to_owned(),
            Err(error) => return no(format!("{host:?} is not a host: {error}")),
        };
        if host.is_empty() || host.len() > MAX_HOST {
            return no(format!("the host is {} bytes long", host.len()));
        }
        Ok(Self { host: host.into(), port })
    }

    /// The port that an origin has, of its host.
    pub fn of_origin(Origin { host, port, .. }: &Origin) -> Self {
        Self { host: host.clone(), port: Some(*port) }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; `None` for all of them.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether this destination includes all of `other`: it has the same host, and all ports or the same one.
    pub fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }

    /// Whether callbacks to an origin go to this destination.
    pub fn has(&self, origin: &Origin) -> bool {
        self.host == origin.host && self.port.is_none_or(|port| port == origin.port)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The origin of callback URLs in its parts. Sorted by host, then port, then scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub host: Box<str>,
    /// The port, also where it is the scheme's own.
    pub port: u16,
    /// `http` or `https`.
    pub scheme: Box<str>,
}

impl Origin {
    /// Reads scheme, host and port (else the scheme's) of a parsed URL; `None` for the empty origin of pull jobs.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let with_port = authority.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let own = if scheme == "https" { 443 } else { 80 };
        let (host, port) = with_port.unwrap_or((authority, own));
        Some(Self { host: host.into(), port, scheme: scheme.into() })
    }
}

/// A pause of a destination: for the jobs of one tenant, of no tenant, or for all jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DestinationPause {
    pub destination: Destination,
    /// Whose jobs: those of `~tenant`, those of [`NO_TENANT`], or those of all.
    of: Option<Box<str>>,
}

impl DestinationPause {
    pub fn new(scope: &TenantScope, destination: Destination) -> Self {
        let of = match scope {
            TenantScope::All => None,
            TenantScope::One(None) => Some(NO_TENANT.into()),
            TenantScope::One(Some(tenant)) => Some(format!("{}{tenant}", Tenant::MARK).into()),
        };
        Self { destination, of }
    }

    /// The names of the four pauses that would hold a lane: of its host and of its host and port, each for all jobs and
    /// for the jobs of the lane's tenant. `None` for a pull lane.
    pub fn names_of(lane: Lane<'_>) -> Option<[String; 4]> {
        let Origin { host, port, .. } = Origin::parse(lane.origin)?;
        let (with_port, tenant) = (format!("{host}:{port}"), lane.tenant());
        let of_tenant = [&*host, &with_port].map(|destination| format!("{tenant}/{destination}"));
        let [host_of_tenant, port_of_tenant] = of_tenant;
        Some([host.into(), with_port, host_of_tenant, port_of_tenant])
    }

    pub fn from_name(name: &str) -> Option<Self> {
        let (of, destination) = match name.split_once('/') {
            Some((of, destination)) => (Some(of.into()), destination),
            None => (None, name),
        };
        Some(Self { destination: Destination::parse(destination).ok()?, of })
    }

    /// The name under which stores keep the pause: the destination, for the jobs of one tenant with `~tenant/` before
    /// it, for jobs without a tenant with `~/`.
    pub fn name(&self) -> String {
        match &self.of {
            Some(of) => format!("{of}/{}", self.destination),
            None => self.destination.to_string(),
        }
    }

    /// Whether the pause is for the jobs of exactly this scope.
    pub fn is_of(&self, scope: &TenantScope) -> bool {
        *self == Self::new(scope, self.destination.clone())
    }

    /// Whether the pause is for all jobs.
    pub const fn is_of_all(&self) -> bool {
        self.of.is_none()
    }

    /// The tenant whose jobs the pause is for; `None` if that is all jobs, or those without a tenant.
    pub fn tenant(&self) -> Option<&str> {
        self.of.as_ref()?.strip_prefix(Tenant::MARK).filter(|tenant| !tenant.is_empty())
    }

    /// The prefix of the names of all pauses of this pause's tenant; `None` if it is not for the jobs of one tenant.
    pub fn tenant_prefix(&self) -> Option<String> {
        self.tenant().map(|tenant| format!("{}{tenant}/", Tenant::MARK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Callback;

    fn parsed(text: &str) -> String {
        Destination::parse(text)
            .map_or_else(|refused| format!("refused: {}", refused.detail), |d| d.to_string())
    }

    #[test]
    fn hosts_are_written_as_callback_urls_have_them() {
        for (text, expected) in [
            ("Merchant.Example", "merchant.example"),
            ("merchant.example:443", "merchant.example:443"),
            ("merchant.example:0443", "merchant.example:443"),
            ("Bücher.example:8080", "xn--bcher-kva.example:8080"),
            ("merchant.example.", "merchant.example"),
            ("Merchant.Example.:8080", "merchant.example:8080"),
            ("127.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("0x7f000001:80", "127.0.0.1:80"),
            ("[::0:1]", "[::1]"),
            ("[FE80::1]:8080", "[fe80::1]:8080"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
            let host = Destination::parse(text).unwrap();
            let callback = Callback::parse(&format!("http://{text}/hook")).unwrap();
            assert!(host.has(&Origin::parse(callback.origin()).unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = format!("{}.example", "a".repeat(250));
        for text in [
            "",
            ":80",
            "a:",
            "a:0",
            "a:65536",
            "a:+80",
            "a:x",
            "http://a",
            "a/b",
            "a b",
            "::1",
            "[::1",
            "u@a",
            "a?b",
            "256.256.256.256",
            "*.example",
            "a#b",
            &*long,
        ] {
            // A name with a star is allowed in a URL.
            assert_eq!(parsed(text).starts_with("refused"), text != "*.example", "{text}");
        }
    }

    #[test]
    fn an_origin_has_its_schemes_port() {
        for (origin, host, port) in [
            ("https://a.example", "a.example", 443),
            ("http://a.example", "a.example", 80),
            ("http://[::1]", "[::1]", 80),
            ("https://[::1]:8443", "[::1]", 8443),
        ] {
            let parsed = Origin::parse(origin).unwrap();
            assert_eq!((&*parsed.host, parsed.port), (host, port), "{origin}");
        }
        assert_eq!(Origin::parse(""), None);
    }

    #[test]
    fn a_pause_has_a_name_of_its_own_for_each_scope() {
        let scopes = [TenantScope::All, TenantScope::One(None), TenantScope::One(Some("t".parse().unwrap()))];
        let names = ["a.example:81", "~/a.example:81", "~t/a.example:81"];
        for (n, (scope, name)) in scopes.iter().zip(names).enumerate() {
            let pause = DestinationPause::new(scope, Destination::parse("a.example:81").unwrap());
            assert_eq!(pause.name(), name);
            assert_eq!(DestinationPause::from_name(name), Some(pause.clone()));
            let of: Vec<_> = scopes.iter().map(|scope| pause.is_of(scope)).collect();
            assert_eq!(of, [n == 0, n == 1, n == 2]);
        }
    }
}
