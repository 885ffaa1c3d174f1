//! `Guard`: judges the destination of a callback by the rules for ports, names and addresses and by its own lists.

use std::net::{IpAddr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::destination::{Destination, Host};
use crate::forbidden::Forbidden;
use crate::names::{self, Pattern};
use crate::ports::Ports;
use crate::special;

/// Judges the destination of a callback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    pub(crate) allow: Vec<IpNet>,
    pub(crate) deny: Vec<IpNet>,
    pub(crate) hosts: Vec<Pattern>,
    pub(crate) ports: Ports,
    pub(crate) exempt: Option<SocketAddr>,
}

impl Guard {
    /// A guard that allows every destination.
    #[must_use]
    pub fn open() -> Self {
        let networks = [Ipv4Net::default().into(), Ipv6Net::default().into()];
        Self { allow: networks.to_vec(), hosts: vec![Pattern::All], ports: Ports::all(), ..Self::default() }
    }

    /// Allows one more address with its port, whatever the settings are. Replaces the one of an earlier call.
    pub const fn exempt(&mut self, destination: SocketAddr) {
        self.exempt = Some(destination);
    }

    /// Judges what a URL says by itself: its port, and its name or address. `origin` is its scheme and authority in the
    /// form of the WHATWG parser. The addresses of a name are judged by [`Guard::judge_addresses`].
    ///
    /// # Errors
    /// Why callbacks may not go there.
    pub fn judge_origin(&self, origin: &str) -> Result<(), Forbidden> {
        let Some(Destination { host, port }) = Destination::of_origin(origin) else {
            return Err(Forbidden::Name(origin.to_owned()));
        };
        if matches!(host, Host::Address(address) if self.exempt == Some(SocketAddr::new(address, port))) {
            return Ok(());
        }
        if !self.ports.contains(port) {
            return Err(Forbidden::Port(port));
        }
        match host {
            Host::Address(address) => self.judge_address(address),
            Host::Name(name) if names::is_allowed(name, &self.hosts) => Ok(()),
            Host::Name(name) => Err(Forbidden::Name(name.to_owned())),
        }
    }

    /// Judges all addresses of a host; `port` only decides which one is exempt. One forbidden address forbids the name,
    /// because whoever answers for the name chooses which address is used.
    ///
    /// # Errors
    /// Why callbacks may not go to one of them.
    pub fn judge_addresses(&self, addresses: &[IpAddr], port: u16) -> Result<(), Forbidden> {
        let is_exempt = |address: &IpAddr| self.exempt == Some(SocketAddr::new(*address, port));
        let mut judged = addresses.iter().filter(|address| !is_exempt(address));
        judged.try_for_each(|address| self.judge_address(*address))
    }

    fn judge_address(&self, address: IpAddr) -> Result<(), Forbidden> {
        if let Some(network) =
            self.deny.iter().find(|network| ends(address).any(|end| network.contains(&end)))
        {
            return Err(Forbidden::Denied { address, network: *network });
        }
        // Who allows an IPv6 network does not allow all IPv4 addresses that can be written in it.
        let forbidden = |end: &IpAddr| special::purpose(*end).filter(|_| !self.is_in_allowed(*end));
        match ends(address).find_map(|end| forbidden(&end)) {
            Some(purpose) => Err(Forbidden::Address { address, purpose }),
            None => Ok(()),
        }
    }

    fn is_in_allowed(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|network| network.contains(&address))
    }
}

/// An address, and the IPv4 addresses in it that packets to it may go to in the end.
fn ends(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let inner = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(special::inner_v4(address)),
    };
    std::iter::once(address).chain(inner.into_iter().flatten().map(IpAddr::V4))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::settings::parse;

    fn guard(given: &[(&str, &str)]) -> Guard {
        let value = |name: &str| given.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| *value);
        parse(|name| value(name).to_owned()).unwrap()
    }

    /// Judges a URL as a job gives it.
    fn judge(guard: &Guard, text: &str) -> Result<(), Forbidden> {
        let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        guard.judge_origin(&url[..url::Position::BeforePath])
    }

    #[test]
    fn every_spelling_of_an_address_that_is_not_public_is_forbidden() {
        let guard = Guard::default();
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
            "http://0/",
            "http://0.0.0.0:8080/",
            "http://[::1]/",
            "http://[::]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::127.0.0.1]/",
            "http://[64:ff9b:1::a00:1]/",
            "http://[::ffff:0:127.0.0.1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
            "http://[2606:4700::5efe:10.0.0.1]/",
            "http://[2606:4700::200:5efe:a00:1]/",
            "http://[fe80::1]/",
            "http://[fec0::1]/",
            "http://[fc00::1]/",
            "http://[ff02::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
            "http://[100::1]/",
            "http://[5f00::1]/",
            "http://10.0.0.1/",
            "http://172.31.255.255/",
            "http://192.168.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://100.64.0.1/",
            "http://198.19.0.1/",
            "http://192.0.0.192/",
            "http://168.63.129.16/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
        ] {
            assert!(matches!(judge(&guard, url), Err(Forbidden::Address { .. })), "{url}");
        }
    }

    #[test]
    fn public_addresses_and_names_are_allowed() {
        let guard = Guard::default();
        for url in [
            "https://example.com/",
            "https://münchen.de/",
            "http://93.184.216.34:8443/hook?x=1",
            "http://[2606:4700::1111]/",
            "http://172.32.0.1/",
            "http://11.0.0.0/",
            "http://168.63.129.15/",
            "http://a.b.example.com.:8080/",
        ] {
            assert_eq!(judge(&guard, url), Ok(()), "{url}");
        }
    }

    #[test]
    fn names_outside_the_public_dns_and_closed_ports_are_forbidden() {
        let guard = Guard::default();
        for name in [
            "localhost",
            "LOCALHOST",
            "a.localhost",
            "redis",
            "metadata.google.internal",
            "x.local",
            "x.onion",
        ] {
            let error = judge(&guard, &format!("http://{name}/")).unwrap_err();
            assert!(matches!(error, Forbidden::Name(_)), "{name}: {error}");
        }
        for port in [1, 22, 25, 2375, 3306, 5432, 6379, 9200, 11_211, 27_017] {
            assert_eq!(judge(&guard, &format!("http://example.com:{port}/")), Err(Forbidden::Port(port)));
        }
    }

    #[test]
    fn each_setting_lifts_its_own_rule_only() {
        let loopback = guard(&[("EGRESS_ALLOW", "127.0.0.0/8")]);
        assert_eq!(judge(&loopback, "http://127.9.9.9:8080/"), Ok(()));
        // Not the same address in IPv6.
        for forbidden in [
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://10.0.0.1/",
            "http://localhost/",
            "http://127.0.0.1:22/",
        ] {
            assert!(judge(&loopback, forbidden).is_err(), "{forbidden}");
        }
        let local = guard(&[("EGRESS_HOSTS", "localhost")]);
        assert_eq!(judge(&local, "http://localhost/"), Ok(()));
        assert!(local.judge_addresses(&["127.0.0.1".parse().unwrap()], 80).is_err());
        let ssh = guard(&[("EGRESS_PORTS", "22")]);
        assert_eq!(judge(&ssh, "http://example.com:22/"), Ok(()));
        assert_eq!(judge(&ssh, "http://example.com/"), Err(Forbidden::Port(80)));
    }

    #[test]
    fn an_allowed_network_of_ipv6_does_not_allow_the_ipv4_addresses_in_it() {
        // The network of NAT64, which hosts without IPv4 need, and all of IPv6.
        for allow in ["64:ff9b::/96", "::/0"] {
            let guard = guard(&[("EGRESS_ALLOW", allow)]);
            assert_eq!(judge(&guard, "http://[64:ff9b::8.8.8.8]/"), Ok(()), "{allow}");
            assert!(judge(&guard, "http://[64:ff9b::10.0.0.1]/").is_err(), "{allow}");
        }
        let guard = guard(&[("EGRESS_ALLOW", "::/0")]);
        for allowed in ["http://[::1]/", "http://[fd00::1]/", "http://[::ffff:8.8.8.8]/"] {
            assert_eq!(judge(&guard, allowed), Ok(()), "{allowed}");
        }
        for forbidden in [
            "http://[::ffff:169.254.169.254]/",
            "http://[::10.0.0.1]/",
            "http://[2002:a00:1::]/",
            "http://10.0.0.1/",
        ] {
            assert!(judge(&guard, forbidden).is_err(), "{forbidden}");
        }
    }

    #[test]
    fn what_is_denied_is_forbidden_whatever_allows_it() {
        let guard = guard(&[("EGRESS_ALLOW", "0.0.0.0/0,::/0"), ("EGRESS_DENY", "10.0.0.0/8,8.8.8.0/24")]);
        assert_eq!(judge(&guard, "http://192.168.0.1/"), Ok(()));
        for denied in [
            "http://10.1.2.3/",
            "http://8.8.8.8/",
            "http://[::ffff:10.1.2.3]/",
            "http://[::10.1.2.3]/",
            "http://[::ffff:0:10.1.2.3]/",
            "http://[64:ff9b::10.1.2.3]/",
            "http://[2002:a01:203::1]/",
            // A client of Teredo behind 10.1.2.3, and one with this server.
            "http://[2001:0:4136:e378:8000:63bf:f5fe:fdfc]/",
            "http://[2001:0:a01:203::1]/",
            "http://[2606:4700::5efe:10.1.2.3]/",
        ] {
            assert!(matches!(judge(&guard, denied), Err(Forbidden::Denied { .. })), "{denied}");
        }
    }

    #[test]
    fn one_forbidden_address_of_a_name_forbids_the_name() {
        let judge = |addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            Guard::default().judge_addresses(&addresses, 443)
        };
        assert_eq!(judge(&["1.1.1.1", "2606:4700::1111"]), Ok(()));
        assert!(judge(&["1.1.1.1", "10.0.0.1"]).is_err());
        assert!(judge(&["1.1.1.1", "::1"]).is_err());
    }

    #[test]
    fn one_destination_can_be_exempt() {
        let mut guard = Guard::default();
        guard.exempt("127.0.0.1:22".parse().unwrap());
        assert_eq!(judge(&guard, "http://127.0.0.1:22/"), Ok(()));
        assert_eq!(guard.judge_addresses(&["127.0.0.1".parse().unwrap()], 22), Ok(()));
        for forbidden in ["http://127.0.0.1:8022/", "http://127.0.0.2:22/", "http://localhost:22/"] {
            assert!(judge(&guard, forbidden).is_err(), "{forbidden}");
        }
        assert!(guard.judge_addresses(&["127.0.0.1".parse().unwrap()], 23).is_err());
        assert!(
            guard.judge_addresses(&["127.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap()], 22).is_err()
        );
    }

    #[test]
    fn an_origin_of_another_form_is_forbidden() {
        for origin in ["", "http://", "ftp://example.com", "example.com"] {
            assert!(Guard::default().judge_origin(origin).is_err(), "{origin:?}");
        }
    }

    #[test]
    fn random_spellings_of_a_host_are_judged_as_the_host_of_the_url() {
        let samples = [
            "http://127.0.0.1/",
            "http://0x7f.1:80/",
            "https://017700000001:443/a?b",
            "http://１２７。0.0.1/",
            "http://%31%32%37.0.0.1/",
            "http://[::ffff:127.0.0.1]:8080/",
            "http://[64:ff9b::7f00:1]/",
            "https://user:pass@example.com.:8443/x#y",
            "http://münchen.example/",
            "http://2130706433/",
            "http://4294967295.:0/",
        ];
        let guard = Guard::default();
        ringback_fuzz::run_texts(&samples, |text| {
            let Ok(url) = Url::parse(text) else { return };
            let is_web = matches!(url.scheme(), "http" | "https");
            if !is_web || !url.username().is_empty() || url.password().is_some() {
                return;
            }
            let (origin, port) = (&url[..url::Position::BeforePath], url.port_or_known_default());
            let judged = guard.judge_origin(origin);
            let address: IpAddr = match url.host().expect("a web URL has a host") {
                url::Host::Ipv4(address) => address.into(),
                url::Host::Ipv6(address) => address.into(),
                url::Host::Domain(name) => {
                    assert!(name.parse::<IpAddr>().is_err(), "{name} is an address");
                    let destination = Destination { host: Host::Name(name), port: port.expect("a port") };
                    assert_eq!(Destination::of_origin(origin), Some(destination), "{origin}");
                    return;
                }
            };
            let port = port.expect("a port");
            let host = Host::Address(address);
            assert_eq!(Destination::of_origin(origin), Some(Destination { host, port }), "{origin}");
            if guard.ports.contains(port) {
                assert_eq!(judged, guard.judge_addresses(&[address], port), "{origin}");
            } else {
                assert_eq!(judged, Err(Forbidden::Port(port)), "{origin}");
            }
        });
    }
}
