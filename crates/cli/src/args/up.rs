//! The flags of `ringback up`: one per setting, as the other binaries have them. They are read
//! here so that help, completions and slips are those of the command line; what the values
//! mean is read where all processes read their settings.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, FromArgMatches, value_parser};
use ringback_service::flags::{self, PRINT_CONFIG};
use ringback_service::{Setting, config, settings};

use super::Remote;
use crate::up;

/// What was given, each flag as one word.
#[derive(Clone, Debug)]
pub(crate) struct UpArgs {
    pub(crate) words: Vec<OsString>,
}

impl Args for UpArgs {
    fn augment_args(command: Command) -> Command {
        // No server is asked here; the flags that say which go with every command.
        let command = Remote::augment_args(command).mut_args(|flag| flag.hide(true)).next_help_heading(None);
        let flag = |setting| flags::flag(setting).value_parser(value_parser!(OsString));
        command.args(all().iter().map(flag)).arg(flags::print_config())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for UpArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |setting: &Setting| {
            let mut word = OsString::from(setting.flag() + "=");
            word.push(matches.get_one::<OsString>(setting.name)?);
            Some(word)
        };
        let print_config = matches.get_flag(PRINT_CONFIG).then(|| format!("--{PRINT_CONFIG}").into());
        Ok(Self { words: all().iter().filter_map(given).chain(print_config).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn all() -> Vec<Setting> {
    config::distinct(&[up::settings(), &[settings::SETTINGS]].concat())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn words(line: &str) -> Vec<OsString> {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Up(args) => args.words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_was_given_is_passed_on() {
        assert_eq!(words("ringback up"), [""; 0]);
        assert_eq!(
            words("ringback up --drain 5s --store=redis://h:1 --print-config --retry="),
            ["--store=redis://h:1", "--retry=", "--drain=5s", "--print-config"]
        );
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for line in ["ringback up --colour red", "ringback up now", "ringback up --drain 1s --drain 2s"] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
