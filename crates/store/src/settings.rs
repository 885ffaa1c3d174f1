//! The settings of a store, the same for every process that uses it: their names and defaults, and a
//! parser. Where the values come from is up to the caller.

use std::fmt::Display;
use std::time::Duration;

use ringback_core::contract::{MAX_SHARDS, Options};
use ringback_core::duration::parse_duration;
use ringback_core::policy::Logging;
use ringback_store_embedded::SCHEME;
use ringback_store_redis::Address;

/// Name, default and meaning of each setting.
pub const NAMES: [(&str, &str, &str); 9] = [
    (
        "STORE",
        "redis://127.0.0.1:6379",
        "Where jobs are kept: redis://, rediss://, redis-cluster://a:1,b:2,c:3, or embedded:./directory",
    ),
    (
        "PREFIX",
        "ringback",
        "Prefix of every key, or name of the file, [A-Za-z0-9._-]{1,32}: for several installations on one Redis",
    ),
    ("SHARDS", "4", "Number of shards, 1 to 256, fixed at the first start; another number later is refused"),
    ("KEEP_DONE", "1h", "How long tombstones of done and cancelled jobs are kept, at least 1m"),
    ("KEEP_DONE_MIB", "256", "How many MiB all tombstones may take, at least 1"),
    ("KEEP_DEAD", "30d", "How long dead jobs are kept, at least 1m"),
    (
        "ATTEMPTS",
        "failed",
        "Which attempts are logged: failed (and the success of a job that needed more than one), all or off",
    ),
    ("KEEP_ATTEMPTS", "7d", "How long logged attempts are kept, at least 1m"),
    ("KEEP_ATTEMPTS_MIB", "64", "How many MiB all logged attempts may take; 0 keeps none"),
];

const MINUTE: Duration = Duration::from_secs(60);

/// Parses all settings and finds all mistakes at once. `get` returns the value of a name.
///
/// # Errors
/// The name and the mistake of each wrong setting.
pub fn parse(
    mut get: impl FnMut(&'static str) -> String,
    call_timeout: Duration,
) -> Result<Options, Vec<(&'static str, String)>> {
    let mut mistakes = Vec::new();
    let mut read = |name, parse: &dyn Fn(&str) -> Result<Value, String>| match parse(&get(name)) {
        Ok(value) => Some(value),
        Err(why) => {
            mistakes.push((name, why));
            None
        }
    };
    let url = read("STORE", &store);
    let prefix = read("PREFIX", &prefix);
    let shards = read("SHARDS", &|text| number(text, 1, MAX_SHARDS.into()));
    let keep_done = read("KEEP_DONE", &at_least_a_minute);
    let keep_done_mib = read("KEEP_DONE_MIB", &|text| number(text, 1, 1024 * 1024));
    let keep_dead = read("KEEP_DEAD", &at_least_a_minute);
    let attempts = read("ATTEMPTS", &|text| text.parse().map(Value::Logging));
    let keep_attempts = read("KEEP_ATTEMPTS", &at_least_a_minute);
    let keep_attempts_mib = read("KEEP_ATTEMPTS_MIB", &|text| number(text, 0, 1024 * 1024));
    let logs = (attempts, keep_attempts, keep_attempts_mib);
    match (url, prefix, shards, keep_done, keep_done_mib, keep_dead, logs) {
        (
            Some(Value::Text(url)),
            Some(Value::Text(prefix)),
            Some(Value::Number(shards)),
            Some(Value::Time(keep_done)),
            Some(Value::Number(keep_done_mib)),
            Some(Value::Time(keep_dead)),
            (
                Some(Value::Logging(attempts)),
                Some(Value::Time(keep_attempts)),
                Some(Value::Number(keep_attempts_mib)),
            ),
        ) => Ok(Options {
            url,
            prefix,
            shards: u16::try_from(shards).unwrap_or(MAX_SHARDS),
            keep_done,
            keep_done_mib,
            keep_dead,
            attempts,
            keep_attempts,
            keep_attempts_mib,
            call_timeout,
        }),
        _ => Err(mistakes),
    }
}

/// The default settings.
pub fn defaults(call_timeout: Duration) -> Options {
    let default = |name| NAMES.into_iter().find(|n| n.0 == name).map_or_else(String::new, |n| n.1.to_owned());
    parse(default, call_timeout).expect("the defaults are valid")
}

enum Value {
    Text(String),
    Number(u32),
    Time(Duration),
    Logging(Logging),
}

fn store(text: &str) -> Result<Value, String> {
    match text.strip_prefix(SCHEME) {
        Some("") => Err("embedded: needs a directory, such as embedded:./ringback-data".to_owned()),
        Some(_) => Ok(Value::Text(text.to_owned())),
        None => Address::parse(text).map(|_| Value::Text(text.to_owned())),
    }
}

fn prefix(text: &str) -> Result<Value, String> {
    let inside = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if inside && (1..=32).contains(&text.len()) {
        Ok(Value::Text(text.to_owned()))
    } else {
        Err(not("1 to 32 of A-Z a-z 0-9 . _ -"))
    }
}

fn number(text: &str, min: u32, max: u32) -> Result<Value, String> {
    let number = text.parse().ok().filter(|n| (min..=max).contains(n));
    number.map(Value::Number).ok_or_else(|| not(format!("a number from {min} to {max}")))
}

fn at_least_a_minute(text: &str) -> Result<Value, String> {
    let time = parse_duration(text).ok().filter(|t| *t >= MINUTE);
    time.map(Value::Time).ok_or_else(|| not("a duration of at least 1m, such as 1h or 30d"))
}

fn not(allowed: impl Display) -> String {
    format!("must be {allowed}")
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
    fn all_mistakes_are_found_at_once() {
        let wrong = |name| match name {
            "STORE" => "mysql://a".to_owned(),
            "PREFIX" => "a b".to_owned(),
            "SHARDS" => "0".to_owned(),
            "KEEP_DONE" => "10s".to_owned(),
            "KEEP_DONE_MIB" | "KEEP_ATTEMPTS_MIB" => "-1".to_owned(),
            "KEEP_DEAD" => "x".to_owned(),
            "ATTEMPTS" => "some".to_owned(),
            "KEEP_ATTEMPTS" => "1s".to_owned(),
            _ => String::new(),
        };
        let mistakes = parse(wrong, MINUTE).unwrap_err();
        let names: Vec<_> = mistakes.iter().map(|m| m.0).collect();
        assert_eq!(names, NAMES.map(|(name, ..)| name));
    }
}
