//! The settings of access control: the root key, the host names that requests may have, and whether other machines are
//! served without a key.

use std::net::SocketAddr;

use ringback_secrets::{ROOT_KEY, RootKey};
use ringback_service::{Lookup, Setting};

const HOSTS: &str = "ALLOWED_HOSTS";
const INSECURE: &str = "INSECURE";
const LOOPBACK: &str = "localhost,127.0.0.1,[::1]";

pub(crate) const NAMES: &[Setting] = &[
    Setting::secret(ROOT_KEY),
    Setting::new(
        HOSTS,
        LOOPBACK,
        "Host names and addresses, without ports, that the Host header of a request may have while there is no root key. If the API listens on an address that is not loopback, the header is checked only if this is set",
    ),
    Setting::new(
        INSECURE,
        "0",
        "1 serves other machines without a root key and without client certificates: whoever reaches the API may do everything",
    ),
];

/// How access is limited.
#[derive(Clone, Debug)]
pub struct Access {
    /// With it each call needs a key.
    pub root: Option<RootKey>,
    /// The hosts that a request may name while there is no root key; `None` for all.
    pub hosts: Option<Vec<String>>,
}

impl Access {
    /// Everything is allowed to everybody.
    #[must_use]
    pub const fn open() -> Self {
        Self { root: None, hosts: None }
    }

    /// Reads the settings. A `listen` address that is not loopback is a mistake unless there is a root key, client
    /// certificates are required (`has_client_ca`), or `INSECURE` is 1.
    pub(crate) fn load(lookup: &mut Lookup, listen: SocketAddr, has_client_ca: bool) -> Self {
        let (key, ..) = ROOT_KEY;
        let is_given = !lookup.text(key).is_empty();
        let root = lookup.group(|get| parse_root(&get(key)).map_err(|why| vec![(key, why)]), || None);
        let hosts = lookup.text(HOSTS);
        let is_insecure = lookup.group(|get| parse_switch(&get(INSECURE)), bool::default);
        let is_local = listen.ip().is_loopback();
        if !is_local && !is_given && !has_client_ca && !is_insecure {
            lookup.reject(
                "API_LISTEN",
                format!(
                    "{listen} is reached by other machines, and whoever reaches it may do everything: set RINGBACK_ROOT_KEY ({}), ask for client certificates with RINGBACK_TLS_CLIENT_CA, or set RINGBACK_INSECURE=1 if something before the API keeps strangers out",
                    RootKey::ALLOWED
                ),
            );
        }
        // Elsewhere than on this machine nobody knows by which names it is called, unless the operator says.
        let are_known = is_local || hosts != LOOPBACK;
        let hosts = hosts.split([',', ' ']).filter(|host| !host.is_empty());
        let hosts: Vec<_> = hosts.map(|host| bare(host).to_ascii_lowercase()).collect();
        Self { root, hosts: are_known.then_some(hosts) }
    }
}

fn parse_root(text: &str) -> Result<Option<RootKey>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

fn parse_switch(text: &str) -> Result<bool, Vec<(&'static str, String)>> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(vec![(INSECURE, "must be 0 or 1".to_owned())]),
    }
}

/// A host without the brackets of an IPv6 address.
pub(super) fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use ringback_service::settings::load_from;

    use crate::config::Config;

    const ROOT: &str = "0123456789abcdef0123456789abcdef";

    fn mistakes(variables: &[(&str, &str)]) -> Vec<String> {
        load_from(Config::SETTINGS, variables, Config::load).1
    }

    #[test]
    fn other_machines_are_served_with_a_root_key_or_on_request_only() {
        let open = ("API_LISTEN", "0.0.0.0:7411");
        let refused = mistakes(&[open]);
        assert!(refused.len() == 1 && refused[0].contains("RINGBACK_ROOT_KEY"), "{refused:?}");
        assert_eq!(mistakes(&[("API_LISTEN", "[::1]:7411")]), [""; 0]);
        assert_eq!(mistakes(&[open, ("INSECURE", "1")]), [""; 0]);
        assert_eq!(mistakes(&[open, ("ROOT_KEY", ROOT)]), [""; 0]);
        assert_eq!(mistakes(&[open, ("INSECURE", "yes")]).len(), 2);
    }

    #[test]
    fn a_short_root_key_is_refused_and_not_shown() {
        let short = mistakes(&[("API_LISTEN", "0.0.0.0:7411"), ("ROOT_KEY", "hunter2hunter2")]);
        assert!(short.len() == 1 && short[0].contains("32 to 256"), "{short:?}");
        assert!(!short[0].contains("hunter2"), "{short:?}");
    }

    #[test]
    fn hosts_count_on_this_machine_and_where_they_are_named() {
        let (config, _) =
            load_from(Config::SETTINGS, &[("ALLOWED_HOSTS", "Ringback.local [::1]")], Config::load);
        assert_eq!(config.access.hosts, Some(vec!["ringback.local".to_owned(), "::1".to_owned()]));
        let open = [("API_LISTEN", "0.0.0.0:7411"), ("INSECURE", "1")];
        let (config, _) = load_from(Config::SETTINGS, &open, Config::load);
        assert_eq!(config.access.hosts, None);
        let named = [open[0], open[1], ("ALLOWED_HOSTS", "ringback.example")];
        let (config, _) = load_from(Config::SETTINGS, &named, Config::load);
        assert_eq!(config.access.hosts, Some(vec!["ringback.example".to_owned()]));
    }
}
