//! The settings of a store, the same for every process that uses it: their names and defaults, and a
//! parser. Where the values come from is up to the caller.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use ringback_core::duration::parse_duration;
use ringback_core::store_types::{MAX_SHARDS, Options, Profile, StoreTls};
use ringback_store_embedded::SCHEME;
use ringback_store_redis::{Address, tls_files};

/// Name, default and meaning of each setting.
pub const NAMES: [(&str, &str, &str); 14] = [
    (
        "STORE",
        "redis://127.0.0.1:6379",
        "Where jobs are kept: redis://, rediss:// (TLS), redis-cluster://a:1,b:2,c:3 with some of the nodes, redis-sentinel://a,b,c/name with the sentinels and the name of the master, or embedded:./directory, which one process at a time can open. All processes of an installation need the same",
    ),
    (
        "STORE_CA_FILE",
        "",
        "File (PEM) with the certificate authorities that a rediss:// server is trusted by; empty: those of the system. Read at the start",
    ),
    (
        "STORE_CERT",
        "",
        "File (PEM) with the client certificate for a rediss:// server, followed by its intermediate certificates; needs the key too. Read at the start",
    ),
    ("STORE_KEY", "", "File (PEM) with the private key of that certificate, without a passphrase"),
    (
        "PREFIX",
        "ringback",
        "What every key and channel begins with, or the name of the file of an embedded store, 1 to 32 of A-Z a-z 0-9 . _ -; several installations on one Redis need different ones",
    ),
    (
        "SHARDS",
        "4",
        "Number of shards, 1 to 256; more for a cluster or a machine with many cores. Fixed at the first start: another number later is refused with exit status 1",
    ),
    (
        "KEEP_DONE",
        "1h",
        "How long done and cancelled jobs are remembered, at least 1m: meanwhile submitting one again changes nothing, afterwards its id is free. Feeds need longer than the default. Use the same everywhere",
    ),
    (
        "KEEP_DONE_MIB",
        "256",
        "About how many MiB the tombstones of done and cancelled jobs may take in all, 1 to 1048576; beyond it the oldest are evicted early, but never within two minutes. Use the same everywhere",
    ),
    (
        "KEEP_DEAD",
        "30d",
        "How long dead jobs are kept before a carrier evicts them, at least 1m. Only carriers act on it; give all of them the same",
    ),
    (
        "ATTEMPT_LOG",
        "failed",
        "Which attempts are logged: failed (and the success of a job that needed more than one), all, or off; of pull jobs only failures. Use the same everywhere",
    ),
    ("KEEP_ATTEMPTS", "7d", "How long logged attempts are kept, at least 1m. Use the same everywhere"),
    (
        "KEEP_ATTEMPTS_MIB",
        "64",
        "How many MiB logged attempts may take in all, 0 to 1048576, each shard an equal part; beyond it the oldest are evicted early, and 0 keeps none. Use the same everywhere",
    ),
    (
        "KEEP_FREE_MIB",
        "64",
        "How many MiB an embedded store leaves free on its disk, 0 to 1048576: with less, submits are refused and attempts are not logged; 0 means no limit",
    ),
    (
        "DURABILITY",
        "",
        "How safely the store has to keep data: memory, everysec, disk or replicated. A weaker store is refused at the start with exit status 1, and takes no new jobs if it becomes weaker later; empty takes what is found. Use the same everywhere",
    ),
];

const MINUTE: Duration = Duration::from_secs(60);
/// The most MiB of a setting: a tebibyte.
const MAX_MIB: u32 = 1024 * 1024;

/// Parses all settings, reads the files for TLS, and finds all mistakes at once. `get` returns the value of a name.
///
/// # Errors
/// The name and the mistake of each wrong setting.
pub fn parse(
    mut get: impl FnMut(&'static str) -> String,
    call_timeout: Duration,
) -> Result<Options, Vec<(&'static str, String)>> {
    let mut mistakes = Vec::new();
    let found = &mut mistakes;
    let options = Options {
        url: read("STORE", &mut get, found, store),
        tls: tls(&mut get, found),
        prefix: read("PREFIX", &mut get, found, prefix),
        shards: read("SHARDS", &mut get, found, |text| number(text, &(1..=MAX_SHARDS))),
        keep_done: read("KEEP_DONE", &mut get, found, at_least_a_minute),
        keep_done_mib: read("KEEP_DONE_MIB", &mut get, found, |text| number(text, &(1..=MAX_MIB))),
        keep_dead: read("KEEP_DEAD", &mut get, found, at_least_a_minute),
        attempts: read("ATTEMPT_LOG", &mut get, found, str::parse),
        keep_attempts: read("KEEP_ATTEMPTS", &mut get, found, at_least_a_minute),
        keep_attempts_mib: read("KEEP_ATTEMPTS_MIB", &mut get, found, |text| number(text, &(0..=MAX_MIB))),
        keep_free_mib: read("KEEP_FREE_MIB", &mut get, found, |text| number(text, &(0..=MAX_MIB))),
        durability: read("DURABILITY", &mut get, found, durability),
        call_timeout,
    };
    if options.tls != StoreTls::default() && !uses_tls(&options.url) {
        let why = "is for rediss://, and RINGBACK_STORE has no TLS";
        let names = ["STORE_CA_FILE", "STORE_CERT"].into_iter().filter(|name| !get(name).is_empty());
        mistakes.extend(names.map(|name| (name, why.to_owned())));
    }
    if options.durability == Some(Profile::Replicated) && options.url.starts_with(SCHEME) {
        mistakes.push(("DURABILITY", "an embedded store has no replicas; use disk".to_owned()));
    }
    if mistakes.is_empty() { Ok(options) } else { Err(mistakes) }
}

/// The value of a setting. If it is wrong, adds the mistake and returns the default of the type.
fn read<T: Default>(
    name: &'static str,
    get: impl FnOnce(&'static str) -> String,
    mistakes: &mut Vec<(&'static str, String)>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> T {
    parse(&get(name)).unwrap_or_else(|why| {
        mistakes.push((name, why));
        T::default()
    })
}

pub fn defaults(call_timeout: Duration) -> Options {
    let default = |name| NAMES.into_iter().find(|n| n.0 == name).map_or_else(String::new, |n| n.1.to_owned());
    parse(default, call_timeout).expect("the defaults are valid")
}

fn store(text: &str) -> Result<String, String> {
    match text.strip_prefix(SCHEME) {
        Some("") => Err("embedded: needs a directory, such as embedded:./ringback-data".to_owned()),
        Some(_) => Ok(text.to_owned()),
        None => Address::parse(text).map(|_| text.to_owned()),
    }
}

/// Whether settings of TLS are allowed with a store: one that is reached over TLS, or an embedded one. That ignores
/// them, because processes may share their settings.
fn uses_tls(url: &str) -> bool {
    url.starts_with("rediss://") || url.starts_with(SCHEME)
}

/// Reads the files for TLS. Adds mistakes for files that cannot be used, are missing, or do not fit each other.
fn tls(get: &mut impl FnMut(&'static str) -> String, mistakes: &mut Vec<(&'static str, String)>) -> StoreTls {
    let file = |read: fn(&str) -> Result<Vec<u8>, String>| {
        move |path: &str| if path.is_empty() { Ok(None) } else { read(path).map(Some) }
    };
    let authorities = read("STORE_CA_FILE", &mut *get, mistakes, file(tls_files::authorities));
    let certificate = read("STORE_CERT", &mut *get, mistakes, file(tls_files::certificate));
    let key = read("STORE_KEY", &mut *get, mistakes, file(tls_files::key));
    let is_set = [get("STORE_CERT"), get("STORE_KEY")].map(|path| !path.is_empty());
    match is_set {
        [true, false] => mistakes.push(("STORE_CERT", "needs RINGBACK_STORE_KEY, which is empty".to_owned())),
        [false, true] => mistakes.push(("STORE_KEY", "needs RINGBACK_STORE_CERT, which is empty".to_owned())),
        [true, true] | [false, false] => {}
    }
    let identity = certificate.zip(key);
    if let Some(Err(why)) = identity.as_ref().map(|(certificate, key)| tls_files::fit(certificate, key)) {
        mistakes.push(("STORE_KEY", why));
    }
    StoreTls { authorities, identity }
}

fn durability(text: &str) -> Result<Option<Profile>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

fn prefix(text: &str) -> Result<String, String> {
    let inside = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let fits = inside && (1..=32).contains(&text.len());
    if fits { Ok(text.to_owned()) } else { Err("must be 1 to 32 of A-Z a-z 0-9 . _ -".to_owned()) }
}

fn number<N: FromStr + PartialOrd + Display>(text: &str, range: &RangeInclusive<N>) -> Result<N, String> {
    let number = text.parse().ok().filter(|n| range.contains(n));
    number.ok_or_else(|| format!("must be a number from {} to {}", range.start(), range.end()))
}

fn at_least_a_minute(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).ok().filter(|t| *t >= MINUTE);
    time.ok_or_else(|| "must be a duration of at least 1m, such as 1h or 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let options = defaults(Duration::from_secs(1));
        assert_eq!((options.prefix.as_str(), options.shards), ("ringback", 4));
        assert_eq!(options.keep_dead, Duration::from_secs(30 * 86_400));
    }

    #[test]
    fn a_directory_names_an_embedded_store() {
        assert!(store("embedded:./data").is_ok() && store("embedded:/var/lib/ringback").is_ok());
        assert!(store("embedded:").is_err_and(|why| why.contains("needs a directory")));
        assert!(store("mysql://a").is_err_and(|why| why.contains("embedded:directory")));
    }

    #[test]
    fn an_embedded_store_has_no_replicas() {
        let asked = |durability: &'static str| {
            let get = move |name| match name {
                "STORE" => "embedded:./data".to_owned(),
                "DURABILITY" => durability.to_owned(),
                name => NAMES.into_iter().find(|n| n.0 == name).map_or_else(String::new, |n| n.1.to_owned()),
            };
            parse(get, MINUTE).map(|options| options.durability)
        };
        assert_eq!(asked(""), Ok(None));
        assert_eq!(asked("disk"), Ok(Some(Profile::Disk)));
        assert!(asked("replicated").is_err_and(|mistakes| mistakes[0].1.contains("no replicas")));
    }

    #[test]
    fn all_mistakes_are_found_at_once() {
        let wrong = |name| match name {
            "STORE" => "mysql://a".to_owned(),
            "STORE_CA_FILE" | "STORE_CERT" | "STORE_KEY" => "/nowhere".to_owned(),
            "PREFIX" => "a b".to_owned(),
            "SHARDS" => "0".to_owned(),
            "KEEP_DONE" => "10s".to_owned(),
            "KEEP_DONE_MIB" | "KEEP_ATTEMPTS_MIB" | "KEEP_FREE_MIB" => "-1".to_owned(),
            "KEEP_DEAD" => "x".to_owned(),
            "ATTEMPT_LOG" | "DURABILITY" => "some".to_owned(),
            "KEEP_ATTEMPTS" => "1s".to_owned(),
            _ => String::new(),
        };
        let mistakes = parse(wrong, MINUTE).unwrap_err();
        let names: Vec<_> = mistakes.iter().map(|m| m.0).collect();
        assert_eq!(names, NAMES.map(|(name, ..)| name));
    }
}
