//! The command line of `chaos`.

use std::path::PathBuf;
use std::time::Duration;

use strum::VariantArray as _;

use crate::fault::Kind;
use crate::store_kind::StoreKind;

/// The load under faults, unless `--seconds` says another.
const SECONDS: u64 = 60;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long there are load and faults.
    pub load: Duration,
    /// The seed of load and faults.
    pub seed: u64,
    /// One run after the other.
    pub stores: Vec<StoreKind>,
    /// The kinds of faults; all that the store has if it is empty, but only [lossy](Kind::is_lossy) ones if asked.
    pub kinds: Vec<Kind>,
    /// Lossy kinds too.
    pub is_lossy: bool,
    /// Submits per second.
    pub rate: u64,
    /// Where histories are kept; without it they go, unless something is violated.
    pub keep: Option<PathBuf>,
}

impl Options {
    /// The kinds of faults to make on a store.
    pub(crate) fn kinds_on(&self, store: StoreKind) -> Vec<Kind> {
        let is_asked = |kind: &Kind| {
            self.kinds.contains(kind) || (self.kinds.is_empty() && (self.is_lossy || !kind.is_lossy()))
        };
        Kind::of(store).filter(is_asked).collect()
    }
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// This text.
    Help(String),
    /// A run.
    Run(Options),
}

/// Reads the command line. Without a seed there is a new one each time.
///
/// # Errors
/// A message for the terminal when an argument is unknown or malformed.
pub fn parse(args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut options = Options {
        load: Duration::from_secs(SECONDS),
        seed: u64::from(rand::random::<u32>()),
        stores: StoreKind::VARIANTS.to_vec(),
        kinds: Vec::new(),
        is_lossy: false,
        rate: 60,
        keep: None,
    };
    for arg in args {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            ("--help", "") => return Ok(Asked::Help(help())),
            ("--seconds", text) => options.load = Duration::from_secs(number(&arg, text)?),
            ("--seed", text) => options.seed = number(&arg, text)?,
            ("--rate", text) => options.rate = number::<u64>(&arg, text)?.max(1),
            ("--store", "all") => options.stores = StoreKind::VARIANTS.to_vec(),
            ("--store", name) => options.stores = vec![store(name)?],
            ("--lossy", "") => options.is_lossy = true,
            ("--faults", names) => options.kinds = kinds(names)?,
            ("--keep", path) if !path.is_empty() => options.keep = Some(path.into()),
            _ => return Err(format!("unknown: {arg}\n\n{}", help())),
        }
    }
    Ok(Asked::Run(options))
}

fn number<T: std::str::FromStr>(arg: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{arg}: not a number"))
}

fn store(name: &str) -> Result<StoreKind, String> {
    name.parse().map_err(|_| format!("{name} is not a store\n\n{}", help()))
}

fn kinds(names: &str) -> Result<Vec<Kind>, String> {
    let kind = |name: &str| {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("{name} is not a kind of fault\n\n{}", help()))
    };
    names.split([',', ' ']).filter(|name| !name.is_empty()).map(kind).collect()
}

fn help() -> String {
    let kinds = |store: StoreKind| {
        let names = Kind::of(store).map(Kind::name);
        format!("Faults on {}: {}", store, names.collect::<Vec<_>>().join(" "))
    };
    let lossy: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.is_lossy()).map(Kind::name).collect();
    format!(
        "chaos [--seconds=N] [--seed=N] [--store=redis|cluster|sentinel|embedded|all] [--faults=KIND,…] [--lossy]
      [--rate=N] [--keep=DIRECTORY]

Runs an installation of real processes under load and faults, waits until nothing is due any more, and checks the
history of the run. The same seed gives the same schedule of faults.

  --seconds  how long there are load and faults, {SECONDS} by default
  --seed     of the load and the faults; a new one each time by default
  --store    on what; all, one after the other, by default
  --faults   only these kinds; by default all but those that take accepted jobs away: {}
  --lossy    these too
  --rate     submits per second, 60 by default
  --keep     where to keep the history; otherwise it is kept only if something is violated

Exit status: 0 if nothing is violated, 1 if something is, 2 if the run failed.

{}",
        lossy.join(" "),
        StoreKind::VARIANTS.iter().copied().map(kinds).collect::<Vec<_>>().join("\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_seed_repeats_a_run() {
        let Ok(Asked::Run(options)) =
            parsed("--seconds=5 --seed=7 --store=embedded --faults=kill-up,receiver-500")
        else {
            panic!("it is well formed")
        };
        assert_eq!((options.load, options.seed), (Duration::from_secs(5), 7));
        assert_eq!(options.stores, [StoreKind::Embedded]);
        assert_eq!(options.kinds, [Kind::KillUp, Kind::Receiver500]);
    }

    #[test]
    fn faults_that_lose_jobs_are_made_only_if_they_are_asked_for() {
        let has_wipe = |line: &str| match parsed(line) {
            Ok(Asked::Run(options)) => options.kinds_on(StoreKind::Redis).contains(&Kind::WipedRedis),
            other => panic!("{other:?}"),
        };
        assert_eq!(["", "--lossy", "--faults=wiped-redis"].map(has_wipe), [false, true, true]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for wrong in ["--seconds=x", "--store=file", "--faults=nothing", "more"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(parsed("--help"), Ok(Asked::Help(text)) if text.contains("kill-notifier")));
    }
}
