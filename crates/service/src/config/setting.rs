//! A setting: its name, default and help text, its environment variable and its flag. And how passwords
//! in values are hidden.

use ringback_core::connection_url::{HIDDEN, shown};

/// The prefix of all environment variables of Ringback.
pub const PREFIX: &str = "RINGBACK_";

/// The names that any Ringback process reads. They distinguish a misspelt variable from one that
/// is meant for another process.
pub const ALL_NAMES: &[&str] = &[
    "STORE",
    "STORE_CA_FILE",
    "STORE_CERT",
    "STORE_KEY",
    "API_LISTEN",
    "ADMIN_LISTEN",
    "SHARDS",
    "PREFIX",
    "CONCURRENCY",
    "LANE_CONCURRENCY",
    "BREAKERS",
    "RETRY",
    "RETRY_MIN_DELAY",
    "RETRY_MAX_FAILURES",
    "RETRY_MAX_AGE",
    "LOCK_TTL",
    "LEASE_MARGIN",
    "SHUTDOWN_TIMEOUT",
    "DRAIN_DELAY",
    "KEEP_DONE",
    "KEEP_DONE_MIB",
    "KEEP_DEAD",
    "ATTEMPT_LOG",
    "KEEP_ATTEMPTS",
    "KEEP_ATTEMPTS_MIB",
    "KEEP_FREE_MIB",
    "ARCHIVE",
    "ARCHIVE_STATES",
    "ARCHIVE_BODIES",
    "ARCHIVE_KEEP",
    "ARCHIVE_OUTBOX_MIB",
    "ARCHIVE_WHEN_FULL",
    "ARCHIVE_SOURCE",
    "FEEDS",
    "FEED_LOCK_TTL",
    "DURABILITY",
    "URL",
    "SERVER_CA_FILE",
    "CLIENT_CERT",
    "KEY",
    "KEY_OVER_HTTP",
    "TENANT",
    "EVENT_LISTENERS",
    "API_CONNECTIONS",
    "UI",
    "NAME_SERVERS",
    "CA_FILE",
    "EGRESS_ALLOW",
    "EGRESS_DENY",
    "EGRESS_HOSTS",
    "EGRESS_PORTS",
    "ROOT_KEY",
    "ALLOWED_HOSTS",
    "INSECURE",
    "MASTER_KEYS",
    "SIGNING_SECRET",
    "WEBHOOK_PREFIX",
    "TLS_CERT",
    "TLS_KEY",
    "TLS_CLIENT_CA",
    "ADMIN_TLS",
    "LOG",
    "LOG_FORMAT",
];

/// The settings that are URLs of stores and databases. What cannot be read of them may be a part of a password.
const URLS: [&str; 2] = ["STORE", "ARCHIVE"];

#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name without prefix, such as `LOCK_TTL`.
    pub name: &'static str,
    /// The value if neither flag nor variable is set.
    pub default: &'static str,
    /// The help text: one line without a full stop.
    pub help: &'static str,
    /// Whether its value may be shown, and given on the command line.
    pub exposure: Exposure,
}

/// Where the value of a setting may appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// It may be shown, except passwords in URLs, and has a flag.
    Shown,
    /// It is a secret: it is never shown, and has no flag, because all users of a machine can read command lines.
    Secret,
}

impl Setting {
    /// Creates a setting. Its value may be printed, except passwords in URLs.
    #[must_use]
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, default, help, exposure: Exposure::Shown }
    }

    /// Creates a setting whose value is a secret. It is given by the environment alone.
    #[must_use]
    pub const fn secret((name, default, help): (&'static str, &'static str, &'static str)) -> Self {
        Self { name, default, help, exposure: Exposure::Secret }
    }

    /// Creates a group of settings, none of them secret, from rows of name, default and help text.
    #[must_use]
    pub const fn table<const N: usize>(rows: [(&'static str, &'static str, &'static str); N]) -> [Self; N] {
        let mut settings = [Self::new("", "", ""); N];
        let mut i = 0;
        while i < N {
            settings[i] = Self::new(rows[i].0, rows[i].1, rows[i].2);
            i += 1;
        }
        settings
    }

    /// The environment variable: `LOCK_TTL` is `RINGBACK_LOCK_TTL`.
    #[must_use]
    pub fn env(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// The flag: `LOCK_TTL` is `--lock-ttl`. `None` if its value is a secret.
    #[must_use]
    pub fn flag(&self) -> Option<String> {
        let flag = || format!("--{}", self.name.to_ascii_lowercase().replace('_', "-"));
        (self.exposure == Exposure::Shown).then(flag)
    }

    pub(crate) fn shown(&self, value: &str) -> String {
        match self.exposure {
            Exposure::Shown => without_secrets(self.name, value),
            Exposure::Secret if value.is_empty() => String::new(),
            Exposure::Secret => HIDDEN.to_owned(),
        }
    }
}

/// Returns the settings of all groups. Of several with the same name the first one counts.
#[must_use]
pub fn distinct(groups: &[&'static [Setting]]) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for setting in groups.iter().copied().flatten() {
        if settings.iter().all(|known| known.name != setting.name) {
            settings.push(*setting);
        }
    }
    settings
}

/// Shows a value, without the passwords of a URL.
fn without_secrets(name: &str, value: &str) -> String {
    if URLS.contains(&name) || value.contains("://") { shown(value) } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::Setting;

    #[test]
    fn a_url_is_shown_without_secrets_wherever_it_is_set() {
        for (name, value, expected) in [
            ("STORE", "redis://app:s3cret@db:6379/0", "redis://app:***@db:6379/0"),
            ("STORE", "app:s3cret@db", "***"),
            ("ARCHIVE", "host=db password=s3cret", "***"),
            ("LOG", "redis://app:s3cret@db", "redis://app:***@db"),
            ("LOG", "info,ringback=debug", "info,ringback=debug"),
            ("RETRY", "15s 3m  10m", "15s 3m  10m"),
            ("CA_FILE", "", ""),
        ] {
            assert_eq!(Setting::new(name, "", "").shown(value), expected, "{name}={value}");
        }
    }
}
