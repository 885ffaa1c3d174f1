//! The flags of `ringback up`: one per setting, as the other binaries have them, and `--demo`. The settings are defined
//! here too, for help, completions and usage errors; `ringback-service` parses their values as it does for every
//! process.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use ringback_service::flags::{self, PRINT_CONFIG};
use ringback_service::{Setting, config, settings};

use super::config as up;
use crate::args::Remote;

/// The name of the flag for a receiver in the same process.
const DEMO: &str = "demo";

/// What is given on the command line.
#[derive(Clone, Debug)]
pub(crate) struct UpArgs {
    /// The flags of settings, each as one argument.
    pub(crate) settings: Vec<OsString>,
    pub(crate) demo: Option<DemoPort>,
}

/// The port of the receiver in the same process; 0 is any free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoPort {
    Default,
    Chosen(u16),
}

impl DemoPort {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::Default),
            text => text.parse().map(Self::Chosen).map_err(|_| "a port is 0 to 65535; 0 is any".to_owned()),
        }
    }
}

impl Args for UpArgs {
    fn augment_args(command: Command) -> Command {
        // The flags of every command that calls the API; they have no meaning here.
        let command = Remote::augment_args(command).mut_args(|flag| flag.hide(true)).next_help_heading(None);
        let flag = |setting| Some(flags::flag(setting)?.value_parser(value_parser!(OsString)));
        let demo = Arg::new(DEMO)
            .long(DEMO)
            .value_name("PORT")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("")
            .value_parser(DemoPort::parse)
            .help(
                "Also receive and print deliveries, as `ringback listen` does, on this port of 127.0.0.1 [default: \
                8080, or another one if that is in use]",
            );
        command.args(all().iter().filter_map(flag)).arg(flags::print_config()).arg(demo)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for UpArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |setting: &Setting| {
            let mut flag = OsString::from(setting.flag()? + "=");
            flag.push(matches.get_one::<OsString>(setting.name)?);
            Some(flag)
        };
        let demo = matches.get_one::<DemoPort>(DEMO).copied();
        check_remote(matches, demo.is_some())?;
        let print_config = matches.get_flag(PRINT_CONFIG).then(|| format!("--{PRINT_CONFIG}").into());
        Ok(Self { settings: all().iter().filter_map(given).chain(print_config).collect(), demo })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Refuses the flags that only other commands use. Their environment variables may be set.
fn check_remote(matches: &ArgMatches, has_demo: bool) -> Result<(), clap::Error> {
    let is_given = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    let refused = |why: String| Err(clap::Error::raw(ErrorKind::ArgumentConflict, why));
    if is_given(&"server") {
        return refused(
            "`ringback up` runs a server and calls none; where it listens: --api-listen".to_owned(),
        );
    }
    if is_given(&"tenant") {
        return refused("`ringback up` runs a server, which has all tenants".to_owned());
    }
    match ["output", "json", "utc"].iter().find(|flag| is_given(flag) && !has_demo) {
        Some(flag) => {
            refused(format!("--{flag} is for the requests that --demo prints; the log: --log-format"))
        }
        None => Ok(()),
    }
}

fn all() -> Vec<Setting> {
    config::distinct(&[up::settings(), &[settings::SETTINGS]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<Vec<OsString>, clap::Error> {
        let matches = UpArgs::augment_args(Command::new("up")).try_get_matches_from(line.split(' '))?;
        Ok(UpArgs::from_arg_matches(&matches)?.settings)
    }

    #[test]
    fn a_receiver_has_the_port_that_is_given() {
        let demo = |line: &str| {
            let matches = UpArgs::augment_args(Command::new("up")).try_get_matches_from(line.split(' '))?;
            UpArgs::from_arg_matches(&matches).map(|args| args.demo)
        };
        assert_eq!(demo("up").unwrap(), None);
        assert_eq!(demo("up --demo --shutdown-timeout 5s").unwrap(), Some(DemoPort::Default));
        assert_eq!(demo("up --demo=9000 --json").unwrap(), Some(DemoPort::Chosen(9000)));
        for wrong in [
            "up --demo 9000",
            "up --demo=70000",
            "up --demo=here",
            "up --json",
            "up --server http://h",
            "up --tenant a",
        ] {
            assert!(demo(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_given_flags_are_passed_on() {
        assert_eq!(given("up").unwrap(), [""; 0]);
        assert_eq!(
            given("up --shutdown-timeout 5s --store=redis://h:1 --print-config --retry=").unwrap(),
            ["--store=redis://h:1", "--retry=", "--shutdown-timeout=5s", "--print-config"]
        );
    }

    #[test]
    fn unknown_flags_are_refused() {
        for line in ["up --colour red", "up now", "up --shutdown-timeout 1s --shutdown-timeout 2s"] {
            assert!(given(line).is_err(), "{line}");
        }
    }
}
