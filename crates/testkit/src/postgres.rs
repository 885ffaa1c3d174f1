//! A private PostgreSQL per test: its own port, its own directory, 127.0.0.1 only. Its programs are those of
//! `POSTGRES_BIN`, else those that `deploy/local/postgres.sh` finds.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};
use tempfile::TempDir;

use crate::child::Child;
use crate::network::free_port;
use crate::time::eventually;

/// The limit until a server accepts connections, after a crash too.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// The user that the server runs as, because it refuses to run as root.
const USER: &str = "postgres";

/// A running server; it is killed when this is dropped.
pub struct PostgresServer {
    programs: PathBuf,
    port: u16,
    fsync: &'static str,
    child: Child,
    // Dropped after the child, so that nobody writes into the directory any more.
    dir: TempDir,
}

impl PostgresServer {
    /// Makes a new database cluster and starts it without fsync, so a crash of the machine would lose data.
    pub async fn start() -> Self {
        Self::launch("off").await
    }

    /// Makes a new database cluster and starts it with fsync, as in an installation.
    pub async fn durable() -> Self {
        Self::launch("on").await
    }

    async fn launch(fsync: &'static str) -> Self {
        let programs = programs();
        let dir = tempfile::Builder::new().prefix("ringback-postgres-").tempdir().expect("a temp directory");
        if geteuid().is_root() {
            let user = User::from_name(USER)
                .expect("users can be read")
                .expect("PostgreSQL's package adds its user");
            chown(dir.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("root may do so");
        }
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700))
            .expect("its own directory");
        let mut initdb = command(&programs, "initdb");
        initdb.arg("--pgdata").arg(data(&dir)).args(["--auth=trust", "--username=postgres", "--no-sync"]);
        let done = initdb.args(["--encoding=UTF8", "--locale=C"]).output().expect("initdb starts");
        assert!(done.status.success(), "initdb: {}", String::from_utf8_lossy(&done.stderr));
        let port = free_port();
        let child = spawn(&programs, &dir, port, fsync);
        let server = Self { programs, port, fsync, child, dir };
        server.accepts().await;
        server
    }

    /// `postgres://postgres@127.0.0.1:<port>/postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Makes the server accept only TLS connections from its next start on, with copies of this certificate and key.
    pub fn require_tls(&self, certificate: &Path, key: &Path) {
        let data = data(&self.dir);
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(name);
            std::fs::copy(from, &to).expect("it is copied");
            let owner = std::fs::metadata(&data).expect("the data are there");
            chown(&to, Some(owner.uid()), Some(owner.gid())).expect("it may do so");
            std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).expect("its own file");
        }
        std::fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n")
            .expect("it is written");
        let mut settings =
            std::fs::OpenOptions::new().append(true).open(data.join("postgresql.conf")).expect("it is there");
        settings.write_all(b"ssl = on\n").expect("it is written");
    }

    /// Sends SIGKILL to the server. The processes of its connections end by themselves.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Sends SIGSTOP to the server and all of its child processes, or SIGCONT if `is_paused` is false.
    pub fn pause(&mut self, is_paused: bool) {
        let signal = if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT };
        for pid in children(self.child.pid()) {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).ok();
        }
        self.child.signal(signal);
    }

    /// Kills the server if it runs, starts it again on the same port and data, and waits until it accepts connections.
    pub async fn restart(&mut self) {
        self.child.kill();
        // The server refuses to start while processes of the former one are still about to end.
        eventually(START_DEADLINE, "the server starts again", async || {
            if self.child.exit_status().is_some() {
                self.child = spawn(&self.programs, &self.dir, self.port, self.fsync);
            }
            if self.is_ready() { Ok(()) } else { Err(self.child.log_tail()) }
        })
        .await;
    }

    /// Whether the server accepts connections. While it recovers from a crash, it does not.
    fn is_ready(&self) -> bool {
        let mut ready = Command::new(self.programs.join("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        ready.status().is_ok_and(|status| status.success())
    }

    async fn accepts(&self) {
        eventually(START_DEADLINE, "PostgreSQL accepts connections", async || {
            if self.is_ready() { Ok(()) } else { Err(self.child.log_tail()) }
        })
        .await;
    }
}

fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}

fn spawn(programs: &Path, dir: &TempDir, port: u16, fsync: &str) -> Child {
    let mut command = command(programs, "postgres");
    command.arg("-D").arg(data(dir)).args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"]).arg(dir.path());
    // Without fsync, data of a killed process stay with the operating system; the machine does not crash here.
    command.args(["-c", &format!("fsync={fsync}"), "-c", "max_connections=20", "-c", "shared_buffers=16MB"]);
    Child::spawn("postgres", &mut command, &dir.path().join("log"))
}

/// A command that runs a program of PostgreSQL: as [`USER`] if this process is root, else as its own user.
fn command(programs: &Path, name: &str) -> Command {
    let program = programs.join(name);
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let ids = ["--reuid", "--regid"].map(|id| format!("{id}={USER}"));
    command.args(ids).arg("--clear-groups").arg(program).current_dir("/");
    command
}

/// The process ids of a process's children; empty if the process has ended.
fn children(pid: u32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn programs() -> PathBuf {
    if let Some(found) = std::env::var_os("POSTGRES_BIN") {
        return found.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/local/postgres.sh");
    let found = Command::new(&script).output().expect("the script starts");
    assert!(found.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&found.stderr));
    let path = String::from_utf8(found.stdout).expect("a path");
    OsStr::new(path.trim()).into()
}
