//! `PostgresUrl`: a URL of PostgreSQL with the options that libpq documents and that providers hand out, each
//! understood, passed over or refused by its name. Does not connect and reads no file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::{check_login, is_option_name};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// Options that are given to the client as they are.
const PASSED: &[&str] = &[
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];
/// Options that change nothing here: of Kerberos, which is not used, of compression, which is not offered, of the pools
/// of providers, and of other clients.
const PASSED_OVER: &[&str] = &[
    "connection_limit",
    "fallback_application_name",
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "pgbouncer",
    "pool_timeout",
    "prepared_statements",
    "statement_cache_size",
    "sslcompression",
    "sslsni",
    "supa",
    "uselibpqcompat",
];

/// How TLS is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    /// Where the server offers it.
    Prefer,
    /// Always; the certificate must be of a known authority and have the name of the host.
    VerifyFull,
    /// Always; the certificate must be of a known authority.
    VerifyCa,
}

/// Which authorities may sign the certificate of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCertificates {
    System,
    File(PathBuf),
}

/// The settings that a URL gives.
pub struct PostgresUrl {
    /// The settings of the connection by their names in libpq, without those of TLS. One may be the password.
    pub settings: BTreeMap<&'static str, String>,
    pub ssl_mode: SslMode,
    /// `None` if the URL does not say.
    pub roots: Option<RootCertificates>,
    /// The files of a certificate for this client and of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl PostgresUrl {
    /// Whether a text has the scheme of these URLs.
    pub fn has_scheme(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads a URL: login, hosts, database and options. Without `sslmode`, the mode is [`SslMode::Prefer`].
    ///
    /// # Errors
    /// What is wrong. Of the URL, it quotes only `gssencmode=require` and characters that must be percent-encoded.
    pub fn parse(url: &str) -> Result<Self, String> {
        check_login(url)?;
        let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or("must be postgres://user:password@host/database")?;
        if rest.contains('#') {
            return Err("has a #, which must be percent-encoded in a URL: write %23".to_owned());
        }
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = before.split_once('/').unwrap_or((before, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let mut settings = BTreeMap::new();
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        for (name, text) in [("user", user), ("password", password), ("dbname", database)] {
            set(&mut settings, name, decoded(name, text)?);
        }
        let (names, ports) = hosts_and_ports(hosts)?;
        set(&mut settings, "host", names);
        set(&mut settings, "port", ports);
        let mut options = Options { settings, ssl: BTreeMap::new() };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            options.take(option)?;
        }
        options.finish()
    }
}

/// The options, as they are read.
struct Options {
    settings: BTreeMap<&'static str, String>,
    /// The settings of TLS.
    ssl: BTreeMap<&'static str, String>,
}

impl Options {
    fn take(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').ok_or("has an option without a value after ?")?;
        let name = decoded("an option", name)?;
        let value = decoded(if is_option_name(&name) { &name } else { "an option" }, value)?;
        if let Some(known) = PASSED.iter().find(|known| **known == name) {
            set(&mut self.settings, known, passed(known, &value)?);
            return Ok(());
        }
        let refused = |why: &str| Err(format!("has {name}={value}: {why}"));
        match (name.as_str(), value.as_str()) {
            ("sslmode", _) => drop(self.ssl.insert("sslmode", value)),
            ("ssl", "true") => drop(self.ssl.insert("sslmode", "require".to_owned())),
            ("ssl", "false") => drop(self.ssl.insert("sslmode", "disable".to_owned())),
            ("sslrootcert", _) => drop(self.ssl.insert("sslrootcert", value)),
            ("sslcert", _) => drop(self.ssl.insert("sslcert", value)),
            ("sslkey", _) => drop(self.ssl.insert("sslkey", value)),
            ("keepalives_count", _) => {
                set(&mut self.settings, "keepalives_retries", passed("keepalives_count", &value)?);
            }
            ("gssencmode", "disable" | "prefer")
            | ("client_encoding", "auto" | "utf8" | "utf-8" | "UTF8" | "UTF-8")
            | ("ssl_min_protocol_version", "TLSv1" | "TLSv1.1" | "TLSv1.2") => {}
            ("gssencmode", "require") => return refused("connections by Kerberos are not supported"),
            _ if PASSED_OVER.contains(&name.as_str()) => {}
            _ if is_option_name(&name) => {
                return Err(format!(
                    "has the option {name}, or a value of it, that is not supported: leave it out; supported are {}, sslmode, sslrootcert, sslcert and sslkey",
                    PASSED.join(", ")
                ));
            }
            _ => return Err("has an option after ? that is not a name".to_owned()),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<PostgresUrl, String> {
        if !["host", "hostaddr"].iter().any(|name| self.settings.contains_key(name)) {
            return Err("names no host: it must be postgres://user:password@host/database".to_owned());
        }
        let ssl_mode = match self.ssl.get("sslmode").map_or("prefer", String::as_str) {
            "disable" => SslMode::Disable,
            "allow" | "prefer" => SslMode::Prefer,
            "require" | "verify-full" => SslMode::VerifyFull,
            "verify-ca" => SslMode::VerifyCa,
            _ => {
                return Err("has an sslmode that PostgreSQL does not have: it must be disable, allow, prefer, require, verify-ca or verify-full"
                    .to_owned());
            }
        };
        let roots = self.ssl.remove("sslrootcert").map(|file| match file.as_str() {
            "system" => RootCertificates::System,
            _ => RootCertificates::File(file.into()),
        });
        let identity = match (self.ssl.remove("sslcert"), self.ssl.remove("sslkey")) {
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (None, None) => None,
            (Some(_), None) => return Err("has sslcert and no sslkey: give both".to_owned()),
            (None, Some(_)) => return Err("has sslkey and no sslcert: give both".to_owned()),
        };
        Ok(PostgresUrl { settings: self.settings, ssl_mode, roots, identity })
    }
}

/// Checks the value of an option and returns the client's word for it: `read-write` for `primary`, `read-only` for
/// `standby`, other values unchanged. The error does not quote the value.
fn passed(name: &str, value: &str) -> Result<String, String> {
    let is_one_of = |allowed: &[&str]| {
        let allow = || format!("has a {name} that is not supported: it must be {}", allowed.join(", "));
        if allowed.contains(&value) { Ok(value.to_owned()) } else { Err(allow()) }
    };
    match name {
        "channel_binding" => is_one_of(&["disable", "prefer", "require"]),
        "load_balance_hosts" => is_one_of(&["disable", "random"]),
        "sslnegotiation" => is_one_of(&["postgres", "direct"]),
        "target_session_attrs" => match value {
            "primary" => Ok("read-write".to_owned()),
            "standby" => Ok("read-only".to_owned()),
            _ => is_one_of(&["any", "read-write", "read-only", "primary", "standby"]),
        },
        "port" if value.split(',').all(|port| port.is_empty() || port.parse::<u16>().is_ok()) => {
            Ok(value.to_owned())
        }
        "hostaddr" if value.split(',').all(|address| address.parse::<std::net::IpAddr>().is_ok()) => {
            Ok(value.to_owned())
        }
        "connect_timeout"
        | "tcp_user_timeout"
        | "keepalives"
        | "keepalives_idle"
        | "keepalives_interval"
        | "keepalives_count"
            if value.parse::<u32>().is_ok() =>
        {
            Ok(value.to_owned())
        }
        "port" | "hostaddr" => Err(format!("has a {name} that cannot be read")),
        _ if name.starts_with("keepalives") || name.ends_with("_timeout") => {
            Err(format!("has a {name} that is not a whole number"))
        }
        _ => Ok(value.to_owned()),
    }
}

/// Splits hosts into a list of names, percent-decoded and without brackets, and a list of ports, 5432 by default. A
/// socket's directory is a host too. An empty text gives empty lists. Fails if a port is not a number.
fn hosts_and_ports(text: &str) -> Result<(String, String), String> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for one in text.split(',').filter(|_| !text.is_empty()) {
        let (host, port) = match one.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, rest)) => (address, rest.strip_prefix(':').unwrap_or(rest)),
            None => one.split_once(':').unwrap_or((one, "")),
        };
        let port = if port.is_empty() { "5432" } else { port };
        ports.push(port.parse::<u16>().map_err(|_| "has a port that is not a number")?.to_string());
        hosts.push(decoded("a host", host)?);
    }
    Ok((hosts.join(","), ports.join(",")))
}

fn set(settings: &mut BTreeMap<&'static str, String>, name: &'static str, value: String) {
    if !value.is_empty() {
        settings.insert(name, value);
    }
}

fn decoded(what: &str, text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8().ok().filter(|text| !text.contains('\0'));
    text.map(Into::into).ok_or_else(|| format!("has {what} that is not text in UTF-8 once it is decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_providers_are_understood() {
        for (url, mode, expected) in [
            ("postgres://u:p%40s@ec2.compute.amazonaws.com:5432/d1", SslMode::Prefer, ("password", "p@s")),
            (
                "postgresql://u:p@ep-cool.neon.tech/db?sslmode=require&channel_binding=require",
                SslMode::VerifyFull,
                ("channel_binding", "require"),
            ),
            (
                "postgresql://u:p@h/db?options=endpoint%3Dep-cool&sslmode=verify-full",
                SslMode::VerifyFull,
                ("options", "endpoint=ep-cool"),
            ),
            (
                "postgres://postgres.ref:p@aws-0.pooler.supabase.com:6543/postgres?pgbouncer=true",
                SslMode::Prefer,
                ("user", "postgres.ref"),
            ),
            (
                "postgres://u:p@h.rds.amazonaws.com/d?sslmode=verify-ca&sslrootcert=/etc/rds.pem",
                SslMode::VerifyCa,
                ("dbname", "d"),
            ),
            ("postgres://u:p@a:1,[::1]:2/d?target_session_attrs=primary", SslMode::Prefer, ("host", "a,::1")),
            (
                "postgres:///d?host=/run/postgresql&gssencmode=disable&sslmode=disable",
                SslMode::Disable,
                ("host", "/run/postgresql"),
            ),
            ("postgres://u@%2Frun%2Fpostgresql/d?sslmode=allow", SslMode::Prefer, ("port", "5432")),
            (
                "postgres://h/d?user=me@server&pass%77ord=a%40b&ssl=true",
                SslMode::VerifyFull,
                ("password", "a@b"),
            ),
        ] {
            let read = PostgresUrl::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
            assert_eq!(read.ssl_mode, mode, "{url}");
            assert_eq!(read.settings.get(expected.0).map(String::as_str), Some(expected.1), "{url}");
        }
        let read =
            PostgresUrl::parse("postgres://h/d?sslrootcert=system&sslcert=c.pem&sslkey=k.pem").unwrap();
        assert_eq!(read.roots, Some(RootCertificates::System));
        assert_eq!(read.identity, Some(("c.pem".into(), "k.pem".into())));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_value_is_quoted() {
        for (url, expected) in [
            ("postgres://u:s3cret#x@h/d", "%23 for #"),
            ("postgres://h/d?password=s3cret&sslmode=verify-ful", "verify-full"),
            ("postgres://h/d?password=s3cret&sslmod=require", "sslmod"),
            ("postgres:///s3cret", "host"),
            ("postgres://h/d?sslpassword=s3cret", "sslpassword"),
            ("postgres://h/d?service=s3cret", "service"),
            ("postgres://h/d?S3cret=s3cret", "not a name"),
            ("postgres://h/d?s3cret", "without a value"),
            ("postgres://u:s3cret@h:port/d", "port"),
            ("postgres://u:s3cret", "port"),
            ("postgres://h/d?sslcert=s3cret", "sslkey"),
            ("postgres://h/d?connect_timeout=s3cret", "connect_timeout"),
            ("postgres://h/d?gssencmode=require", "Kerberos"),
            ("postgres://h/d?password=%ff", "password"),
        ] {
            let why = PostgresUrl::parse(url).err().unwrap_or_else(|| panic!("{url} is read"));
            assert!(why.contains(expected) && !why.contains("s3cret"), "{url}: {why}");
        }
    }
}
