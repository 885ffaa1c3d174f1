//! The processes of a run and their store: each process has a proxy of its own to Redis, and all starts and exits are
//! written to the history.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringback_testkit::history::{Entry, Exit, History, Proc};
use ringback_testkit::{Persistence, Process, ProcessSpec, Proxy, RedisServer, Role, Seen, free_port};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

use crate::logs::LogReader;
use crate::redis_client::RedisClient;
use crate::store_kind::StoreKind;
use crate::store_servers::Group;
use crate::world::{World, of_process, of_server};

/// The settings of all processes: short times, and the log of transitions.
const SETTINGS: [(&str, &str); 5] = [
    ("RINGBACK_RETRY", "100ms 200ms 400ms"),
    // What is due is delivered within a bound, and a breaker delays it on purpose.
    ("RINGBACK_BREAKERS", "off"),
    ("RINGBACK_LOG", "info,ringback_store::transitions=debug,ringback_carrier::epoch_log=debug"),
    ("RINGBACK_LOG_FORMAT", "json"),
    ("RINGBACK_SHUTDOWN_TIMEOUT", "2s"),
];
const LOCK_TTL: &str = "600ms";
const LEASE_MARGIN: &str = "800ms";
/// With more than one server: each master has some shards.
const GROUP_SHARDS: &str = "6";
/// The limit until a process is ready, if its store is there.
const READY: Duration = Duration::from_secs(20);

/// The size of the disk of an embedded store, where one can be mounted.
const DISK: &str = "size=48m";

/// All processes, and the store.
pub(crate) struct Installation {
    pub(crate) history: History,
    pub(crate) members: Vec<Member>,
    /// The server; locked during a fault.
    pub(crate) redis: Option<Mutex<RedisServer>>,
    pub(crate) redis_port: u16,
    /// The clock that Redis sees, if it can be stepped.
    pub(crate) clock: Option<Seen>,
    /// The client that reads the clock; locked during a step.
    pub(crate) clock_client: Mutex<RedisClient>,
    /// The servers of a store that has several.
    pub(crate) group: Option<Mutex<Group>>,
    pub(crate) world: World,
    /// The small disk of the embedded store.
    pub(crate) disk: Option<Disk>,
    _data: tempfile::TempDir,
}

/// A process, with its place in the installation.
pub(crate) struct Member {
    pub(crate) role: Role,
    spec: ProcessSpec,
    pub(crate) admin: String,
    /// Where its API listens, if it has one.
    pub(crate) api: Option<String>,
    pub(crate) proxy: Option<Proxy>,
    /// The names and the address of the process, if they can be changed.
    pub(crate) seen: Option<Seen>,
    /// The process itself; locked during a fault.
    pub(crate) running: Mutex<Running>,
}

/// A running process.
pub(crate) struct Running {
    pub(crate) process: Process,
    log: LogReader,
    has_exited: bool,
}

impl Installation {
    pub(crate) async fn start(kind: StoreKind, history: History) -> Arc<Self> {
        let data = tempfile::Builder::new().prefix("ringback-chaos-").tempdir().expect("a temp directory");
        let world = World::new();
        let group = Group::start(kind, &world).await;
        let (mut redis, mut disk, mut clock) = (None, None, None);
        match kind {
            StoreKind::Redis => {
                clock = world.seen();
                let options = RedisServer::options().persistence(Persistence::Always);
                redis = Some(of_server(options, clock.as_ref()).start().await);
            }
            StoreKind::Cluster | StoreKind::Sentinel => {}
            StoreKind::Embedded => disk = Disk::mount(data.path()),
        }
        let two = [Role::Api, Role::Carrier, Role::Notifier];
        let roles = if kind == StoreKind::Embedded { vec![Role::Up] } else { [two, two].concat() };
        let redis_port = redis.as_ref().map_or(0, RedisServer::port);
        let embedded = format!("embedded:{}", data.path().join("disk/data").display());
        std::fs::create_dir_all(data.path().join("disk")).expect("a directory");
        let member = |role: &Role| {
            let proxy = redis.as_ref().map(|server| Proxy::start(server.port()));
            let (behind, grouped) =
                (proxy.as_ref().map(|proxy| world.store(proxy.port())), group.as_ref().map(Group::url));
            let store = behind.or(grouped).unwrap_or_else(|| embedded.clone());
            Member::start(*role, (kind, &store), proxy, &world, &history)
        };
        let members: Vec<_> = roles.iter().map(member).collect();
        for member in &members {
            assert!(member.wait_ready(READY).await, "a process is not ready");
        }
        let (redis, group) = (redis.map(Mutex::new), group.map(Mutex::new));
        let clock_client = Mutex::new(RedisClient::new(redis_port));
        Arc::new(Self {
            history,
            members,
            redis,
            redis_port,
            clock,
            clock_client,
            group,
            world,
            disk,
            _data: data,
        })
    }

    /// The base URLs of the APIs.
    pub(crate) fn apis(&self) -> Vec<String> {
        self.members.iter().filter_map(|member| member.api.clone()).collect()
    }

    /// Locks all processes: while the guards are kept, no fault is made to a process.
    pub(crate) async fn hold(&self) -> Vec<MutexGuard<'_, Running>> {
        let mut held = Vec::new();
        for member in &self.members {
            held.push(member.running.lock().await);
        }
        held
    }

    /// Writes exits of processes that no fault caused, and starts those processes again. Runs until it is aborted.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            sleep(Duration::from_millis(100)).await;
            for member in &self.members {
                if let Ok(mut running) = member.running.try_lock()
                    && running.process.exit_status().is_some()
                {
                    running.exited(&self.history);
                    member.restart(&mut running, &self.history);
                }
            }
        }
    }

    /// Writes the lines of logs that were not read yet.
    pub(crate) async fn read_logs(&self) {
        for member in &self.members {
            let running = &mut *member.running.lock().await;
            running.log.read(&running.process.log(), &self.history);
        }
    }
}

impl Member {
    fn start(
        role: Role,
        (kind, store): (StoreKind, &str),
        proxy: Option<Proxy>,
        world: &World,
        history: &History,
    ) -> Self {
        let listen = || format!("127.0.0.1:{}", free_port());
        let (admin, api) = (listen(), matches!(role, Role::Api | Role::Up).then(listen));
        let spec = ProcessSpec::new(role.binary());
        let mut spec = if role == Role::Up { spec.arg("up") } else { spec };
        spec = spec.env("RINGBACK_STORE", store).env("RINGBACK_ADMIN_LISTEN", &admin);
        for (name, value) in SETTINGS {
            spec = spec.env(name, value);
        }
        let seen = world.seen();
        spec = of_process(spec, seen.as_ref());
        if let Some(api) = &api {
            spec = spec.env("RINGBACK_API_LISTEN", api);
        }
        if matches!(kind, StoreKind::Cluster | StoreKind::Sentinel) {
            spec = spec.env("RINGBACK_DURABILITY", "replicated").env("RINGBACK_SHARDS", GROUP_SHARDS);
        }
        if matches!(role, Role::Carrier | Role::Up) {
            spec = spec.env("RINGBACK_LOCK_TTL", LOCK_TTL);
        }
        if matches!(role, Role::Notifier | Role::Up) {
            spec = spec.env("RINGBACK_LEASE_MARGIN", LEASE_MARGIN);
            spec = spec.env("RINGBACK_NAME_SERVERS", &world.name_server());
        }
        if role == Role::Up {
            spec = spec.env("RINGBACK_KEEP_FREE_MIB", "16");
        }
        let running = Running::start(spec.clone(), role, history);
        let api = api.map(|api| format!("http://{api}"));
        Self { role, spec, admin, api, proxy, seen, running: Mutex::new(running) }
    }

    /// Starts a process that has ended again, in the same directory, and writes its start.
    pub(crate) fn restart(&self, running: &mut Running, history: &History) {
        running.process.restart();
        running.begun(self.role, history);
    }

    /// Kills the process, reads its log, and starts another one. Unless `is_read`, nobody reads the output of that one.
    pub(crate) fn replace(&self, running: &mut Running, is_read: bool, history: &History) {
        running.kill(history);
        running.log.read(&running.process.log(), history);
        let spec = self.spec.clone();
        *running = Running::start(if is_read { spec } else { spec.unread() }, self.role, history);
    }

    /// Waits until `/readyz` answers 200, for up to `within`. Returns whether it did.
    pub(crate) async fn wait_ready(&self, within: Duration) -> bool {
        let (client, url) = (ringback_testkit::http_client(), format!("http://{}/readyz", self.admin));
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            let answer = client.get(&url).timeout(Duration::from_secs(1)).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return true;
            }
            sleep(Duration::from_millis(10)).await;
        }
        false
    }
}

impl Running {
    fn start(spec: ProcessSpec, role: Role, history: &History) -> Self {
        let mut running = Self { process: spec.start(), log: LogReader::default(), has_exited: false };
        running.begun(role, history);
        running
    }

    fn begun(&mut self, role: Role, history: &History) {
        let (t, pid) = (history.t(), self.process.pid());
        self.has_exited = false;
        self.log.started(t, pid);
        history.write(&Entry::Proc(Proc { t, pid, role: role.binary() }));
    }

    pub(crate) fn kill(&mut self, history: &History) {
        self.process.kill();
        self.exited(history);
    }

    fn exited(&mut self, history: &History) {
        let Some(exit) = self.process.exit_status().filter(|_| !self.has_exited) else { return };
        self.has_exited = true;
        let (t, pid) = (history.t(), self.process.pid());
        history.write(&Entry::Exit(Exit { t, pid, status: exit.code(), signal: exit.signal() }));
    }
}

/// A file system in memory, of its own size.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Disk {
    /// Mounts a file system in memory below `data`; `None` if nothing can be mounted.
    fn mount(data: &Path) -> Option<Self> {
        let at = data.join("disk");
        std::fs::create_dir_all(&at).expect("a directory");
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", DISK, "ringback-chaos"]).arg(&at);
        let mounted = mount.stderr(std::process::Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }

    /// The bytes that are free.
    pub(crate) fn free(&self) -> nix::Result<u64> {
        let stat = nix::sys::statvfs::statvfs(&self.0)?;
        Ok(stat.blocks_available() * stat.fragment_size())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A lazy unmount: processes end before, but the order of fields is not to be relied on.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
