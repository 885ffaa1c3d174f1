//! The flags of `ringback up`, one per setting, as the other binaries have them. They are defined here too, for help,
//! completions and usage errors; `ringback-service` parses their values as it does for every process.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, FromArgMatches, value_parser};
use ringback_service::flags::{self, PRINT_CONFIG};
use ringback_service::{Setting, config, settings};

use super::config as up;
use crate::args::Remote;

/// The given flags, each as one argument.
#[derive(Clone, Debug)]
pub(crate) struct UpArgs {
    pub(crate) flags: Vec<OsString>,
}

impl Args for UpArgs {
    fn augment_args(command: Command) -> Command {
        // The flags of every command that calls the API; they have no meaning here.
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
            let mut flag = OsString::from(setting.flag() + "=");
            flag.push(matches.get_one::<OsString>(setting.name)?);
            Some(flag)
        };
        let print_config = matches.get_flag(PRINT_CONFIG).then(|| format!("--{PRINT_CONFIG}").into());
        Ok(Self { flags: all().iter().filter_map(given).chain(print_config).collect() })
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
    use super::*;

    fn given(line: &str) -> Result<Vec<OsString>, clap::Error> {
        let matches = UpArgs::augment_args(Command::new("up")).try_get_matches_from(line.split(' '))?;
        Ok(UpArgs::from_arg_matches(&matches)?.flags)
    }

    #[test]
    fn only_given_flags_are_passed_on() {
        assert_eq!(given("up").unwrap(), [""; 0]);
        assert_eq!(
            given("up --drain 5s --store=redis://h:1 --print-config --retry=").unwrap(),
            ["--store=redis://h:1", "--retry=", "--drain=5s", "--print-config"]
        );
    }

    #[test]
    fn unknown_flags_are_refused() {
        for line in ["up --colour red", "up now", "up --drain 1s --drain 2s"] {
            assert!(given(line).is_err(), "{line}");
        }
    }
}
