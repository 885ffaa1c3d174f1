//! Calls on one server that are answered only after every replica that may take over has the change.
//!
//! These calls have a connection of their own, because WAIT delays whatever follows it on its connection. WAIT must be
//! sent over the connection that wrote: another one may lead to another server, which knows nothing of the change. One
//! WAIT is sent at a time; it confirms all calls that were answered before it was sent.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use ringback_core::store_types::StoreError;
use tokio::sync::Mutex;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::candidates::{self, Candidates, NODE_TIMEOUT, Replicas};
use super::error::{classify, is_half_moved, moved_to};
use super::sentinel::Sentinel;
use super::server_answers::{self, Address};
use super::single::{self, Single};

/// How many replicas must have a change where no failover is automatic.
const ONE: usize = 1;
/// How long a replica may take to confirm. A call may have to wait for another call's WAIT and then for its own.
const WAIT: Duration = Duration::from_millis(700);
/// A script that writes a key to replicas only, not to the append-only file. WAIT waits only for the last write of its
/// own connection, and a call that changed nothing may have read changes that are not replicated yet.
const MARK: &str = "#!lua flags=allow-oom
redis.set_repl(redis.REPL_REPLICA)
redis.call('SET', KEYS[1], '1')";
/// The same, and it adds a line to the append-only file, for which WAITAOF waits.
const MARK_IN_FILE: &str = "#!lua flags=allow-oom
redis.call('SET', KEYS[1], '1')";

/// How the server is found, which also decides which of its replicas may take over.
pub(super) enum Server {
    Single(Single),
    Sentinel(Sentinel),
    /// A master of a cluster.
    Node(Single),
}

/// A server whose changes are confirmed by replicas.
pub(super) struct Confirmed {
    server: Server,
    wait: Duration,
    /// How many calls the server has answered, confirmed or not.
    answered: AtomicU64,
    /// The last group of calls. The lock is held while a group waits.
    group: Mutex<Group>,
    /// Whether replicas must have synced a change to disk too.
    is_synced: AtomicBool,
    /// Whether the last group failed because too few replicas confirmed it.
    is_behind: AtomicBool,
    /// Its replicas, and the number of the connection over which they were read. `None` until then.
    replicas: std::sync::Mutex<Option<(u64, Replicas)>>,
}

/// The calls that shared a WAIT.
struct Group {
    connection: u64,
    /// The number of its last call.
    last: u64,
    result: Result<(), StoreError>,
}

impl Confirmed {
    pub(super) fn new(server: Server, call_timeout: Duration) -> Self {
        Self {
            server,
            wait: WAIT.min(call_timeout / 2),
            answered: AtomicU64::new(0),
            group: Mutex::new(Group { connection: 0, last: 0, result: Ok(()) }),
            is_synced: AtomicBool::new(false),
            is_behind: AtomicBool::new(false),
            replicas: std::sync::Mutex::default(),
        }
    }

    /// Sends a command, and waits until enough replicas have what it changed. `mark` is a key on this server that is
    /// written for the wait. A call that was executed but not confirmed fails, most often with `Unreplicated`.
    pub(super) async fn call(&self, cmd: &Cmd, mark: &str) -> Result<Value, StoreError> {
        let (answer, connection, number) = self.call_over(cmd).await?;
        self.confirm(connection, number, mark).await.map_err(after_the_change)?;
        Ok(answer)
    }

    /// Waits until enough replicas have all that the server has. Fails with `Unreplicated` if they do not in time.
    pub(super) async fn check(&self, mark: &str) -> Result<(), StoreError> {
        let (_, connection, number) = self.call_over(redis::cmd("EXISTS").arg(mark)).await?;
        self.confirm(connection, number, mark).await
    }

    /// Waits until enough replicas have synced all that the server has, even if calls do not wait for that. Makes a new
    /// connection, so that no call waits behind this one. Fails with `Unreplicated` if they do not in time.
    pub(super) async fn check_synced(&self, mark: &str) -> Result<(), StoreError> {
        let client = match &self.server {
            Server::Single(single) | Server::Node(single) => single.client().clone(),
            Server::Sentinel(sentinel) => sentinel.client().await?.0,
        };
        let (_, _, number) = self.call_over(redis::cmd("EXISTS").arg(mark)).await?;
        self.wait(single::connect(client).await?, number, mark, true).await
    }

    async fn call_over(&self, cmd: &Cmd) -> Result<(Value, MultiplexedConnection, u64), StoreError> {
        match &self.server {
            Server::Single(single) | Server::Node(single) => single.connection.send(cmd).await,
            Server::Sentinel(sentinel) => sentinel.connection.send(cmd).await,
        }
    }

    /// Reads again which replicas may take over, and leaves a server that by the sentinels is not the master any more.
    /// Does nothing for a single server.
    pub(super) async fn look(&self) {
        if matches!(self.server, Server::Single(_)) {
            return;
        }
        // If this fails, the replicas that are known stay.
        let looked = self.look_at_replicas().await;
        if let (Err(_), Server::Sentinel(sentinel)) = (looked, &self.server) {
            // If the master did not answer, the sentinels were not asked above.
            sentinel.look().await;
        }
    }

    /// Reads and remembers the replicas. Returns the number of the connection used, and how many must confirm a change.
    async fn look_at_replicas(&self) -> Result<(u64, usize), StoreError> {
        let asked = Instant::now();
        let ConfirmRequest { connection: number, mut replicas, possible, timeout } =
            self.ask_for_replicas().await?;
        let mut known = self.replicas();
        let is_node = matches!(self.server, Server::Node(_));
        if let Some((_, known)) = known.as_ref().filter(|(of, _)| is_node || *of == number) {
            // What a node knows of the other nodes can be older than what its own list of replicas has shown since.
            replicas.take_over(known, asked.checked_sub(timeout).unwrap_or(asked));
            if is_node {
                replicas.keep(&possible, asked);
            }
        }
        let required = replicas.required();
        *known = Some((number, replicas));
        Ok((number, required))
    }

    /// Reads the replicas from the server, and from sentinels or the cluster who may take over. A command that the user
    /// may not send counts as one with an empty answer. Fails with `Unreplicated` if sentinels name another master.
    async fn ask_for_replicas(&self) -> Result<ConfirmRequest, StoreError> {
        let unreadable = StoreError::Unreadable("the replicas of a master");
        let (answer, _, number) = match self.call_over(redis::cmd("INFO").arg("replication")).await {
            Err(error) if error.is_refusal() => self.call_over(&redis::cmd("PING")).await?,
            answer => answer?,
        };
        let info: String = redis::from_redis_value(answer).map_err(|_| unreadable.clone())?;
        let (listed, now) = (server_answers::listed(&info), Instant::now());
        let (mut possible, mut timeout) = (BTreeSet::new(), Duration::ZERO);
        let candidates = match &self.server {
            Server::Single(_) => Candidates::Counted(ONE),
            // Asked after the master: they know by then of a replica that left its list to be promoted.
            Server::Sentinel(sentinel) => {
                sentinel.look().await;
                Candidates::Named(sentinel.candidates(number).ok_or(StoreError::Unreplicated)?)
            }
            Server::Node(node) => match node.ask(redis::cmd("CLUSTER").arg("NODES")).await {
                Err(error) if error.is_refusal() => Candidates::Counted(0),
                nodes => {
                    let nodes: String = redis::from_redis_value(nodes?).map_err(|_| unreadable)?;
                    timeout = node_timeout(node).await;
                    let of_cluster = candidates::of_cluster(&nodes, &listed, timeout);
                    possible = of_cluster.possible;
                    of_cluster.candidates
                }
            },
        };
        let replicas = Replicas::new(candidates, &listed, now);
        Ok(ConfirmRequest { connection: number, replicas, possible, timeout })
    }

    /// Returns how many replicas must have a change that was made over a connection. Reads the replicas first if those
    /// of this connection are not known. Fails with `Unreplicated` if the server is now reached over another connection.
    async fn required(&self, connection: u64) -> Result<usize, StoreError> {
        let current = match &self.server {
            Server::Single(_) => return Ok(ONE),
            // The sentinels may have been asked since the replicas were read.
            Server::Sentinel(sentinel) => sentinel.candidates(connection).ok_or(StoreError::Unreplicated)?,
            Server::Node(_) => BTreeSet::new(),
        };
        if let Some((_, replicas)) = self.replicas().as_mut().filter(|(number, _)| *number == connection) {
            replicas.name(&current);
            return Ok(replicas.required());
        }
        let (number, required) = self.look_at_replicas().await?;
        if number == connection { Ok(required) } else { Err(StoreError::Unreplicated) }
    }

    /// Forgets the replicas of a server that is not a master. They are read again once it is one.
    pub(super) fn forget_replicas(&self) {
        *self.replicas() = None;
    }

    fn replicas(&self) -> MutexGuard<'_, Option<(u64, Replicas)>> {
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether too few replicas confirmed the last group of calls.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Sets whether calls wait until replicas have synced a change to disk, or only until they have received it.
    pub(super) fn wait_for_sync(&self, is_synced: bool) {
        self.is_synced.store(is_synced, Ordering::Relaxed);
    }

    async fn confirm(
        &self,
        connection: MultiplexedConnection,
        number: u64,
        mark: &str,
    ) -> Result<(), StoreError> {
        let own = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        let mut group = self.group.lock().await;
        if group.connection == number && own <= group.last {
            return group.result.clone();
        }
        // Lets other calls that were answered at the same time be counted first.
        yield_now().await;
        let last = self.answered.load(Ordering::Relaxed);
        let is_synced = self.is_synced.load(Ordering::Relaxed);
        let waited = self.wait(connection, number, mark, is_synced).await;
        let is_behind = matches!(waited, Err(StoreError::Unreplicated));
        self.is_behind.store(is_behind, Ordering::Relaxed);
        *group = Group { connection: number, last, result: waited };
        group.result.clone()
    }

    /// Waits until each replica that may take over has all that was written over this connection, also those that were
    /// added during the wait. Fails with `Unreplicated` if they do not in time.
    async fn wait(
        &self,
        mut connection: MultiplexedConnection,
        number: u64,
        mark: &str,
        is_synced: bool,
    ) -> Result<(), StoreError> {
        let begin = Instant::now();
        let mut required = self.required(number).await?;
        loop {
            let left = self.wait.saturating_sub(begin.elapsed());
            let confirming = self.wait_for(required, &mut connection, mark, is_synced, left).await?;
            let now = self.required(number).await?;
            match confirming >= required {
                true if now <= required => return Ok(()),
                true if !left.is_zero() => required = now,
                _ => return Err(StoreError::Unreplicated),
            }
        }
    }

    /// Writes the mark and waits for `required` replicas. Returns how many confirm, 0 also if the server itself has not
    /// synced; and records the replicas that the server lists afterwards. Fails if an answer is an error or missing.
    /// A replica reports how far it has synced before it syncs new data, and then once a second. The WAIT before WAITAOF
    /// makes the master ask again, so that WAITAOF does not wait for that second.
    async fn wait_for(
        &self,
        required: usize,
        connection: &mut MultiplexedConnection,
        mark: &str,
        is_synced: bool,
        within: Duration,
    ) -> Result<usize, StoreError> {
        // 0 would mean no limit.
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let (received, synced) = if is_synced { (within / 3, within * 2 / 3) } else { (within, within) };
        let is_alone = matches!(self.server, Server::Single(_));
        let mut pipe = redis::pipe();
        pipe.cmd("EVAL").arg(if is_synced { MARK_IN_FILE } else { MARK }).arg(1).arg(mark);
        pipe.cmd("WAIT").arg(required).arg(millis(received));
        if is_synced {
            pipe.cmd("WAITAOF").arg(1).arg(required).arg(millis(synced));
        }
        if !is_alone {
            pipe.cmd("INFO").arg("replication");
        }
        let (limit, count) = (within + self.wait, pipe.len());
        let answers = timeout(limit, connection.send_packed_commands(&pipe, 0, count)).await;
        let mut answers = answers.map_err(|_elapsed| StoreError::Slow(limit))?.map_err(classify)?;
        let info = if is_alone { None } else { answers.pop() };
        let mut confirming = None;
        for answer in answers {
            match answer {
                Value::ServerError(error) => return Err(classify(error.into())),
                answer => confirming = Some(answer),
            }
        }
        if let Some(info) = info {
            self.see(info)?;
        }
        let confirming = match confirming {
            Some(Value::Int(count)) => count,
            // Of WAITAOF: whether the server itself has synced, and how many replicas have.
            Some(Value::Array(counts)) => match counts[..] {
                [Value::Int(1..), Value::Int(count)] => count,
                _ => 0,
            },
            _ => return Err(StoreError::Unreadable("the answer of a WAIT")),
        };
        Ok(usize::try_from(confirming).unwrap_or(0))
    }

    /// Records the replicas in an answer to INFO replication; does nothing if the user may not send that.
    fn see(&self, info: Value) -> Result<(), StoreError> {
        let info = match info {
            Value::ServerError(error) => match classify(error.into()) {
                error if error.is_refusal() => return Ok(()),
                error => return Err(error),
            },
            info => redis::from_redis_value::<String>(info),
        };
        let info = info.map_err(|_| StoreError::Unreadable("the replicas of a master"))?;
        self.replicas()
            .iter_mut()
            .for_each(|(_, replicas)| replicas.see(&server_answers::listed(&info), Instant::now()));
        Ok(())
    }
}

/// What [`Confirmed::ask_for_replicas`] has read.
struct ConfirmRequest {
    /// The number of the connection to the server.
    connection: u64,
    replicas: Replicas,
    /// Of a cluster: nodes that may replicate the server.
    possible: BTreeSet<Address>,
    /// For how long a replica that was ready still counts after the server has stopped listing it.
    timeout: Duration,
}

/// Reads how long a node of a cluster may be silent until others take it for failed; a default if that cannot be read.
async fn node_timeout(node: &Single) -> Duration {
    let answer = node.ask(redis::cmd("CONFIG").arg("GET").arg("cluster-node-timeout")).await;
    let settings =
        answer.ok().and_then(|answer| redis::from_redis_value::<HashMap<String, u64>>(answer).ok());
    let millis = settings.and_then(|settings| settings.into_values().next());
    millis.map_or(NODE_TIMEOUT, Duration::from_millis)
}

/// Converts the error of the wait after a call that was executed into one that does not mean "nothing was done": a
/// server that became a replica meanwhile refuses the mark, and so does one whose slot has moved.
fn after_the_change(error: StoreError) -> StoreError {
    match error {
        StoreError::Slow(_) | StoreError::Unreadable(_) => error,
        StoreError::Away(_) if moved_to(&error).is_none() && !is_half_moved(&error) => error,
        _ => StoreError::Unreplicated,
    }
}
