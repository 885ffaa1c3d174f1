//! A private redis-server (or valkey-server) per test: its own port, its own directory, 127.0.0.1 only.
//!
//! It can be killed and restarted on the same port and data, paused and continued.

mod calls;
mod cluster;
mod instructions;
mod links;
mod options;
mod replication;
mod sentinel;
mod shard_fields;
mod slots;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

pub use self::calls::CallWatch;
pub use self::cluster::RedisCluster;
pub use self::instructions::InstructionCount;
pub use self::options::{Persistence, RedisOptions};
pub use self::sentinel::RedisSentinel;
pub use self::shard_fields::{add_to_shard_field, set_shard_field, shard_field, shard_fields};
pub use self::slots::SlotMove;
use crate::child::Child;
use crate::preload::Seen;
use crate::proxy::Proxy;
use crate::time::eventually;

/// The limit until a server answers its first PING, even if it must load a large append-only file.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// The directory of the append-only files, below that of the server.
const APPEND_ONLY: &str = "appendonlydir";
/// The number of ports to try, because another process may take a free one first.
const PORT_TRIES: usize = 5;

/// A running server; it is killed when this is dropped.
pub struct RedisServer {
    options: Box<RedisOptions>,
    port: u16,
    seen: Option<Box<Seen>>,
    proxies: Vec<Proxy>,
    child: Child,
    // Dropped after the child, so that nobody writes into the directory any more.
    dir: TempDir,
}

impl RedisServer {
    /// A server that keeps nothing on disk and has no memory limit.
    pub async fn start() -> Self {
        RedisOptions::default().start().await
    }

    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    async fn launch(options: RedisOptions, port: u16) -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("ringback-redis-").tempdir().expect("a temp directory");
        let seen = options.preload.as_ref().map(|preload| Box::new(preload.seen()));
        let child = spawn(&options, seen.as_deref(), port, dir.path());
        let mut server = Self { options: Box::new(options), port, seen, proxies: Vec::new(), child, dir };
        server.answers().await?;
        server.start_proxies();
        Ok(server)
    }

    /// `redis://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port that the server listens on, also after restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id, which changes with each restart.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// The value of a field in a section of INFO; empty if there is none.
    pub async fn info_field(&self, section: &str, field: &str) -> String {
        let info = self.info(section).await;
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    }

    pub fn log(&self) -> String {
        self.child.log()
    }

    /// Sends SIGKILL and waits until the server is gone.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Kills the server if it runs, starts it again on the same port and data, and waits until it answers.
    pub async fn restart(&mut self) {
        self.child.kill();
        self.child = spawn(&self.options, self.seen.as_deref(), self.port, self.dir.path());
        self.answers().await.unwrap_or_else(|reason| panic!("{reason}"));
    }

    /// Kills the server, deletes its append-only files, and starts it again on the same port.
    pub async fn restart_empty(&mut self) {
        self.child.kill();
        std::fs::remove_dir_all(self.dir.path().join(APPEND_ONLY)).ok();
        self.restart().await;
    }

    /// The path of the append-only file that the server now writes, and its length in bytes.
    ///
    /// # Panics
    /// If the server keeps no such file.
    #[must_use]
    pub fn append_only_file(&self) -> (PathBuf, u64) {
        let files = std::fs::read_dir(self.dir.path().join(APPEND_ONLY)).expect("it has an append-only file");
        let number = |path: &PathBuf| {
            let name = path.file_name()?.to_str()?.strip_suffix(".incr.aof")?;
            name.rsplit('.').next()?.parse::<u64>().ok()
        };
        let files = files.map(|file| file.expect("a file").path());
        let last = files.filter_map(|path| Some((number(&path)?, path))).max();
        let (_, path) = last.expect("it has an incremental file");
        let length = std::fs::metadata(&path).map_or(0, |file| file.len());
        (path, length)
    }

    /// A copy of the append-only files as they are now.
    ///
    /// # Panics
    /// If the server keeps none.
    #[must_use]
    pub fn copy_data(&self) -> TempDir {
        let copy = tempfile::Builder::new().prefix("ringback-redis-").tempdir().expect("a temp directory");
        copy_files(&self.dir.path().join(APPEND_ONLY), copy.path());
        copy
    }

    /// Kills the server, replaces its append-only files by a copy, and starts it again on the same port.
    pub async fn restart_with(&mut self, copy: &TempDir) {
        self.child.kill();
        let data = self.dir.path().join(APPEND_ONLY);
        std::fs::remove_dir_all(&data).expect("it has an append-only file");
        std::fs::create_dir(&data).expect("a directory");
        copy_files(copy.path(), &data);
        self.restart().await;
    }

    /// Sends SIGSTOP: connections stay open and nothing is answered.
    pub fn stop(&mut self) {
        self.child.signal(Signal::SIGSTOP);
    }

    pub fn cont(&mut self) {
        self.child.signal(Signal::SIGCONT);
    }

    /// Waits until `replicas` replicas have all that was written before the call.
    pub async fn is_replicated_to(&self, replicas: usize) {
        eventually(START_DEADLINE, "replicas have everything", async || self.replicates_to(replicas).await)
            .await;
    }

    /// Waits up to two seconds until `replicas` replicas have all that was written before the call.
    ///
    /// # Errors
    /// If fewer have it by then, or if a call fails, as it does on a replica.
    pub async fn replicates_to(&self, replicas: usize) -> Result<(), String> {
        let mut client = self.client().await;
        // WAIT concerns what was written until the last call of its connection.
        redis::cmd("PING").exec_async(&mut client).await.map_err(|error| error.to_string())?;
        let mut wait = redis::cmd("WAIT");
        let wait = wait.arg(replicas).arg(2_000);
        let have: usize = wait.query_async(&mut client).await.map_err(|error| error.to_string())?;
        if have >= replicas { Ok(()) } else { Err(format!("{have} have it")) }
    }

    /// Opens a connection that waits five seconds for a response. Panics if the server does not answer.
    pub async fn client(&self) -> MultiplexedConnection {
        connect(self.port).await.unwrap_or_else(|error| panic!("redis-server on port {}: {error}", self.port))
    }

    /// Sets the memory limit in bytes; 0 means none.
    pub async fn limit_memory(&self, bytes: u64) {
        let mut config = redis::cmd("CONFIG");
        config.arg("SET").arg("maxmemory").arg(bytes);
        config.exec_async(&mut self.client().await).await.expect("CONFIG SET");
    }

    /// Starts to count the commands that clients send; see [`CallWatch`].
    pub async fn watch_calls(&self) -> CallWatch {
        CallWatch::start(self.port).await
    }

    /// The number of calls of each command, including those from scripts: `calls` of INFO commandstats.
    pub async fn command_calls(&self) -> BTreeMap<String, u64> {
        calls::commandstats(&self.info("commandstats").await)
    }

    /// `used_memory` of INFO, in bytes.
    pub async fn used_memory(&self) -> u64 {
        let info = self.info("memory").await;
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|number| number.trim().parse().ok()).expect("INFO memory has used_memory")
    }

    /// One section of INFO. If the connection breaks, as when a server becomes a replica, a second one is tried.
    async fn info(&self, section: &str) -> String {
        let ask = async || redis::cmd("INFO").arg(section).query_async(&mut connect(self.port).await?).await;
        let answer = match ask().await {
            Err(error) if RedisError::is_io_error(&error) => ask().await,
            answer => answer,
        };
        answer.expect("INFO answers")
    }

    /// Waits until the server's own process answers PING. The error says why it ended, or why no PONG came in time.
    async fn answers(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            let last = match timeout(Duration::from_secs(1), ping(self.port)).await {
                Ok(Ok(())) if self.child.exit_status().is_none() => return Ok(()),
                Ok(Ok(())) => "another process answers on its port".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer within a second".to_owned(),
            };
            if let Some(status) = self.child.exit_status() {
                return Err(format!(
                    "redis-server on port {} ended with {status}: {}",
                    self.port,
                    self.child.log_tail()
                ));
            }
            if Instant::now() >= deadline {
                return Err(format!(
                    "redis-server on port {} is not ready within {START_DEADLINE:?}: {last}",
                    self.port
                ));
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
}

fn spawn(options: &RedisOptions, seen: Option<&Seen>, port: u16, dir: &Path) -> Child {
    let (appendonly, appendfsync) = match options.persistence {
        Persistence::Off => ("no", "no"),
        Persistence::EverySec => ("yes", "everysec"),
        Persistence::Always => ("yes", "always"),
    };
    let binary = server_binary();
    let mut command =
        if options.counts_instructions { InstructionCount::command(binary) } else { Command::new(binary) };
    command.envs(seen.iter().flat_map(|seen| seen.env()).map(|(name, value)| (name, value)));
    if options.is_sentinel {
        // A sentinel keeps its state in this file.
        let file = dir.join("sentinel.conf");
        if !file.exists() {
            let text = "bind 127.0.0.1\nsentinel announce-ip 127.0.0.1\n";
            std::fs::write(&file, text).expect("the directory is writable");
        }
        command.current_dir(dir).arg(&file).args(["--sentinel", "--port"]).arg(port.to_string());
        return Child::spawn("redis-sentinel", &mut command, &dir.join("redis.log"));
    }
    command.current_dir(dir).arg("--port").arg(port.to_string()).arg("--dir").arg(dir);
    command.args(["--bind", "127.0.0.1", "--daemonize", "no", "--save", ""]);
    command.args(["--enable-debug-command", "local"]);
    command.args(["--appendonly", appendonly, "--appendfsync", appendfsync]);
    command.args(["--maxmemory-policy", &options.maxmemory_policy]);
    command.args(options.maxmemory.iter().flat_map(|limit| ["--maxmemory", limit]));
    let bus = options.bus.map(|bus| bus.to_string());
    command.args(bus.iter().flat_map(|bus| ["--cluster-enabled", "yes", "--cluster-port", bus]));
    command.args(&options.args).envs(options.env.iter().map(|(name, value)| (name, value)));
    Child::spawn("redis-server", &mut command, &dir.join("redis.log"))
}

fn copy_files(from: &Path, to: &Path) {
    for file in std::fs::read_dir(from).expect("a directory of append-only files") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("the file can be copied");
    }
}

async fn connect(port: u16) -> redis::RedisResult<MultiplexedConnection> {
    let limit = Some(Duration::from_secs(5));
    let config = AsyncConnectionConfig::new().set_connection_timeout(limit).set_response_timeout(limit);
    Client::open(("127.0.0.1", port))?.get_multiplexed_async_connection_with_config(&config).await
}

async fn ping(port: u16) -> redis::RedisResult<()> {
    let mut client = connect(port).await?;
    redis::cmd("PING").query_async(&mut client).await
}

/// The path of the redis-server to start: `REDIS_SERVER`, else redis-server or valkey-server on PATH, else the one in
/// `target/tools`. Panics if there is none.
pub fn server_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("REDIS_SERVER").filter(|path| !path.is_empty()) {
        return PathBuf::from(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exe = std::env::current_exe().unwrap_or_default();
    let tools = exe.ancestors().map(|dir| dir.join("tools"));
    let dirs = std::env::split_paths(&path).chain(tools);
    let mut files = dirs.flat_map(|dir| ["redis-server", "valkey-server"].map(|name| dir.join(name)));
    files.find(|file| file.is_file()).expect(
        "no redis-server: install redis-server or valkey-server, name one by REDIS_SERVER, or run `make test`",
    )
}
