//! The command line of a process: one flag per setting, and `--print-config`. `ringback up` builds its
//! own command from [`flag`] and [`print_config`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::{Arg, ArgAction, Command};
use ringback_core::connection_url::shown_in_text;

use crate::config::{Setting, in_words};

/// The name of the flag that [`print_config`] creates.
pub const PRINT_CONFIG: &str = "print-config";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Flags {
    /// The values of the flags, by setting name.
    pub(crate) values: BTreeMap<String, String>,
    /// True to print the configuration instead of running.
    pub(crate) print_config: bool,
}

/// Parses `args`; the first one is the name of the program. The error can also be a call for help or the version.
pub(crate) fn parse(
    command: Command,
    settings: &[Setting],
    args: impl IntoIterator<Item = OsString>,
) -> Result<Flags, clap::Error> {
    let flags = settings.iter().filter_map(flag);
    let matches = command.args(flags).arg(print_config()).try_get_matches_from(args)?;
    // A secret has no flag.
    let value = |setting: &Setting| {
        let value = matches.try_get_one::<String>(setting.name).ok().flatten()?;
        Some((setting.name.to_owned(), value.clone()))
    };
    Ok(Flags {
        values: settings.iter().filter_map(value).collect(),
        print_config: matches.get_flag(PRINT_CONFIG),
    })
}

/// Prints help to standard output, and an error of the command line to standard error. An error quotes the argument,
/// which may be a URL with a password: that is hidden. A closed output is not an error.
pub fn print_usage(error: &clap::Error) {
    let text = error.render().to_string();
    let shown = in_words(&shown_in_text(&text));
    if error.use_stderr() && shown != text {
        io::stderr().write_all(shown.as_bytes()).ok();
    } else {
        error.print().ok();
    }
}

/// Creates the flag `--print-config`.
#[must_use]
pub fn print_config() -> Arg {
    Arg::new(PRINT_CONFIG)
        .long(PRINT_CONFIG)
        .action(ArgAction::SetTrue)
        .help("Print the configuration in effect, secrets hidden, and exit")
}

/// Creates the flag of a setting. Its help text names the variable and the default. `None` for a secret.
#[must_use]
pub fn flag(setting: &Setting) -> Option<Arg> {
    let default = if setting.default.is_empty() { "empty" } else { setting.default };
    let flag = Arg::new(setting.name)
        .long(setting.flag()?.trim_start_matches('-').to_owned())
        .value_name("VALUE")
        .help(format!("{} [env: {}] [default: {default}]", setting.help, setting.env()));
    Some(flag)
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    const SETTINGS: &[Setting] = &[
        Setting::new("LOCK_TTL", "5s", "how long a lock holds"),
        Setting::new("EGRESS_ALLOW", "", "networks let through"),
        Setting::secret(("MASTER_KEYS", "", "keys that seal")),
    ];

    fn ask(args: &[&str]) -> Result<Flags, clap::Error> {
        let args = std::iter::once(&"ringback-test").chain(args).map(OsString::from);
        parse(Command::new("ringback-test").version("1.2.3"), SETTINGS, args)
    }

    #[test]
    fn only_flags_that_were_given_have_values() {
        let flags = ask(&["--lock-ttl", "7s"]).unwrap();
        assert_eq!(flags.values, BTreeMap::from([("LOCK_TTL".to_owned(), "7s".to_owned())]));
        assert!(!flags.print_config);
        assert_eq!(ask(&["--egress-allow=", "--print-config"]).unwrap().values["EGRESS_ALLOW"], "");
    }

    #[test]
    fn help_shows_variable_default_and_meaning() {
        let help = ask(&["--help"]).unwrap_err();
        assert_eq!(help.kind(), ErrorKind::DisplayHelp);
        let text = help.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("--lock-ttl <VALUE> how long a lock holds [env: RINGBACK_LOCK_TTL] [default: 5s]"),
            "{text}"
        );
        assert!(text.contains("[env: RINGBACK_EGRESS_ALLOW] [default: empty]"), "{text}");
    }

    #[test]
    fn an_unknown_flag_is_an_error() {
        assert_eq!(ask(&["--lok-ttl", "7s"]).unwrap_err().kind(), ErrorKind::UnknownArgument);
        assert_eq!(ask(&["stray"]).unwrap_err().kind(), ErrorKind::UnknownArgument);
    }

    #[test]
    fn a_secret_has_no_flag() {
        assert_eq!(ask(&["--master-keys", "a:b"]).unwrap_err().kind(), ErrorKind::UnknownArgument);
        assert!(ask(&[]).unwrap().values.is_empty());
        assert!(!ask(&["--help"]).unwrap_err().to_string().contains("master-keys"));
    }

    #[test]
    fn the_version_is_printed() {
        assert_eq!(ask(&["--version"]).unwrap_err().to_string(), "ringback-test 1.2.3\n");
    }
}
