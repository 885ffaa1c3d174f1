//! The headers that identify the command line to a server: the key and the tenant, sent with each call. The key is
//! never shown. Over plain http it is only sent to this machine, unless the user allows more.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use ringback_core::access::{TENANT_HEADER, TENANT_HEADER_NONE};
use ringback_core::job::Tenant;

use crate::args::values::wrong;

const KEY: &str = "RINGBACK_KEY";
/// The variable that allows to send the key over plain http to other machines.
const OVER_HTTP: &str = "RINGBACK_KEY_OVER_HTTP";
/// The longest key, which is the longest root key.
const MAX_KEY: usize = 256;

/// What is sent with each call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    key: Option<HeaderValue>,
    tenant: Option<HeaderValue>,
}

impl Access {
    /// Reads the key from `RINGBACK_KEY`, for calls to a server about `tenant`.
    ///
    /// # Errors
    /// A usage error, which does not show the key, if a variable is wrong or the key must not be sent to the server.
    pub(crate) fn of_environment(server: &Url, tenant: Option<&str>) -> Result<Self, clap::Error> {
        let variable = |name| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
        let is_sent_in_clear = match variable(OVER_HTTP).as_str() {
            "" | "0" => false,
            "1" => true,
            _ => return Err(wrong(format!("{OVER_HTTP} is 0 or 1"))),
        };
        let access = Self::new(&variable(KEY), tenant)?;
        if access.key.is_some() && server.scheme() == "http" && !is_local(server) && !is_sent_in_clear {
            return Err(wrong(format!(
                "{KEY} is not sent to {}, because others could read it on the way: name the server with https, or \
                 set {OVER_HTTP}=1 if you trust the network between",
                server.as_str().trim_end_matches('/')
            )));
        }
        Ok(access)
    }

    fn new(key: &str, tenant: Option<&str>) -> Result<Self, clap::Error> {
        let key = Some(key).filter(|key| !key.is_empty()).map(bearer).transpose()?;
        Ok(Self { key, tenant: tenant.map(header_value) })
    }

    /// Adds the headers to those of a call. A tenant that the call has already stays.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        if let Some(tenant) = &self.tenant {
            headers.entry(tenant_header()).or_insert_with(|| tenant.clone());
        }
    }
}

pub(crate) const fn tenant_header() -> HeaderName {
    HeaderName::from_static(TENANT_HEADER)
}

/// The value of the tenant header for a tenant, or for what belongs to none.
pub(crate) fn tenant_value(tenant: Option<&Tenant>) -> HeaderValue {
    header_value(tenant.map_or(TENANT_HEADER_NONE, Tenant::as_str))
}

fn header_value(tenant: &str) -> HeaderValue {
    HeaderValue::from_str(tenant).expect("the name of a tenant is visible ASCII")
}

fn bearer(key: &str) -> Result<HeaderValue, clap::Error> {
    let is_key = key.len() <= MAX_KEY && key.bytes().all(|byte| byte.is_ascii_graphic());
    let value = HeaderValue::try_from(format!("Bearer {key}")).ok().filter(|_| is_key);
    let mut value = value.ok_or_else(|| {
        wrong(format!(
            "{KEY} has no key: a key has at most {MAX_KEY} visible ASCII characters, without spaces"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Whether a server is on this machine: a loopback address, or the name `localhost`. No name is resolved.
fn is_local(server: &Url) -> bool {
    match server.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_this_machine() {
        for (server, expected) in [
            ("http://127.0.0.1:7411", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost:7411", true),
            ("http://LOCALHOST", true),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
            ("http://[::]", false),
        ] {
            assert_eq!(is_local(&server.parse().unwrap()), expected, "{server}");
        }
    }

    #[test]
    fn a_key_is_sent_and_not_shown() {
        let access = Access::new("rbk_secret", Some("acme")).unwrap();
        assert!(!format!("{access:?}").contains("rbk_"), "{access:?}");
        let mut headers = HeaderMap::new();
        access.add_to(&mut headers);
        assert!(headers[AUTHORIZATION] == "Bearer rbk_secret" && headers[TENANT_HEADER] == "acme");
        assert!(!format!("{headers:?}").contains("rbk_"), "{headers:?}");
        let mut headers = HeaderMap::from_iter([(tenant_header(), tenant_value(None))]);
        access.add_to(&mut headers);
        assert_eq!(headers.get_all(TENANT_HEADER).iter().collect::<Vec<_>>(), ["~none"]);
    }

    #[test]
    fn what_no_header_can_have_is_no_key_and_is_not_shown() {
        for wrong in ["rbk secret", "rbk_secret\n", "rbk_sécret", &"s".repeat(257)] {
            let error = Access::new(wrong, None).unwrap_err().to_string();
            assert!(
                error.contains("RINGBACK_KEY") && !error.contains("ecret") && !error.contains("sss"),
                "{error}"
            );
        }
        let mut headers = HeaderMap::new();
        Access::new("", None).unwrap().add_to(&mut headers);
        assert!(headers.is_empty());
    }
}
