//! The settings of the guard: their names, and a parser. Where the values come from is up to the caller.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::guard::Guard;
use crate::names::Pattern;
use crate::ports::Ports;

/// What stands for an empty list.
const NONE: &str = "none";

/// Name, default and meaning of each setting.
pub const NAMES: [(&str, &str, &str); 4] = [
    (
        "EGRESS_ALLOW",
        "",
        "Networks or addresses that callbacks may go to although they are not public, such as 127.0.0.0/8,10.1.0.0/16",
    ),
    ("EGRESS_DENY", "", "Networks that callbacks may not go to, whatever else allows them"),
    (
        "EGRESS_HOSTS",
        "",
        "Names that callbacks may go to although they are not of the public DNS, such as receiver,*.internal; * is all. Their addresses must be allowed too",
    ),
    (
        "EGRESS_PORTS",
        "",
        "Ports that callbacks may go to, such as 443,8000-8999; none for no port. Empty: 80, 443 and all from 1024, except the ports of well-known databases and control planes",
    ),
];

/// Parses all settings and finds all mistakes at once. `get` returns the value of a name.
///
/// # Errors
/// The name and the mistake of each wrong setting.
pub fn parse(mut get: impl FnMut(&'static str) -> String) -> Result<Guard, Vec<(&'static str, String)>> {
    let mut mistakes = Vec::new();
    let found = &mut mistakes;
    let values = NAMES.map(|(name, ..)| (name, get(name)));
    let [allow, deny, hosts, ports] = &values;
    let guard = Guard {
        allow: read(allow, found, networks),
        deny: read(deny, found, networks),
        hosts: read(hosts, found, |text| items(text).map(Pattern::parse).collect()),
        ports: read(ports, found, open_ports),
        exempt: None,
    };
    if mistakes.is_empty() { Ok(guard) } else { Err(mistakes) }
}

/// The value of a setting. If it is wrong, adds the mistake and returns the default of the type.
fn read<T: Default>(
    (name, text): &(&'static str, String),
    mistakes: &mut Vec<(&'static str, String)>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> T {
    parse(text).unwrap_or_else(|why| {
        mistakes.push((name, why));
        T::default()
    })
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|item| !item.is_empty() && *item != NONE)
}

fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    items(text).map(network).collect()
}

fn network(text: &str) -> Result<IpNet, String> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => Ok(IpNet::from(address)),
        Err(_) => text.parse::<IpNet>(),
    };
    match network {
        Ok(network) if network.trunc() == network => Ok(network),
        Ok(network) => {
            Err(format!("{text} is one address in a network: write {} or its address alone", network.trunc()))
        }
        Err(_) => Err(format!("{text} is not a network: such as 10.1.0.0/16, fd00::/8 or 10.1.2.3")),
    }
}

fn open_ports(text: &str) -> Result<Ports, String> {
    if text.is_empty() { Ok(Ports::Usual) } else { Ports::parse(items(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &[(&str, &str)]) -> Result<Guard, Vec<(&'static str, String)>> {
        parse(|name| {
            given.iter().find(|(key, _)| *key == name).map_or_else(String::new, |(_, value)| (*value).into())
        })
    }

    #[test]
    fn nothing_is_given_or_each_setting_is() {
        assert_eq!(parsed(&[]).unwrap(), Guard::default());
        let guard = parsed(&[
            ("EGRESS_ALLOW", "127.0.0.0/8, ::1"),
            ("EGRESS_DENY", "127.0.0.2"),
            ("EGRESS_HOSTS", "*.internal,receiver"),
            ("EGRESS_PORTS", "80 8000-8999"),
        ]);
        let guard = guard.unwrap();
        assert_eq!((guard.allow.len(), guard.deny.len(), guard.hosts.len()), (2, 1, 2));
        assert!(guard.ports.contains(8500) && !guard.ports.contains(443));
    }

    #[test]
    fn none_is_an_empty_list() {
        for name in ["EGRESS_ALLOW", "EGRESS_DENY", "EGRESS_HOSTS"] {
            assert_eq!(parsed(&[(name, "none")]).unwrap(), Guard::default(), "{name}");
        }
        let guard = parsed(&[("EGRESS_PORTS", "none")]).unwrap();
        assert!(!(0..=u16::MAX).any(|port| guard.ports.contains(port)));
    }

    #[test]
    fn all_mistakes_are_found_at_once() {
        let wrong = [
            ("EGRESS_ALLOW", "10.0.0.0/33"),
            ("EGRESS_DENY", "10.0.0.1/8"),
            ("EGRESS_HOSTS", "http://receiver"),
            ("EGRESS_PORTS", "https"),
        ];
        let mistakes = parsed(&wrong).unwrap_err();
        assert_eq!(mistakes.iter().map(|(name, _)| *name).collect::<Vec<_>>(), wrong.map(|(name, _)| name));
        for ((_, value), (_, why)) in wrong.iter().zip(&mistakes) {
            assert!(why.starts_with(value), "{why}");
        }
    }
}
