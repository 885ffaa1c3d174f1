//! Starts the workspace's binaries, which are found beside the running test, and signals and restarts them.

mod state;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::child::Child;

/// A binary and its settings. `RINGBACK_*` and `OTEL_*` variables of the caller are not passed on.
#[must_use]
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    binary: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    is_unread: bool,
    has_terminal: bool,
    /// Where the binary is, if it is not one of this build.
    binaries: Option<PathBuf>,
}

impl ProcessSpec {
    /// A binary of this workspace, by name. Its callbacks may go to every address, host and port, because most
    /// receivers of tests are on this machine; [`Self::guarded`] undoes that.
    pub fn new(binary: &str) -> Self {
        let everywhere = [
            ("RINGBACK_EGRESS_ALLOW", "0.0.0.0/0,::/0"),
            ("RINGBACK_EGRESS_HOSTS", "*"),
            ("RINGBACK_EGRESS_PORTS", "1-65535"),
        ];
        Self {
            binary: binary.to_owned(),
            args: Vec::new(),
            env: everywhere.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            is_unread: false,
            has_terminal: true,
            binaries: None,
        }
    }

    /// Gives the address guard its default settings.
    pub fn guarded(self) -> Self {
        let names = ["RINGBACK_EGRESS_ALLOW", "RINGBACK_EGRESS_HOSTS", "RINGBACK_EGRESS_PORTS"];
        // An empty variable counts as unset.
        names.into_iter().fold(self, |spec, name| spec.env(name, ""))
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Adds an environment variable. The last value of a name wins.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the output to a full pipe that nobody reads until [`Process::read_output`], so writes block.
    pub fn unread(mut self) -> Self {
        self.is_unread = true;
        self
    }

    /// Starts the binary in a session of its own, which has no terminal (setsid(1)).
    pub fn without_terminal(mut self) -> Self {
        self.has_terminal = false;
        self
    }

    /// The command that starts the binary, without variables `RINGBACK_…` and `OTEL_…` of this program.
    pub fn command(&self) -> Command {
        let program = match &self.binaries {
            Some(directory) => directory.join(&self.binary),
            None => binary(&self.binary),
        };
        let mut command =
            Command::new(if self.has_terminal { program.as_os_str() } else { "setsid".as_ref() });
        if !self.has_terminal {
            command.arg(program);
        }
        for (name, _) in std::env::vars_os() {
            let ours =
                name.to_str().is_some_and(|name| name.starts_with("RINGBACK_") || name.starts_with("OTEL_"));
            if ours {
                command.env_remove(name);
            }
        }
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the binary without waiting until it is ready.
    pub fn start(self) -> Process {
        let dir = tempfile::Builder::new().prefix("ringback-process-").tempdir().expect("a temp directory");
        let child = spawn(&self, dir.path());
        Process { spec: self, child, dir }
    }
}

/// A running process. Dropping it kills the process, and prints its log when the test has failed.
pub struct Process {
    spec: ProcessSpec,
    child: Child,
    // Dropped after the child, so that nobody writes into the directory any more.
    dir: TempDir,
}

impl Process {
    /// The process id, which changes with each restart.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Sends SIGTERM.
    pub fn term(&mut self) {
        self.child.signal(Signal::SIGTERM);
    }

    /// Sends SIGHUP.
    pub fn hang_up(&mut self) {
        self.child.signal(Signal::SIGHUP);
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Sends SIGSTOP: the process keeps its connections and does nothing.
    pub fn stop(&mut self) {
        self.child.signal(Signal::SIGSTOP);
    }

    /// Sends SIGCONT.
    pub fn cont(&mut self) {
        self.child.signal(Signal::SIGCONT);
    }

    /// Kills the process if it runs, and starts it again with the same settings.
    pub fn restart(&mut self) {
        self.child.kill();
        self.child = spawn(&self.spec, self.dir.path());
    }

    /// Sets an environment variable for the next restart and those after it.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.spec.env.push((name.to_owned(), value.to_owned()));
    }

    /// Sets the directory of the binary for the next restarts; `None` means this build.
    pub fn use_binaries_of(&mut self, directory: Option<PathBuf>) {
        self.spec.binaries = directory;
    }

    /// Starts to read the output of a process that was started [unread](ProcessSpec::unread).
    pub fn read_output(&mut self) {
        self.child.read_output();
    }

    /// Closes the output of a process that was started [unread](ProcessSpec::unread).
    pub fn close_output(&mut self) {
        self.child.close_output();
    }

    /// The exit status; `None` while the process runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.exit_status()
    }

    /// Waits until the process has ended. Panics if that takes longer than `within`.
    pub async fn wait_exit(&mut self, within: Duration) -> ExitStatus {
        self.child.wait_exit(within).await
    }

    /// The value that an environment variable was set to; `None` if it was not set.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.spec.env.iter().rfind(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// The output of the process over all its restarts, as far as it was read.
    pub fn log(&self) -> String {
        self.child.log()
    }
}

fn spawn(spec: &ProcessSpec, dir: &Path) -> Child {
    let mut command = spec.command();
    command.current_dir(dir);
    let start = if spec.is_unread { Child::spawn_unread } else { Child::spawn };
    start(&spec.binary, &mut command, &dir.join("log"))
}

/// The path of a binary: beside this program, or one directory above, as for a test in `target/debug/deps`. Panics if
/// there is none.
fn binary(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("this program knows its own path");
    let found = exe.ancestors().skip(1).take(2).map(|dir| dir.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not beside {}: build them first: cargo build --bins", exe.display())
    })
}
