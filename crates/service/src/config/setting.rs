//! A setting: its name, default and help text, its environment variable and its flag. And how passwords
//! in values are hidden.

/// The prefix of all environment variables of Ringback.
pub const PREFIX: &str = "RINGBACK_";

/// The names that any Ringback process reads. They distinguish a misspelt variable from one that
/// is meant for another process.
pub const ALL_NAMES: &[&str] = &[
    "STORE",
    "API_LISTEN",
    "ADMIN_LISTEN",
    "SHARDS",
    "PREFIX",
    "CONCURRENCY",
    "LANE_CONCURRENCY",
    "RETRY",
    "RETRY_MIN_DELAY",
    "RETRY_MAX_FAILURES",
    "RETRY_MAX_AGE",
    "LOCK_TTL",
    "LEASE_MARGIN",
    "DRAIN",
    "DRAIN_DELAY",
    "KEEP_DONE",
    "KEEP_DONE_MIB",
    "KEEP_DEAD",
    "ATTEMPTS",
    "KEEP_ATTEMPTS",
    "KEEP_ATTEMPTS_MIB",
    "KEEP_FREE_MIB",
    "ARCHIVE",
    "ARCHIVE_ENDS",
    "ARCHIVE_BODIES",
    "ARCHIVE_KEEP",
    "ARCHIVE_OUTBOX_MIB",
    "ARCHIVE_WHEN_FULL",
    "ARCHIVE_SOURCE",
    "FEEDS",
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
    "HOSTS",
    "INSECURE",
    "KEY",
    "TENANT",
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

/// A setting.
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

    /// Creates a group of settings from rows of name, default and help text.
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

    /// Its value as it may be shown.
    pub(crate) fn shown(&self, value: &str) -> String {
        match self.exposure {
            Exposure::Shown => without_passwords(value),
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

/// The option of a store's URL with the login of sentinels.
const SENTINEL_LOGIN: &str = "sentinel_login=";
/// Replaces a secret.
const HIDDEN: &str = "***";

/// Hides the password of a `scheme://user:password@…` in `text`.
///
/// Everything up to the last `@` is hidden, because a password that is not percent-encoded may
/// contain any character.
pub(crate) fn without_passwords(text: &str) -> String {
    let hidden = text.split_once("://").and_then(|(scheme, rest)| {
        let (userinfo, host) = rest.rsplit_once('@')?;
        let (user, _password) = userinfo.split_once(':')?;
        Some(format!("{scheme}://{user}:{HIDDEN}@{host}"))
    });
    without_sentinel_login(&hidden.unwrap_or_else(|| text.to_owned()))
}

/// Hides the value of `sentinel_login=…`, which is behind the host.
fn without_sentinel_login(text: &str) -> String {
    let Some((before, value)) = text.split_once(SENTINEL_LOGIN) else { return text.to_owned() };
    let after = value.find('&').map_or("", |end| &value[end..]);
    format!("{before}{SENTINEL_LOGIN}{HIDDEN}{after}")
}

#[cfg(test)]
mod tests {
    use super::without_passwords;

    #[test]
    fn a_password_is_hidden_with_and_without_a_user() {
        assert_eq!(without_passwords("redis://app:s3cret@db:6379/0"), "redis://app:***@db:6379/0");
        assert_eq!(without_passwords("rediss://:s3cret@db"), "rediss://:***@db");
    }

    #[test]
    fn a_password_that_is_not_encoded_is_hidden_whole() {
        assert_eq!(without_passwords("redis://app:a/b@c, d@db"), "redis://app:***@db");
    }

    #[test]
    fn the_login_of_sentinels_is_hidden_too() {
        let url = "redis-sentinel://:s3cret@a,b/jobs?sentinel_login=:s3cret&db=1";
        assert_eq!(without_passwords(url), "redis-sentinel://:***@a,b/jobs?sentinel_login=***&db=1");
        assert_eq!(
            without_passwords("redis-sentinel://a/m?sentinel_login=u:p@x"),
            "redis-sentinel://a/m?sentinel_login=***"
        );
    }

    #[test]
    fn of_several_urls_no_password_is_left() {
        assert_eq!(without_passwords("redis://a:b@c or redis://d:e@f"), "redis://a:***@f");
    }

    #[test]
    fn what_holds_no_password_stays_as_it_is() {
        for text in ["", "info,ringback=debug", "redis://db:6379", "https://example.com/a?b=c", "15s 3m  10m"]
        {
            assert_eq!(without_passwords(text), text);
        }
    }
}
