//! The host and port of a callback URL: gives each host one form, without the dot of the root, and checks that an HTTP
//! client can send to them. Whether callbacks may go there is not decided here.

use url::{Host, Url};

/// The longest name, in bytes without the dot of the root, and the longest of its labels (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// What host and port may be, for error messages.
pub(super) const ALLOWED: &str = "a name of labels of 1 to 63 letters, digits, - and _ with a dot between each, - not \
    first, of at most 253 bytes (one in other letters by its IDNA form); an IPv4 address, or an IPv6 address in brackets; \
    a port from 1 to 65535";

/// Scheme and authority of a URL, without the dot of the root: a name with it and without it is the same destination.
pub(super) fn origin(url: &Url) -> String {
    let text = &url[..url::Position::BeforePath];
    match url.host() {
        Some(Host::Domain(name)) if name.ends_with('.') => {
            let port = &url[url::Position::AfterHost..url::Position::BeforePath];
            [&url[..url::Position::BeforeHost], without_root(name), port].concat()
        }
        Some(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)) | None => text.to_owned(),
    }
}

/// A name without the dot of the root. If it ends with two dots they stay, so that `check` sees the empty label.
pub fn without_root(name: &str) -> &str {
    name.strip_suffix('.').filter(|short| !short.is_empty() && !short.ends_with('.')).unwrap_or(name)
}

/// Checks that an HTTP client can send to an origin. The address in brackets of an IPv6 host is not checked again.
///
/// # Errors
/// What is wrong with its host or port.
pub(super) fn check(origin: &str) -> Result<(), String> {
    let (scheme, authority) = origin.split_once("://").unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    if port == "0" {
        return Err("the port is 0, at which nobody listens".to_owned());
    }
    if host.starts_with('[') {
        return Ok(());
    }
    if host.len() > MAX_NAME {
        return Err(format!("the host is {} bytes long", host.len()));
    }
    match host.split('.').find_map(|label| wrong(label, scheme)) {
        Some(what) => Err(format!("the host {host} has {what}")),
        None => Ok(()),
    }
}

/// What is wrong with a label of a name; `None` if nothing is. A `-` at its end is wrong for https alone.
fn wrong(label: &str, scheme: &str) -> Option<String> {
    let is_wrong = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte);
    match label.as_bytes() {
        [] => Some("an empty label: two dots in a row, or one at its start".to_owned()),
        bytes if bytes.len() > MAX_LABEL => Some(format!("a label of {} bytes", bytes.len())),
        [b'-', ..] => Some(format!("a label that begins with -: {label}")),
        // TLS refuses such a name in its handshake, and no certificate is for one.
        [.., b'-'] if scheme == "https" => {
            Some(format!("a label that ends with -, which TLS does not take: {label}"))
        }
        bytes => bytes.iter().find(|byte| is_wrong(byte)).map(|byte| {
            let sign = char::from(*byte);
            let hint =
                if "{}$%".contains(sign) { "; is it of a template that was not filled in?" } else { "" };
            format!("{sign:?}, which is in no name{hint}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::job::Callback;

    fn judged(url: &str) -> Result<(), String> {
        Callback::parse(url).and_then(|callback| callback.check()).map_err(|refused| refused.detail)
    }

    #[test]
    fn a_name_with_the_dot_of_the_root_is_the_same_destination() {
        for (url, expected) in [
            ("http://Merchant.Example./hook", "http://merchant.example/hook"),
            ("https://merchant.example.:8443/?a", "https://merchant.example:8443/?a"),
            ("https://merchant.example.:443", "https://merchant.example/"),
            ("http://receiver.", "http://receiver/"),
            ("http://münchen。/", "http://xn--mnchen-3ya/"),
            ("http://127.0.0.1.:8080/", "http://127.0.0.1:8080/"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            ("http://a.example../", "http://a.example../"),
            ("http://./", "http://./"),
        ] {
            let callback = Callback::parse(url).unwrap();
            assert_eq!(callback.to_string(), expected, "{url}");
            assert_eq!(Callback::parse(expected), Ok(callback), "{url}");
        }
    }

    #[test]
    fn what_no_client_can_send_to_is_refused_with_what_is_wrong() {
        let (label, name) = ("a".repeat(64), ["abcdefg."; 32].concat());
        for (url, part) in [
            ("http://{{merchant}}.example/n", "'{', which is in no name; is it of a template"),
            ("http://${HOST}/n", "'$'"),
            ("http://a\"b.example/", "'\"'"),
            ("http://a`b.example/", "'`'"),
            ("http://%7Ba%7D.example/", "'{'"),
            ("http://shop.example{path}", "'{'"),
            ("http://a!b.example/", "'!'"),
            ("http://a,b/", "','"),
            ("http://a;b/", "';'"),
            ("http://a=b&c/", "'='"),
            ("http://(a)/", "'('"),
            ("http://~a/", "'~'"),
            ("http://*.example/", "'*'"),
            ("http://a'b/", "'\\''"),
            ("http://a+b/", "'+'"),
            ("http://a..b/", "an empty label"),
            ("http://.a.example/", "an empty label"),
            ("http://a.example../", "an empty label"),
            ("http://./", "an empty label"),
            ("http://../", "an empty label"),
            ("http://-a.example/", "begins with -"),
            ("https://a-.example/", "ends with -"),
            (&format!("http://{label}.example/"), "a label of 64 bytes"),
            (&format!("http://{name}example/"), "the host is 263 bytes long"),
            ("http://a.example:0/", "the port is 0"),
            ("http://127.0.0.1:00/", "the port is 0"),
            ("https://[::1]:0/", "the port is 0"),
        ] {
            let detail = judged(url).expect_err(url);
            assert!(detail.contains(part), "{url}: {detail}");
        }
    }

    #[test]
    fn what_clients_send_to_is_taken() {
        let (label, name) = ("a".repeat(63), ["abcdefg."; 31].concat());
        for url in [
            "https://merchant.example/notify?a={b}|c^`",
            "http://merchant.example./",
            "http://my_service:8080/",
            "http://_dmarc.a_b_.example/",
            "http://r3---sn-4g5.example/",
            "http://xn--mnchen-3ya.de/",
            "https://münchen.de/{{path}}",
            "http://食狮.公司.cn/",
            "http://a-.example/",
            "http://1.a/",
            "http://127.1/",
            "http://127.0.0.1:65535/",
            "http://[::ffff:127.0.0.1]:1/",
            &format!("http://{label}.example/"),
            &format!("http://{name}abcd./"),
        ] {
            assert_eq!(judged(url), Ok(()), "{url}");
        }
        assert_eq!(Callback::pull().check(), Ok(()));
    }
}
