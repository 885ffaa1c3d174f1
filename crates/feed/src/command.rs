//! The command line of the feed process: chooses among `ringback-feed FILE`, `ringback-feed check FILE` and
//! `ringback-feed seek FILE FEED TIME`, each with flags.

use std::ffi::OsString;
use std::process::ExitCode;

use ringback_service::Service;

use crate::config::Config;
use crate::{check, run, seek_command};

const USAGE: &str = "ringback-feed FILE [OPTIONS]\n       \
    ringback-feed check FILE [OPTIONS]            Run the queries, and show ten jobs of each feed without submitting them\n       \
    ringback-feed seek FILE FEED TIME [OPTIONS]   Set from which due time a feed is read next";
/// The flag by which the file is passed on.
const FILE: &str = "--feeds";

/// The command that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verb {
    Run,
    Check,
    /// The feed, and the time.
    Seek(String, String),
}

/// Runs the process and returns its exit status: those of [`Service::main`]; for `check` 1 if a query or a row is wrong.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let (verb, args) = split(args.into_iter().collect());
    let service = Service {
        name: "ringback-feed",
        about: "Loads rows of PostgreSQL or SQLite as jobs",
        usage: Some(USAGE),
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    };
    match verb {
        Verb::Run => service.main_with(args, run),
        Verb::Check => service.once(args, check::run),
        Verb::Seek(feed, time) => {
            service.once(args, |config| async move { seek_command::run(config, &feed, &time).await })
        }
    }
}

/// Splits arguments into the verb with its words, and the program's name with all flags; the file becomes a flag.
fn split(args: Vec<OsString>) -> (Verb, Vec<OsString>) {
    let mut args = args.into_iter();
    let mut flags: Vec<_> = args.next().into_iter().collect();
    let mut rest: Vec<_> = args.collect();
    let is_verb = |rest: &[OsString], verb: &str| rest.first().is_some_and(|first| first == verb);
    let verb = if is_verb(&rest, "check") {
        rest.remove(0);
        Verb::Check
    } else if is_verb(&rest, "seek") && rest.len() >= 4 {
        let words: Vec<_> = rest.drain(2..4).map(|word| word.to_string_lossy().into_owned()).collect();
        rest.remove(0);
        Verb::Seek(words[0].clone(), words[1].clone())
    } else {
        Verb::Run
    };
    if rest.first().is_some_and(|first| !first.to_string_lossy().starts_with('-')) {
        flags.push(FILE.into());
    }
    flags.extend(rest);
    (verb, flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_of(args: &[&str]) -> (Verb, Vec<String>) {
        let (verb, flags) = split(args.iter().map(OsString::from).collect());
        (verb, flags.into_iter().map(|flag| flag.into_string().unwrap()).collect())
    }

    #[test]
    fn the_file_becomes_a_flag() {
        let run = split_of(&["ringback-feed", "f.toml", "--log", "debug"]);
        assert_eq!(
            run,
            (Verb::Run, ["ringback-feed", "--feeds", "f.toml", "--log", "debug"].map(String::from).to_vec())
        );
        assert_eq!(split_of(&["ringback-feed", "--help"]).1, ["ringback-feed", "--help"]);
        let check = split_of(&["ringback-feed", "check", "f.toml"]);
        assert_eq!(check, (Verb::Check, ["ringback-feed", "--feeds", "f.toml"].map(String::from).to_vec()));
        let seek =
            split_of(&["ringback-feed", "seek", "f.toml", "orders", "2026-11-20T10:00:00Z", "--prefix", "p"]);
        let verb = Verb::Seek("orders".to_owned(), "2026-11-20T10:00:00Z".to_owned());
        assert_eq!(
            seek,
            (verb, ["ringback-feed", "--feeds", "f.toml", "--prefix", "p"].map(String::from).to_vec())
        );
    }
}
