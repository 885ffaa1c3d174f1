//! A setting: its name, default and help text, its environment variable and its flag.

use super::mask;

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

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name without prefix, such as `LOCK_TTL`.
    pub name: &'static str,
    /// The value if neither flag nor variable is set.
    pub default: &'static str,
    /// The help text: one line without a full stop.
    pub help: &'static str,
}

impl Setting {
    /// Creates a setting. Its value may be printed, except passwords in URLs.
    #[must_use]
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, default, help }
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

    /// The flag: `LOCK_TTL` is `--lock-ttl`.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.to_ascii_lowercase().replace('_', "-"))
    }

    /// Returns the value with passwords hidden.
    pub(super) fn shown(value: &str) -> String {
        mask::passwords(value)
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
