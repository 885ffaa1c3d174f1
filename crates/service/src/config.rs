//! Settings and where their values come from: a flag, else the environment, else the default.
//!
//! A role lists its settings as constants and reads them through a [`Lookup`], which collects
//! every mistake instead of stopping at the first. What a value means is the role's affair.

mod duration;
mod mask;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

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

    fn shown(&self, value: &str) -> String {
        if self.secret && !value.is_empty() { mask::HIDDEN.to_owned() } else { mask::passwords(value) }
    }
}

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

/// The environment, read once at start and nowhere else. Text that is not UTF-8 is kept with
/// replacement characters, so that it fails where it is parsed.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(PREFIX) || name.starts_with("OTEL_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &[Setting] = &[
        Setting::new("STORE", "redis://127.0.0.1:6379", "where jobs are kept"),
        Setting::new("LOCK_TTL", "5s", "carrier lock"),
        Setting::new("SHARDS", "8", "number of shards"),
        Setting::new("EGRESS_ALLOW", "", "networks let through"),
        Setting::new("SIGNING_KEY", "", "secret key").secret(),
    ];
    const OTHER: &[Setting] = &[Setting::new("STORE", "embedded:./data", "where jobs are kept")];

    fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn lookup(flags: &[(&str, &str)], env: &[(&str, &str)]) -> Lookup {
        Lookup::new(&[GROUP], pairs(flags), pairs(env))
    }

    fn lines(lookup: &Lookup) -> Vec<String> {
        lookup.mistakes().iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn a_setting_knows_its_variable_and_its_flag() {
        assert_eq!(GROUP[1].env(), "RINGBACK_LOCK_TTL");
        assert_eq!(GROUP[1].flag(), "--lock-ttl");
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_default() {
        let env = [("RINGBACK_LOCK_TTL", "6s"), ("RINGBACK_SHARDS", "16")];
        let mut lookup = lookup(&[("LOCK_TTL", "7s")], &env);
        assert_eq!(lookup.duration("LOCK_TTL"), Duration::from_secs(7));
        assert_eq!(lookup.number_in("SHARDS", 1..=64_u16), 16);
        assert_eq!(lookup.text("STORE"), "redis://127.0.0.1:6379");
        assert!(lookup.mistakes().is_empty());
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(lookup(&[], &[("RINGBACK_SHARDS", "")]).parse::<u16>("SHARDS"), 8);
    }

    #[test]
    fn all_mistakes_are_found_at_once_and_defaults_stand_in() {
        let mut lookup = lookup(&[("LOCK_TTL", "5")], &[("RINGBACK_SHARDS", "many")]);
        assert_eq!(lookup.duration("LOCK_TTL"), Duration::from_secs(5));
        assert_eq!(lookup.number_in("SHARDS", 1..=64_u32), 8);
        lookup.reject("STORE", "nobody is there");
        let expected = [
            "RINGBACK_LOCK_TTL (or --lock-ttl) is \"5\": a duration needs a unit, such as \"5s\" or \"5ms\"",
            "RINGBACK_SHARDS (or --shards) is \"many\": must be a whole number from 1 to 64",
            "RINGBACK_STORE (or --store) is \"redis://127.0.0.1:6379\": nobody is there",
        ];
        assert_eq!(lines(&lookup), expected);
    }

    #[test]
    fn the_same_mistake_is_told_once() {
        let mut lookup = lookup(&[("SHARDS", "0")], &[]);
        lookup.number_in("SHARDS", 1..=64_usize);
        lookup.number_in("SHARDS", 1..=64_usize);
        assert_eq!(lookup.mistakes().len(), 1);
    }

    #[test]
    fn the_error_of_a_parser_says_what_is_wrong() {
        let mut lookup = lookup(&[("SHARDS", "-1")], &[]);
        assert_eq!(lookup.parse::<u16>("SHARDS"), 8);
        assert_eq!(
            lines(&lookup),
            ["RINGBACK_SHARDS (or --shards) is \"-1\": invalid digit found in string"]
        );
    }

    #[test]
    fn lists_are_separated_by_spaces_or_commas() {
        let mut some = lookup(&[("EGRESS_ALLOW", " 127.0.0.0/8, 10.0.0.0/8  ::1/128,")], &[]);
        assert_eq!(some.list("EGRESS_ALLOW"), ["127.0.0.0/8", "10.0.0.0/8", "::1/128"]);
        assert!(lookup(&[], &[]).list("EGRESS_ALLOW").is_empty());
    }

    #[test]
    fn passwords_and_secrets_show_up_nowhere() {
        let url = "redis://app:hunter2@db:6379";
        let mut lookup = lookup(&[("STORE", url), ("SIGNING_KEY", "whsec_abc")], &[]);
        lookup.reject("STORE", format!("cannot read {url}"));
        lookup.reject("SIGNING_KEY", "whsec_abc is too short");
        let expected = [
            "RINGBACK_STORE (or --store) is \"redis://app:***@db:6379\": cannot read redis://app:***@db:6379",
            "RINGBACK_SIGNING_KEY (or --signing-key) is \"***\": *** is too short",
        ];
        assert_eq!(lines(&lookup), expected);
        let shown = lookup.effective();
        assert_eq!(shown[0].1, "redis://app:***@db:6379");
        assert_eq!(shown[4], ("RINGBACK_SIGNING_KEY".to_owned(), "***".to_owned()));
    }

    #[test]
    fn the_first_group_that_lists_a_name_gives_its_default() {
        let mut lookup = Lookup::new(&[OTHER, GROUP], BTreeMap::new(), BTreeMap::new());
        assert_eq!(lookup.text("STORE"), "embedded:./data");
        assert_eq!(lookup.effective().len(), GROUP.len());
    }

    #[test]
    fn a_variable_nobody_reads_is_named_and_one_of_another_process_is_not() {
        let env = [
            ("RINGBACK_LOK_TTL", "5s"),
            ("RINGBACK_KEEP_DEAD", "7d"),
            ("RINGBACK_SHARDS", "4"),
            ("OTEL_X", "1"),
        ];
        assert_eq!(lookup(&[], &env).unknown_variables(), ["RINGBACK_LOK_TTL"]);
    }

    #[test]
    #[should_panic(expected = "no group of this process lists the setting NOPE")]
    fn a_name_that_no_group_lists_is_a_fault_of_the_program() {
        lookup(&[], &[]).text("NOPE");
    }
}
