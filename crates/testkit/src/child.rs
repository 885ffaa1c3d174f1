//! A child process that writes its output to a log file, or to a pipe that nobody reads, and is killed when its value is
//! dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child as StdChild, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

/// The most that is printed of a log, in bytes from its end.
const LOG_TAIL: usize = 16 * 1024;
/// What a pipe takes before a write to it blocks.
const PIPE: usize = 64 * 1024;

/// A child process and the log file of its output. It is killed when this is dropped.
pub struct Child {
    name: String,
    child: StdChild,
    exited: Option<ExitStatus>,
    log: PathBuf,
    /// The end of a pipe that nobody reads.
    unread: Option<PipeReader>,
}

impl Child {
    /// Starts `command`; standard output and standard error are appended to `log`.
    pub fn spawn(name: &str, command: &mut Command, log: &Path) -> Self {
        let out = open(log);
        let err = out.try_clone().expect("a file handle can be cloned");
        Self::start(name, command.stdout(out).stderr(err), log, None)
    }

    /// Starts `command` with standard output and standard error on one full pipe, so its writes block until
    /// [`Self::read_output`] or [`Self::close_output`].
    pub(crate) fn spawn_unread(name: &str, command: &mut Command, log: &Path) -> Self {
        let (unread, mut out) = io::pipe().expect("a pipe");
        out.write_all(&[b'\n'; PIPE]).expect("an empty pipe takes as much");
        let err = out.try_clone().expect("a pipe can be cloned");
        Self::start(name, command.stdout(out).stderr(err), log, Some(unread))
    }

    fn start(name: &str, command: &mut Command, log: &Path, unread: Option<PipeReader>) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name: name.to_owned(), child, exited: None, log: log.to_owned(), unread }
    }

    /// Starts to copy what the process writes into the log, in a thread that ends with the process. Panics if nothing
    /// was left unread.
    pub(crate) fn read_output(&mut self) {
        let mut pipe = self.unread.take().expect("it was started with a pipe that nobody reads");
        let mut log = open(&self.log);
        // The thread ends with the child.
        thread::spawn(move || io::copy(&mut pipe, &mut log));
    }

    /// Closes the unread pipe, so the process's writes fail from now on. Panics if nothing was left unread.
    pub(crate) fn close_output(&mut self) {
        self.unread.take().expect("it was started with a pipe that nobody reads");
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, unless the process has ended: its pid may belong to another process by then.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.exit_status().is_none() {
            let pid = i32::try_from(self.child.id()).expect("a pid fits");
            kill(Pid::from_raw(pid), signal)
                .unwrap_or_else(|error| panic!("{signal} to {}: {error}", self.name));
        }
    }

    /// The exit status; `None` while the process runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            self.exited = self.child.try_wait().expect("a child can be waited for");
        }
        self.exited
    }

    /// Waits until the process has ended. Panics if that takes longer than `within`.
    pub async fn wait_exit(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.exit_status() {
                return status;
            }
            assert!(Instant::now() < deadline, "{} has not ended within {within:?}", self.name);
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill(&mut self) {
        if self.exit_status().is_none() {
            // Both fail only when it has just ended by itself.
            let _ = self.child.kill();
            self.exited = self.child.wait().ok();
        }
    }

    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn log_tail(&self) -> String {
        let log = self.log();
        let start = log.len().saturating_sub(LOG_TAIL);
        let start = (start..log.len()).find(|&at| log.is_char_boundary(at)).unwrap_or(start);
        log[start..].to_owned()
    }
}

fn open(log: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(log).expect("the temp directory is writable")
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            show(&self.name, self.child.id(), &self.log_tail());
        }
    }
}

#[expect(clippy::print_stderr, reason = "the log of a server explains why a test failed")]
fn show(name: &str, pid: u32, log: &str) {
    eprintln!("---- {name} (pid {pid}) printed ----\n{log}\n---- end of {name} ----");
}
