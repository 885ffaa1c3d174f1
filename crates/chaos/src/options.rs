//! The command line of `chaos`.

use std::path::PathBuf;

use clap::Parser;
use strum::VariantArray as _;

use crate::fault::Kind;
use crate::store_kind::StoreKind;

/// Runs an installation of real processes under load and faults, waits until nothing is due any more, and checks the
/// history of the run. The same seed gives the same schedule of faults.
///
/// Exit status: 0 if nothing is violated, 1 if something is, 2 if the run failed.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(name = "chaos", after_help = faults())]
pub struct Options {
    /// How many seconds there are load and faults
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
    /// The seed of the load and the faults [default: a new one each time]
    #[arg(long, value_name = "N", default_value_t = rand::random::<u32>().into(), hide_default_value = true)]
    pub seed: u64,
    /// On what: redis, cluster, sentinel, embedded, or all, one after the other
    #[arg(long = "store", value_name = "STORE", default_value = "all", value_parser = stores)]
    // The path keeps clap from taking one value for each store.
    pub stores: std::vec::Vec<StoreKind>,
    /// Only these kinds of faults; all but those that take accepted jobs away if it is left out
    #[arg(long = "faults", value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    pub kinds: Vec<Kind>,
    /// Faults that take accepted jobs away too
    #[arg(long = "lossy")]
    pub is_lossy: bool,
    /// Submits per second
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: u64,
    /// Where to keep the history; otherwise it is kept only if something is violated
    #[arg(long, value_name = "DIRECTORY")]
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

fn stores(name: &str) -> Result<Vec<StoreKind>, String> {
    if name == "all" {
        return Ok(StoreKind::VARIANTS.to_vec());
    }
    name.parse().map(|only| vec![only]).map_err(|_| "not a store".to_owned())
}

fn kind(name: &str) -> Result<Kind, String> {
    name.parse().map_err(|_| "not a kind of fault".to_owned())
}

fn faults() -> String {
    let kinds = |store: &StoreKind| {
        let names: Vec<_> = Kind::of(*store).map(Kind::name).collect();
        format!("Faults on {store}: {}", names.join(" "))
    };
    StoreKind::VARIANTS.iter().map(kinds).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(["chaos"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn a_seed_repeats_a_run() {
        let line = "--seconds=5 --seed=7 --store=embedded --faults=kill-up,receiver-500";
        let options = parsed(line).expect("it is well formed");
        assert_eq!((options.seconds, options.seed), (5, 7));
        assert_eq!(options.stores, [StoreKind::Embedded]);
        assert_eq!(options.kinds, [Kind::KillUp, Kind::Receiver500]);
    }

    #[test]
    fn faults_that_lose_jobs_are_made_only_if_they_are_asked_for() {
        let has_wipe = |line: &str| {
            let options = parsed(line).expect("it is well formed");
            options.kinds_on(StoreKind::Redis).contains(&Kind::WipedRedis)
        };
        assert_eq!(["", "--lossy", "--faults=wiped-redis"].map(has_wipe), [false, true, true]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for wrong in ["--seconds=x", "--store=file", "--faults=nothing", "more", "--rate=0"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(parsed("--help").is_err_and(|help| help.to_string().contains("kill-notifier")));
    }
}
