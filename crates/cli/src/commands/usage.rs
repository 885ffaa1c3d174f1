//! Makes errors of the command line show the whole usage of the command that was called.
//!
//! By itself clap shows in an error only the arguments that are required or were given, a server from the environment
//! among them, as if `--server` were required.

use clap::{ArgMatches, Command};

/// The same command line, where each command has the usage of its help in its errors too.
pub(crate) fn fixed(command: Command) -> Command {
    let mut built = command.clone();
    built.build();
    with_usage(command, &mut built)
}

/// Fixes the usage of a command and of those below it, as `built` shows it in its help.
fn with_usage(command: Command, built: &mut Command) -> Command {
    let usage = built.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    let names: Vec<_> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let fix = |command: Command, name: String| {
        let built = built.find_subcommand_mut(&name).expect("both have the same definitions");
        command.mut_subcommand(name, |below| with_usage(below, built))
    };
    names.into_iter().fold(command, fix).override_usage(usage)
}

/// The innermost subcommand that was called.
pub(crate) fn called(command: &Command, matches: &ArgMatches) -> Command {
    let below = matches.subcommand().and_then(|(name, of)| Some((command.find_subcommand(name)?, of)));
    below.map_or_else(|| command.clone(), |(below, matches)| called(below, matches))
}
