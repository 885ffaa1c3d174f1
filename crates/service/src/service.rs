//! A Ringback binary: its settings, its command line, and its way from `main` to an exit status.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Command;

use crate::config::{self, Lookup, Setting};
use crate::context::Context;
use crate::flags;
use crate::process::{self, FAILURE, Process, USAGE};
use crate::settings::{self, ProcessSettings};

/// A binary: its name, its settings, and the function that reads them.
pub struct Service<C> {
    /// The name of the binary, such as `ringback-api`.
    pub name: &'static str,
    /// The description in `--help`, one line.
    pub about: &'static str,
    /// The usage in `--help`, if the command line has more than flags. The caller turns the rest into flags.
    pub usage: Option<&'static str>,
    pub version: &'static str,
    /// The settings, in groups. One group lists `ADMIN_LISTEN`; [`settings::SETTINGS`] is added to
    /// them. If two groups list the same name, the default of the first one counts.
    pub settings: &'static [&'static [Setting]],
    /// Reads the configuration. For cross-checks it may read [`settings::SETTINGS`] too.
    pub load: fn(&mut Lookup) -> C,
}

impl<C: 'static> Service<C> {
    /// Runs the process and returns its exit status: 0 after a clean shutdown; 1 when `run` fails,
    /// panics, outlasts the grace period or returns before the shutdown; 64 for a wrong command line
    /// or configuration; 130 or 143 after a second signal.
    ///
    /// `run` shares a thread with the signal handler, so work that blocks or computes for long
    /// belongs in [`Tasks`](crate::Tasks).
    pub fn main<F, Fut>(self, run: F) -> ExitCode
    where
        F: FnOnce(C, Context) -> Fut + 'static,
        Fut: Future<Output = anyhow::Result<()>> + 'static,
    {
        self.main_with(std::env::args_os(), run)
    }

    /// Like [`main`](Self::main) with the given arguments. The first one is the name of the program.
    pub fn main_with<F, Fut>(self, args: impl IntoIterator<Item = OsString>, run: F) -> ExitCode
    where
        F: FnOnce(C, Context) -> Fut + 'static,
        Fut: Future<Output = anyhow::Result<()>> + 'static,
    {
        self.main_unless(args, |_| Ok(()), run)
    }

    /// Like [`main_with`](Self::main_with), after a check of the configuration: its error is printed, and the exit
    /// status is 1. Nothing is open by then.
    pub fn main_unless<F, Fut>(
        self,
        args: impl IntoIterator<Item = OsString>,
        check: impl FnOnce(&C) -> Result<(), String>,
        run: F,
    ) -> ExitCode
    where
        F: FnOnce(C, Context) -> Fut + 'static,
        Fut: Future<Output = anyhow::Result<()>> + 'static,
    {
        #[cfg(debug_assertions)]
        crate::fault_plan::install();
        match self.prepare(args, &config::environment()) {
            Ok((config, process)) => match check(&config) {
                Ok(()) => process.run(Box::new(move |context| Box::pin(run(config, context)))),
                Err(why) => process::refuse(&why, FAILURE),
            },
            Err(code) => code,
        }
    }

    /// Runs a short command instead of the service: without admin port, log and signals. Returns its exit status, or
    /// those of [`main`](Self::main).
    pub fn once<F, Fut>(self, args: impl IntoIterator<Item = OsString>, run: F) -> ExitCode
    where
        F: FnOnce(C) -> Fut,
        Fut: Future<Output = anyhow::Result<ExitCode>>,
    {
        match self.prepare(args, &config::environment()) {
            Ok((config, _)) => process::once(self.name, run(config)),
            Err(code) => code,
        }
    }

    /// Reads command line and settings. The error is the exit status after printing help, configuration or mistakes.
    fn prepare(
        &self,
        args: impl IntoIterator<Item = OsString>,
        env: &BTreeMap<String, String>,
    ) -> Result<(C, Process), ExitCode> {
        let groups: Vec<&'static [Setting]> =
            self.settings.iter().copied().chain([settings::SETTINGS]).collect();
        let command = Command::new(self.name).bin_name(self.name).about(self.about).version(self.version);
        let command = match self.usage {
            Some(usage) => command.override_usage(usage),
            None => command,
        };
        let flags = flags::parse(command, &config::distinct(&groups), args).map_err(|error| {
            flags::print_usage(&error);
            ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
        })?;
        let mut lookup = Lookup::new(&groups, flags.values, env.clone());
        let config = (self.load)(&mut lookup);
        let settings = ProcessSettings::load(&mut lookup, env);
        if !lookup.mistakes().is_empty() {
            return Err(process::refuse(&self.mistakes(&lookup), USAGE));
        }
        if flags.print_config {
            print_config(&lookup);
            return Err(ExitCode::SUCCESS);
        }
        let unknown_variables = lookup.unknown_variables().into_iter().map(str::to_owned).collect();
        Ok((config, Process { name: self.name, version: self.version, settings, unknown_variables }))
    }

    fn mistakes(&self, lookup: &Lookup) -> String {
        let lines = lookup.mistakes().iter().map(|mistake| format!("{}: {mistake}", self.name));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn print_config(lookup: &Lookup) {
    let lines: String =
        lookup.effective().iter().map(|(variable, value)| format!("{variable}={value}\n")).collect();
    // A closed pipe is not an error.
    io::stdout().write_all(lines.as_bytes()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &[Setting] = &[
        Setting::new("ADMIN_LISTEN", "127.0.0.1:7412", "The admin port"),
        Setting::new("SHARDS", "8", "How many shards"),
    ];

    fn prepare(args: &[&str], env: &[(&str, &str)]) -> Result<(u16, Process), String> {
        let service = Service {
            name: "ringback-test",
            about: "Nothing",
            usage: None,
            version: "1.2.3",
            settings: &[SETTINGS],
            load: |lookup: &mut Lookup| lookup.number_in("SHARDS", 1..=64_u16),
        };
        let args = std::iter::once(&"ringback-test").chain(args).map(OsString::from);
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        service.prepare(args, &env).map_err(|code| format!("{code:?}"))
    }

    fn exits_with(code: u8) -> String {
        format!("{:?}", ExitCode::from(code))
    }

    #[test]
    fn flags_and_environment_become_the_configuration() {
        let (shards, process) = prepare(&["--shards", "4"], &[("RINGBACK_LOG_FROMAT", "json")]).unwrap();
        assert_eq!(shards, 4);
        assert_eq!(process.unknown_variables, ["RINGBACK_LOG_FROMAT"]);
    }

    #[test]
    fn a_wrong_value_ends_it_with_64() {
        assert_eq!(prepare(&[], &[("RINGBACK_SHARDS", "0")]).err(), Some(exits_with(64)));
        assert_eq!(prepare(&["--shutdown-timeout", "5"], &[]).err(), Some(exits_with(64)));
    }
}
