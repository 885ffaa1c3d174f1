//! URLs of stores and databases: shows them without secrets, alone or within a message, and checks that their logins
//! are percent-encoded. Each part that is not known to be harmless is hidden. `postgres` reads the options of
//! PostgreSQL URLs. Nothing here connects.

mod postgres;

pub use self::postgres::{PostgresUrl, RootCertificates, SslMode};

pub const HIDDEN: &str = "***";

/// Options of URLs whose values are shown, unless they have unusual characters.
const HARMLESS: &[&str] = &[
    "application_name",
    "channel_binding",
    "connect_timeout",
    "db",
    "dbname",
    "gssencmode",
    "host",
    "hostaddr",
    "port",
    "protocol",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "user",
];
const SECRET: &[&str] = &["options", "password", "sentinel_login", "sslpassword"];

/// Returns a URL with `***` in place of its password, a user without a password, option values not known to be
/// harmless, and the fragment. Unusual users and paths are hidden too, and all behind the scheme if the hosts cannot be
/// read. Of texts without `://`, only `embedded:path` and `sqlite:path` are shown.
pub fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return shown_file(text);
    };
    let Parts { authority, tail } = Parts::of(rest);
    let (login, hosts) = authority.rsplit_once('@').map_or((None, authority), |(login, h)| (Some(login), h));
    if is_login_cut(authority, tail) || !hosts.split(',').all(is_host) {
        return format!("{scheme}://{HIDDEN}");
    }
    let login = match login.map(|login| login.split_once(':')) {
        None => String::new(),
        Some(Some((user, _password))) => format!("{}:{HIDDEN}@", if_plain(user)),
        Some(None) => format!("{HIDDEN}@"),
    };
    let (tail, fragment) = tail.split_once('#').map_or((tail, None), |(tail, end)| (tail, Some(end)));
    let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query)));
    let path = if is_plain(path) { path.to_owned() } else { format!("/{HIDDEN}") };
    let query = query.map_or_else(String::new, |query| format!("?{}", shown_options(query)));
    let fragment = fragment.map_or_else(String::new, |_| format!("#{HIDDEN}"));
    format!("{scheme}://{login}{hosts}{path}{query}{fragment}")
}

/// Returns a message that may quote a URL without the password, a user that has none, and option values that may be
/// secret. The login is taken to reach from the first `://` to the last `@` of the message.
pub fn shown_in_text(text: &str) -> String {
    let hidden = text.split_once("://").and_then(|(scheme, rest)| {
        let (login, host) = rest.rsplit_once('@')?;
        let user = login.split_once(':').map_or(HIDDEN.to_owned(), |(user, _)| format!("{user}:{HIDDEN}"));
        Some(format!("{scheme}://{user}@{host}"))
    });
    let text = hidden.unwrap_or_else(|| text.to_owned());
    if !text.contains("://") {
        return text;
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',');
    let words = text.split_inclusive(is_end).map(|word| {
        let end = word.trim_end_matches(is_end);
        let (before, query) = match end.split_once('?') {
            Some((before, query)) if !query.is_empty() => (before, query),
            _ => return word.to_owned(),
        };
        format!("{before}?{}{}", shown_options(query), &word[end.len()..])
    });
    words.collect()
}

/// Checks that the user and the password of a URL contain no character that must be percent-encoded: one that would end
/// them, or a `%` without two hexadecimal digits. A text without `://` passes.
///
/// # Errors
/// Lists these characters and what to write in their place. The message contains nothing else of the URL.
pub fn check_login(url: &str) -> Result<(), String> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(()) };
    let Parts { authority, tail } = Parts::of(rest);
    let is_list = matches!(scheme, "redis-cluster" | "redis-sentinel" | "rediss-cluster" | "rediss-sentinel");
    let mut found = Vec::new();
    if is_login_cut(authority, tail) {
        let login = &rest[..rest.rfind('@').unwrap_or(0)];
        add_unencoded(login, &mut found);
    } else if is_list {
        let mut is_cut = false;
        for one in authority.split(',') {
            match one.rsplit_once('@') {
                Some((login, _)) => {
                    if is_cut {
                        found.push(',');
                    }
                    add_unencoded(login, &mut found);
                }
                None => is_cut |= !is_host(one),
            }
        }
    } else if let Some((login, _)) = authority.rsplit_once('@') {
        add_unencoded(login, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Ok(());
    }
    let each = found.iter().map(|c| format!("%{:02X} for {c}", u32::from(*c))).collect::<Vec<_>>();
    Err(format!(
        "its user or password has characters that must be percent-encoded in a URL: write {}",
        each.join(", ")
    ))
}

struct Parts<'a> {
    authority: &'a str,
    tail: &'a str,
}

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Self {
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        Self { authority, tail }
    }
}

/// Whether an unencoded `/`, `?` or `#` in the login ends the authority too early, so that the `@` of the login is in
/// `tail`. An `@` in the value of a known option does not count, if the authority has valid hosts.
fn is_login_cut(authority: &str, tail: &str) -> bool {
    let Some(last) = tail.rfind('@') else { return false };
    let before = &tail[..last];
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    let in_option = before.split_once('?').is_some_and(|(path, query)| {
        let name = query.rsplit('&').next().and_then(|option| option.split_once('='));
        !path.contains(['@', '#']) && name.is_some_and(|(name, _)| is_option(name))
    });
    !(in_option && hosts.split(',').all(is_host))
}

/// Adds to `found` the characters of a login that must be percent-encoded and are not.
fn add_unencoded(login: &str, found: &mut Vec<char>) {
    for (at, c) in login.char_indices() {
        let is_encoded = || {
            let digits = login.as_bytes().get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        if matches!(c, '#' | '/' | '?' | '[' | ']' | '@') || (c == '%' && !is_encoded()) {
            found.push(c);
        }
    }
}

/// The options of a URL, joined by `&`, with `***` in place of values that may be secret and of names that may be.
fn shown_options(query: &str) -> String {
    let shown = |option: &str| match option.split_once('=') {
        Some((name, value)) if HARMLESS.contains(&name) && is_plain(value) => option.to_owned(),
        Some((name, _)) if is_option_name(name) => format!("{name}={HIDDEN}"),
        _ => HIDDEN.to_owned(),
    };
    query.split('&').map(shown).collect::<Vec<_>>().join("&")
}

/// Returns a text without `://`: a file (`embedded:path`, `sqlite:path` without `?` and `@`) as it is, others as `***`.
fn shown_file(text: &str) -> String {
    match text.split_once(':') {
        None if text.is_empty() => String::new(),
        Some(("embedded" | "sqlite", path)) if !path.contains(['?', '@']) => text.to_owned(),
        _ => HIDDEN.to_owned(),
    }
}

fn if_plain(text: &str) -> &str {
    if is_plain(text) { text } else { HIDDEN }
}

/// Whether a text has only ASCII letters, digits and the characters `._~/%:,+-`.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~/%:,+-".contains(&b))
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn is_option(name: &str) -> bool {
    HARMLESS.contains(&name) || SECRET.contains(&name)
}

/// Whether a text can be the name of an option, known or misspelt: at most 32 lower-case letters and `_`.
fn is_option_name(name: &str) -> bool {
    is_option(name) || (name.len() <= 32 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
}

/// Whether a text is a host name or address with or without a port. The host may be empty.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-%".contains(&b));
    let is_address =
        |inner: &str| inner.bytes().all(|b| b.is_ascii_hexdigit() || b":.".contains(&b)) && !inner.is_empty();
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    let inner = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    is_port && inner.map_or_else(|| is_name(host), is_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmless_is_shown_and_nothing_else() {
        for (url, expected) in [
            ("redis://app:s3cret@db:6379/0", "redis://app:***@db:6379/0"),
            ("rediss://:s3cret@db", "rediss://:***@db"),
            ("redis://s3cret@db", "redis://***@db"),
            ("redis://:s3:cret@db", "redis://:***@db"),
            ("redis://app:a/b@c, d@db", "redis://***"),
            ("redis://app:s3cret", "redis://***"),
            ("redis://app:s3cret#x", "redis://***"),
            ("redis://h/#s3cret", "redis://h/#***"),
            ("redis:s3cret@h", "***"),
            ("host=h password=s3cret", "***"),
            ("redis-cluster://:s3cret@a:1,:s3cret@[::1]:2", "redis-cluster://:***@[::1]:2"),
            (
                "redis-sentinel://:s3cret@a,b/jobs?sentinel_login=:s3cret&db=1",
                "redis-sentinel://:***@a,b/jobs?sentinel_login=***&db=1",
            ),
            ("redis-sentinel://a/m?sentinel_login=u:p@x", "redis-sentinel://a/m?sentinel_login=***"),
            ("postgres://h/d?user=u&password=s3cret", "postgres://h/d?user=u&password=***"),
            ("postgres://h/d?pass%77ord=s3cret&sslmode=require", "postgres://h/d?***&sslmode=require"),
            ("postgres://h/d?sslmode=require;password=s3cret", "postgres://h/d?sslmode=***"),
            ("postgres://h/d?sslmod=s3cret&S3cret", "postgres://h/d?sslmod=***&***"),
            ("postgres://h/d?password=s3c@ret", "postgres://h/d?password=***"),
            ("postgres://u:a?b=s3c@ret", "postgres://***"),
            ("embedded:./data", "embedded:./data"),
            ("sqlite:./a.db", "sqlite:./a.db"),
            ("sqlite:./a.db?key=s3cret", "***"),
            ("", ""),
            ("redis://db:6379", "redis://db:6379"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
            let text = shown_in_text(&format!("cannot read \"{url}\""));
            assert!(!url.contains("://") || !text.contains("s3cret@"), "{text}");
        }
    }

    #[test]
    fn messages_keep_their_words_and_lose_passwords() {
        for (text, expected) in [
            ("must be postgres://user:password@host/database", "must be postgres://user:***@host/database"),
            ("for url (http://h/v1?token=s3cret): refused", "for url (http://h/v1?token=***): refused"),
            ("redis://a:b@c or redis://d:e@f", "redis://a:***@f"),
            ("may not be empty?", "may not be empty?"),
        ] {
            assert_eq!(shown_in_text(text), expected);
        }
    }

    #[test]
    fn a_login_that_is_not_encoded_names_each_character_and_nothing_else_of_it() {
        for (url, expected) in [
            ("redis://user:1234#x@h:1", &["%23 for #"][..]),
            ("redis://:a/b@h", &["%2F for /"]),
            ("redis://user:s3cret?x@h", &["%3F for ?"]),
            ("redis://user:s3?cre=t@h", &["%3F for ?"]),
            ("redis://user:s3@cret@h", &["%40 for @"]),
            ("redis://user:50%off@h", &["%25 for %"]),
            ("redis://user:a[b]@h", &["%5B for [", "%5D for ]"]),
            ("redis-sentinel://:1234#x@h:1/m", &["%23 for #"]),
            ("redis-cluster://u:a,b@h:1,i:2", &["%2C for ,"]),
            ("postgres://me@server:s3cret@h/d", &["%40 for @"]),
            ("postgres://u:p@s#s@h/d?sslmode=require", &["%23 for #", "%40 for @"]),
        ] {
            let why = check_login(url).unwrap_err();
            assert!(expected.iter().all(|one| why.contains(one)), "{url}: {why}");
            assert!(!why.contains("s3cret") && !why.contains("1234"), "{url}: {why}");
        }
        for url in [
            "redis://u:p%40%23@h:1/0",
            "redis-cluster://u:p@a:1,u:p@[::1]:2",
            "redis-sentinel://a,b/m?sentinel_login=u:p@x",
            "postgres://h/d?user=me@server&password=a@b",
            "rediss://h/#insecure",
            "embedded:./a@b",
        ] {
            assert_eq!(check_login(url), Ok(()), "{url}");
        }
    }
}
