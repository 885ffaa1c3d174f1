//! How a Ringback process lives: configuration, telemetry, signals and shutdown, the admin port.
//!
//! A binary describes itself as a [`Service`] and hands over its work; nothing in here knows what
//! that work is. In reading order: [`config`], [`settings`], [`flags`], [`shutdown`], [`tasks`], [`admin`],
//! [`telemetry`], [`trace`], [`backoff`], [`dependency`],
//! [`files`], [`random`], [`name`].

pub mod admin;
pub mod backoff;
pub mod config;
pub mod dependency;
pub mod files;
pub mod flags;
pub mod name;
mod process;
pub mod random;
pub mod settings;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod trace;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Command;
use opentelemetry::metrics::Meter;

pub use crate::admin::Health;
pub use crate::config::{Lookup, Setting};
pub use crate::shutdown::Shutdown;
pub use crate::tasks::Tasks;
pub use crate::trace::TraceParent;

use crate::process::Process;
pub use crate::process::USAGE;
use crate::settings::Own;

/// What a binary is: its name, its settings, and how they become its configuration.
pub struct Service<C> {
    /// Such as `ringback-api`.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Shown by `--version`.
    pub version: &'static str,
    /// The settings, in groups. One of them lists `ADMIN_LISTEN`; [`settings::SETTINGS`] is added.
    /// Where two groups list the same name the first one's default counts.
    pub settings: &'static [&'static [Setting]],
    /// Reads the configuration; may look at [`settings::SETTINGS`] too, for cross-checks.
    pub load: fn(&mut Lookup) -> C,
}

/// What a process gives to the work in its midst.
#[derive(Clone, Debug)]
pub struct Context {
    /// When to stop.
    pub shutdown: Shutdown,
    /// Whether the work can be done; not ready before the first check is set.
    pub health: Health,
    /// Makes the instruments that `/metrics` shows.
    pub meter: Meter,
}

impl Context {
    /// Spawns a task that has something to find out first: the process is not ready until the
    /// task calls what it is given. It ends when the shutdown begins.
    pub fn spawn_reader<F>(
        &self,
        name: &'static str,
        tasks: &mut Tasks,
        task: impl FnOnce(Box<dyn FnOnce() + Send>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (health, shutdown) = (self.health.clone(), self.shutdown.clone());
        health.set(name, false, "not read yet");
        let task = task(Box::new(move || health.set(name, true, "known")));
        tasks.spawn(name, async move {
            tokio::select! {
                () = task => {}
                () = shutdown.stopping() => {}
            }
        });
    }
}

impl<C> Service<C> {
    /// Lives from the command line to the exit status: 0 after a clean shutdown, 1 when `run`
    /// fails, panics, outlasts its grace or ends unasked, 64 for a wrong command line or
    /// configuration, 130 or 143 after a second signal.
    ///
    /// `run` shares a thread with the watch over signals: whatever may block or compute for long
    /// belongs in [`Tasks`].
    pub fn main<F, Fut>(self, run: F) -> ExitCode
    where
        F: FnOnce(C, Context) -> Fut,
        Fut: Future<Output = anyhow::Result<()>>,
    {
        self.main_with(std::env::args_os(), run)
    }

    /// Like [`main`](Self::main), for a subcommand: the first of `args` is the program's name.
    pub fn main_with<F, Fut>(self, args: impl IntoIterator<Item = OsString>, run: F) -> ExitCode
    where
        F: FnOnce(C, Context) -> Fut,
        Fut: Future<Output = anyhow::Result<()>>,
    {
        match self.prepare(args, &config::environment()) {
            Ok((config, process)) => process.run(|context| run(config, context)),
            Err(code) => code,
        }
    }

    /// Everything up to the point where life begins, or the exit status when it does not.
    fn prepare(
        &self,
        args: impl IntoIterator<Item = OsString>,
        env: &BTreeMap<String, String>,
    ) -> Result<(C, Process), ExitCode> {
        let groups: Vec<&'static [Setting]> =
            self.settings.iter().copied().chain([settings::SETTINGS]).collect();
        let command = Command::new(self.name).bin_name(self.name).about(self.about).version(self.version);
        let flags = flags::parse(command, &config::distinct(&groups), args).map_err(|error| {
            // To stdout for --help and --version; when that is closed nobody is listening.
            error.print().ok();
            ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
        })?;
        let mut lookup = Lookup::new(&groups, flags.values, env.clone());
        let config = (self.load)(&mut lookup);
        let own = Own::load(&mut lookup, env);
        if !lookup.mistakes().is_empty() {
            return Err(process::refuse(&self.mistakes(&lookup), USAGE));
        }
        if flags.print_config {
            print_config(&lookup);
            return Err(ExitCode::SUCCESS);
        }
        let unknown_variables = lookup.unknown_variables().into_iter().map(str::to_owned).collect();
        Ok((config, Process { name: self.name, version: self.version, own, unknown_variables }))
    }

    fn mistakes(&self, lookup: &Lookup) -> String {
        let lines = lookup.mistakes().iter().map(|mistake| format!("{}: {mistake}", self.name));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn print_config(lookup: &Lookup) {
    let lines: String =
        lookup.effective().iter().map(|(variable, value)| format!("{variable}={value}\n")).collect();
    // A reader that went away has seen enough.
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
        assert_eq!(prepare(&["--drain", "5"], &[]).err(), Some(exits_with(64)));
    }
}
