//! The command line of `chaos`.

use std::path::PathBuf;
use std::time::Duration;

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
    /// The kinds of faults; all that the store has if it is empty.
    pub kinds: Vec<Kind>,
    /// Submits per second.
    pub rate: u64,
    /// Where histories are kept; without it they go, unless something is violated.
    pub keep: Option<PathBuf>,
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
        stores: vec![StoreKind::Redis, StoreKind::Embedded],
        kinds: Vec::new(),
        rate: 60,
        keep: None,
    };
    for arg in args {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            ("--help", "") => return Ok(Asked::Help(help())),
            ("--seconds", text) => options.load = Duration::from_secs(number(&arg, text)?),
            ("--seed", text) => options.seed = number(&arg, text)?,
            ("--rate", text) => options.rate = number::<u64>(&arg, text)?.max(1),
            ("--store", "redis") => options.stores = vec![StoreKind::Redis],
            ("--store", "embedded") => options.stores = vec![StoreKind::Embedded],
            ("--store", "both") => options.stores = vec![StoreKind::Redis, StoreKind::Embedded],
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

fn kinds(names: &str) -> Result<Vec<Kind>, String> {
    let kind = |name: &str| {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("{name} is no kind of fault\n\n{}", help()))
    };
    names.split([',', ' ']).filter(|name| !name.is_empty()).map(kind).collect()
}

fn help() -> String {
    let list = |store: StoreKind| {
        let names = Kind::of(store).map(Kind::name);
        names.collect::<Vec<_>>().join(" ")
    };
    format!(
        "chaos [--seconds=N] [--seed=N] [--store=redis|embedded|both] [--faults=KIND,…] [--rate=N] [--keep=DIRECTORY]

Runs an installation of real processes under load and faults, waits until nothing is due any more, and checks the
history of the run. The same seed gives the same schedule of faults.

  --seconds  how long there are load and faults, {SECONDS} by default
  --seed     of the load and the faults; a new one each time by default
  --store    on what; both, one after the other, by default
  --faults   only these kinds; all by default
  --rate     submits per second, 60 by default
  --keep     where to keep the history; otherwise it is kept only if something is violated

Exit status: 0 if nothing is violated, 1 if something is, 2 if the run failed.

Faults on redis: {}
Faults on embedded: {}",
        list(StoreKind::Redis),
        list(StoreKind::Embedded)
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
    fn what_is_wrong_is_named() {
        for wrong in ["--seconds=x", "--store=file", "--faults=nothing", "more"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(parsed("--help"), Ok(Asked::Help(text)) if text.contains("kill-notifier")));
    }
}
