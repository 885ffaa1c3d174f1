//! Settings and their values ([`Lookup`]): from a flag, else from the environment, else the default.
//!
//! A role lists its settings as constants and reads them through a [`Lookup`], which collects every
//! mistake instead of stopping at the first one.

mod setting;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use ringback_core::connection_url::shown_in_text;
use ringback_core::duration::{DurationError, format_duration, parse_duration};

pub use self::setting::{ALL_NAMES, Exposure, PREFIX, Setting, distinct};

/// A setting whose value is not valid. Displays as one line without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The name of the setting, without prefix.
    pub name: &'static str,
    line: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// The setting values of a process, and the mistakes found in them so far.
///
/// The reading methods panic on a name that no group lists and on a default that is not valid: both
/// are bugs of the program.
pub struct Lookup {
    settings: Vec<Setting>,
    flags: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
    mistakes: Vec<Mistake>,
}

impl Lookup {
    /// Creates a lookup over groups of settings. `flags` are keyed by setting name (`LOCK_TTL`), `env`
    /// by variable (`RINGBACK_LOCK_TTL`). An empty variable counts as unset. If two groups list the
    /// same name, the default of the first one counts.
    #[must_use]
    pub fn new(
        settings: &[&'static [Setting]],
        flags: BTreeMap<String, String>,
        env: BTreeMap<String, String>,
    ) -> Self {
        Self { settings: distinct(settings), flags, env, mistakes: Vec::new() }
    }

    /// Whether a group lists the setting.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.name == name)
    }

    /// Returns the value as text.
    pub fn text(&mut self, name: &str) -> String {
        let setting = self.setting(name);
        self.value(&setting).to_owned()
    }

    /// Parses the value. If it is not valid, records a mistake and returns the default.
    pub fn parse<T>(&mut self, name: &str) -> T
    where
        T: FromStr,
        T::Err: Display,
    {
        self.read(name, |text| text.parse().map_err(|error: T::Err| in_words(&error.to_string())))
    }

    /// Reads a switch. If it is neither `on` nor `off`, records a mistake and returns the default.
    pub fn is_on(&mut self, name: &str) -> bool {
        self.read(name, |text| match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err("must be on or off".to_owned()),
        })
    }

    /// Parses a duration within `range`. If it is not valid, records a mistake and returns the default.
    pub fn duration_in(&mut self, name: &str, range: RangeInclusive<Duration>) -> Duration {
        self.read(name, |text| duration_within(text, &range))
    }

    /// Parses a whole number within `range`. If it is not valid, records a mistake and returns the default.
    pub fn number_in<N>(&mut self, name: &str, range: RangeInclusive<N>) -> N
    where
        N: FromStr + PartialOrd + Display,
    {
        self.read(name, |text| match text.parse::<N>() {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) | Err(_) => {
                Err(format!("must be a whole number from {} to {}", range.start(), range.end()))
            }
        })
    }

    /// Parses an address to listen on, IP and port. If it is not valid, records a mistake and returns the default.
    pub fn address(&mut self, name: &str) -> SocketAddr {
        self.read(name, |text| {
            text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:7411".to_owned())
        })
    }

    /// Reads a group of settings with a parser of another crate. If that fails, records its mistakes
    /// and returns `fallback`, so that later mistakes are found too.
    pub fn group<T>(
        &mut self,
        parse: impl FnOnce(&mut dyn FnMut(&'static str) -> String) -> Result<T, Vec<(&'static str, String)>>,
        fallback: impl FnOnce() -> T,
    ) -> T {
        parse(&mut |name| self.text(name)).unwrap_or_else(|mistakes| {
            mistakes.into_iter().for_each(|(name, why)| self.reject(name, why));
            fallback()
        })
    }

    /// Records that the value of `name` is not valid, for example because of another setting. Secrets are not shown.
    pub fn reject(&mut self, name: &str, why: impl Display) {
        let setting = self.setting(name);
        let value = self.value(&setting);
        let shown = setting.shown(value);
        let why = if value.is_empty() { why.to_string() } else { why.to_string().replace(value, &shown) };
        let or_flag = setting.flag().map(|flag| format!(" (or {flag})")).unwrap_or_default();
        let line = format!("{}{or_flag} is \"{shown}\": {}", setting.env(), shown_in_text(&why));
        let mistake = Mistake { name: setting.name, line };
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Returns the mistakes so far, without duplicates.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Returns the values in effect as (variable, value), secrets hidden, in the order of the groups.
    #[must_use]
    pub fn effective(&self) -> Vec<(String, String)> {
        self.settings.iter().map(|setting| (setting.env(), setting.shown(self.value(setting)))).collect()
    }

    /// Returns the variables that begin with [`PREFIX`] and that no Ringback process reads.
    #[must_use]
    pub fn unknown_variables(&self) -> Vec<&str> {
        let known = |name: &str| ALL_NAMES.contains(&name) || self.has(name);
        self.env
            .keys()
            .filter(|variable| variable.strip_prefix(PREFIX).is_some_and(|name| !known(name)))
            .map(String::as_str)
            .collect()
    }

    fn read<T>(&mut self, name: &str, convert: impl Fn(&str) -> Result<T, String>) -> T {
        let setting = self.setting(name);
        match convert(self.value(&setting)) {
            Ok(value) => value,
            Err(why) => {
                self.reject(name, why);
                convert(setting.default).unwrap_or_else(|why| panic!("the default of {name} is wrong: {why}"))
            }
        }
    }

    fn setting(&self, name: &str) -> Setting {
        let found = self.settings.iter().find(|setting| setting.name == name);
        *found.unwrap_or_else(|| panic!("no group of this process lists the setting {name}"))
    }

    fn value(&self, setting: &Setting) -> &str {
        let variable = || self.env.get(&setting.env()).filter(|value| !value.is_empty());
        self.flags.get(setting.name).or_else(variable).map_or(setting.default, String::as_str)
    }
}

/// Replaces what the standard library says of a wrong number in an error message by words for users.
pub(crate) fn in_words(error: &str) -> String {
    error.replace("invalid digit found in string", "it is not a whole number, or less than 0")
}

fn duration_within(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, String> {
    match parse_duration(text.trim()) {
        Ok(found) if range.contains(&found) => Ok(found),
        Ok(_) => {
            let [start, end] = [range.start(), range.end()].map(|end| format_duration(*end));
            Err(format!("must be from {start} to {end}"))
        }
        Err(DurationError::Calendar) => {
            Err("must not have months or years, which have no fixed length; write days, such as 30d"
                .to_owned())
        }
        Err(DurationError::TooLong | DurationError::Negative | DurationError::Unreadable) => {
            Err("must be a duration with a unit, such as 250ms, 5s or 1h 30m".to_owned())
        }
    }
}

/// Reads the variables of Ringback and of OpenTelemetry, once at start and nowhere else. Text that is not UTF-8 gets
/// replacement characters, so that parsing it fails.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(PREFIX) || name.starts_with("OTEL_"))
        .collect()
}
