//! How the archiver is started as a child process: its program, its environment and its pipes.

use std::path::PathBuf;
use std::process::Stdio;

use ringback_core::enum_names::must_be;
use ringback_service::Lookup;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::sink::SinkError;

const PROGRAM: &str = "ringback-archiver";
/// Settings of this process that the child has too, beside those of the archive.
const SHARED: [&str; 3] = ["CA_FILE", "LOG", "LOG_FORMAT"];

/// Where an archiver gets ended jobs from: the setting `ARCHIVE_SOURCE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum Source {
    Store,
    /// From the process that started it.
    Pipe,
    /// From nowhere: it answers queries of the process that started it.
    History,
}

/// The archiver as a child: its program, and what it gets as its environment.
#[derive(Clone, Debug)]
pub struct ChildProgram {
    program: PathBuf,
    environment: Vec<(String, String)>,
}

impl ChildProgram {
    /// The archiver beside this program, or else that of PATH, with these settings of this process in its environment.
    pub fn new(lookup: &mut Lookup, settings: &[&str], source: Source) -> Self {
        let names = settings.iter().copied().chain(SHARED);
        let values = names.map(|name| (format!("RINGBACK_{name}"), lookup.text(name)));
        let mut environment: Vec<_> = values.filter(|(_, value)| !value.is_empty()).collect();
        environment.push(("RINGBACK_ARCHIVE_SOURCE".to_owned(), source.to_string()));
        environment.push(("RINGBACK_ADMIN_LISTEN".to_owned(), "127.0.0.1:0".to_owned()));
        let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
        let program = beside.filter(|path| path.exists()).unwrap_or_else(|| PROGRAM.into());
        Self { program, environment }
    }

    /// A program without settings.
    #[cfg(test)]
    pub(super) fn at(program: &str) -> Self {
        Self { program: program.into(), environment: Vec::new() }
    }

    /// Starts the program, without other variables of this process. The process is killed when it is dropped.
    pub(super) fn start(&self) -> Result<(Child, ChildStdin, ChildStdout), SinkError> {
        let mut command = Command::new(&self.program);
        // The address of the public port and the like are not for it.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("RINGBACK_") || name.starts_with("OTEL_")) {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            SinkError(format!(
                "{} cannot be started: {error}; it is built with `cargo build --release --package ringback-archiver` and has to be beside this program, or in PATH",
                self.program.display()
            ))
        })?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((child, stdin, stdout)),
            _ => Err(ended()),
        }
    }
}

pub(super) fn ended() -> SinkError {
    SinkError("the archiver has ended; its last lines in the log say why".to_owned())
}

/// The error of an answer that was not asked for.
pub(super) fn unexpected() -> SinkError {
    SinkError("the archiver is of another version".to_owned())
}
