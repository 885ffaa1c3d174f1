//! Settings and where their values come from: a flag, else the environment, else the default.
//!
//! A role lists its settings as constants and reads them through a [`Lookup`], which collects
//! every mistake instead of stopping at the first. What a value means is the role's affair.

mod duration;
mod mask;
mod setting;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

pub use self::setting::{ALL_NAMES, PREFIX, Setting, distinct};

/// A value that cannot be used. Displays as one line without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The setting's name without prefix.
    pub name: &'static str,
    line: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// The values of one process, and the mistakes found in them so far.
///
/// The reading methods panic on a name that no group lists and on a default that breaks its own
/// rule: both are faults of the program, not of its user.
pub struct Lookup {
    settings: Vec<Setting>,
    flags: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
    mistakes: Vec<Mistake>,
}

impl Lookup {
    /// Looks up `settings`, flags (by setting name: `LOCK_TTL`) before environment (by variable:
    /// `RINGBACK_LOCK_TTL`) before default. An empty variable counts as unset. Where two groups
    /// list the same name the first one's default counts.
    #[must_use]
    pub fn new(
        settings: &[&'static [Setting]],
        flags: BTreeMap<String, String>,
        env: BTreeMap<String, String>,
    ) -> Self {
        Self { settings: distinct(settings), flags, env, mistakes: Vec::new() }
    }

    /// The value as it was written.
    pub fn text(&mut self, name: &str) -> String {
        let setting = self.setting(name);
        self.value(&setting).to_owned()
    }

    /// The value as a `T`; a wrong one is recorded, and the default is returned in its stead.
    pub fn parse<T>(&mut self, name: &str) -> T
    where
        T: FromStr,
        T::Err: Display,
    {
        self.read(name, |text| text.parse().map_err(|error: T::Err| error.to_string()))
    }

    /// A duration above zero, written as a friendly one: `5s`, `1h 30m`, `250ms`, `7d`.
    pub fn duration(&mut self, name: &str) -> Duration {
        self.duration_in(name, Duration::from_millis(1)..=Duration::MAX)
    }

    /// A duration within `range`.
    pub fn duration_in(&mut self, name: &str, range: RangeInclusive<Duration>) -> Duration {
        self.read(name, |text| duration::parse(text).and_then(|found| duration::within(found, &range)))
    }

    /// A whole number within `range`.
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

    /// An address to listen on, IP and port.
    pub fn address(&mut self, name: &str) -> SocketAddr {
        self.read(name, |text| {
            text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:7411".to_owned())
        })
    }

    /// A list, its items separated by spaces or commas; empty when the value is.
    pub fn list(&mut self, name: &str) -> Vec<String> {
        let text = self.text(name);
        text.split([',', ' ', '\t', '\n']).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// Reads a group of settings by a parser that is not known here. Its mistakes are recorded, and
    /// `fallback` stands in so that the others are found too.
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

    /// Records that the value of `name` does not do, for instance beside another setting.
    pub fn reject(&mut self, name: &str, why: impl Display) {
        let setting = self.setting(name);
        let value = self.value(&setting);
        let shown = setting.shown(value);
        let why = if value.is_empty() { why.to_string() } else { why.to_string().replace(value, &shown) };
        let line =
            format!("{} (or {}) is \"{shown}\": {}", setting.env(), setting.flag(), mask::passwords(&why));
        let mistake = Mistake { name: setting.name, line };
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Every mistake so far, each once.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// What is in force, as (variable, value) with secrets hidden, in the order of the groups.
    #[must_use]
    pub fn effective(&self) -> Vec<(String, String)> {
        self.settings.iter().map(|setting| (setting.env(), setting.shown(self.value(setting)))).collect()
    }

    /// Variables that begin like ours but that no Ringback process reads.
    #[must_use]
    pub fn unknown_variables(&self) -> Vec<&str> {
        let known = |name: &str| {
            ALL_NAMES.contains(&name) || self.settings.iter().any(|setting| setting.name == name)
        };
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

/// The environment, read once at start and nowhere else. Text that is not UTF-8 is kept with
/// replacement characters, so that it fails where it is parsed.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(PREFIX) || name.starts_with("OTEL_"))
        .collect()
}
