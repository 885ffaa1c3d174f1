//! One thing that can be configured: its name, default and help, and how it is written as a variable and a flag.

use super::mask;

/// What every environment variable of Ringback begins with.
pub const PREFIX: &str = "RINGBACK_";

/// Every name that some Ringback process reads, so that a misspelt variable can be told from one
/// that is meant for another process.
pub const ALL_NAMES: &[&str] = &[
    "STORE",
    "API_LISTEN",
    "ADMIN_LISTEN",
    "SHARDS",
    "PREFIX",
    "CONCURRENCY",
    "LANE_CONCURRENCY",
    "RETRY",
    "LOCK_TTL",
    "LEASE_MARGIN",
    "DRAIN",
    "KEEP_DONE",
    "KEEP_DONE_MIB",
    "KEEP_DEAD",
    "ATTEMPTS",
    "KEEP_ATTEMPTS",
    "KEEP_ATTEMPTS_MIB",
    "URL",
    "LOG",
    "LOG_FORMAT",
];

/// One thing that can be configured.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name without prefix, such as `LOCK_TTL`.
    pub name: &'static str,
    /// What counts when neither flag nor variable is given.
    pub default: &'static str,
    /// One line for `--help`, without a full stop.
    pub help: &'static str,
    /// Whether the value is never shown.
    pub secret: bool,
}

impl Setting {
    /// A setting whose value may be shown, passwords in URLs excepted.
    #[must_use]
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, default, help, secret: false }
    }

    /// A group of settings from a table of name, default and meaning.
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

    /// The same setting, its value hidden in `--print-config` and in mistakes.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// The environment variable: `LOCK_TTL` is `RINGBACK_LOCK_TTL`.
    #[must_use]
    pub fn env(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// The flag: `LOCK_TTL` is `--lock-ttl`.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.to_ascii_lowercase().replace('_', "-"))
    }

    /// The value as it may be shown.
    pub(super) fn shown(&self, value: &str) -> String {
        if self.secret && !value.is_empty() { mask::HIDDEN.to_owned() } else { mask::passwords(value) }
    }
}

/// The settings of all groups, each name once; the first mention counts.
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
