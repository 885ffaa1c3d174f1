//! Changes that replicas have to have before they are answered, on one server: each one that may take over.
//!
//! They have a connection of their own, because WAIT holds up what comes after it on its connection. WAIT must be sent
//! over the connection that wrote: another one may lead to another server, which knows nothing of the change. Calls
//! share it: one WAIT is sent at a time, and confirms all calls that were answered before it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use ringback_core::contract::StoreError;
use tokio::sync::Mutex;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::answer::{self, SILENT};
use super::candidates;
use super::error::{classify, is_half_moved, moved_to};
use super::sentinel::Sentinel;
use super::single::{self, Single};

/// How many replicas have to have a change where nobody replaces the server by itself, and at least.
const ONE: usize = 1;
/// How long a replica may take. A call may have to wait for a WAIT that is under way, and then for its own.
const WAIT: Duration = Duration::from_millis(700);
/// The candidates of a master of a cluster that was not asked yet.
const UNKNOWN: usize = usize::MAX;
/// A replica of a cluster that was silent for no longer than so many seconds is counted before the nodes are asked.
const JUST_SEEN: u64 = 1;
/// Adds to the data that are replicated: WAIT waits only for what its own connection wrote last, and a call that
/// changed nothing may have seen what is not replicated yet. Nothing is added to the append-only file.
const MARK: &str = "#!lua flags=allow-oom
redis.set_repl(redis.REPL_REPLICA)
redis.call('SET', KEYS[1], '1')";
/// The same, with a line in the append-only file, for which WAITAOF waits.
const MARK_IN_FILE: &str = "#!lua flags=allow-oom
redis.call('SET', KEYS[1], '1')";

/// How the server is found, and which of its replicas may take over.
pub(super) enum Server {
    Single(Single),
    Sentinel(Sentinel),
    /// A master of a cluster, and how many of its replicas may take over.
    Node(Single, AtomicUsize),
}

impl Server {
    /// A master of a cluster.
    pub(super) fn node(single: Single) -> Self {
        Self::Node(single, AtomicUsize::new(UNKNOWN))
    }
}

/// A server whose changes are confirmed by replicas.
pub(super) struct Confirmed {
    server: Server,
    wait: Duration,
    /// How many calls were answered.
    answered: AtomicU64,
    /// The last group of calls. Locked while a group waits.
    group: Mutex<Group>,
    /// Whether replicas have to have synced a change.
    is_synced: AtomicBool,
    /// Whether too few replicas confirmed the last group.
    is_behind: AtomicBool,
    /// The most replicas that answered the server since the last look. One that has just come may be unknown to those
    /// that elect.
    answering: AtomicUsize,
}

/// Calls that shared a WAIT.
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
            answering: AtomicUsize::new(0),
        }
    }

    /// Sends a command, and waits until replicas have what it changed. `mark` is a key on this server.
    pub(super) async fn call(&self, cmd: &Cmd, mark: &str) -> Result<Value, StoreError> {
        let (answer, connection, number) = self.call_over(cmd).await?;
        self.confirm(connection, number, mark).await.map_err(after_the_change)?;
        Ok(answer)
    }

    /// Waits until replicas have all that the server has.
    pub(super) async fn check(&self, mark: &str) -> Result<(), StoreError> {
        let (_, connection, number) = self.call_over(redis::cmd("EXISTS").arg(mark)).await?;
        self.confirm(connection, number, mark).await
    }

    /// Waits until replicas have synced all that the server has, whatever calls wait for. On a connection of its own,
    /// so that no call waits behind it.
    pub(super) async fn check_synced(&self, mark: &str) -> Result<(), StoreError> {
        let client = match &self.server {
            Server::Single(single) | Server::Node(single, _) => single.client().clone(),
            Server::Sentinel(sentinel) => sentinel.client().await?.0,
        };
        self.wait(single::connect(client).await?, mark, true).await
    }

    async fn call_over(&self, cmd: &Cmd) -> Result<(Value, MultiplexedConnection, u64), StoreError> {
        match &self.server {
            Server::Single(single) | Server::Node(single, _) => single.call_over(cmd).await,
            Server::Sentinel(sentinel) => sentinel.call_over(cmd).await,
        }
    }

    /// Looks which replicas may take over, and leaves a server that is no longer the master, as far as the sentinels
    /// have said.
    pub(super) async fn look(&self) {
        match &self.server {
            Server::Single(_) => {}
            Server::Sentinel(sentinel) => sentinel.follow(),
            Server::Node(node, known) => {
                if let Ok(candidates) = candidates_of(node).await {
                    known.store(candidates, Ordering::Relaxed);
                }
            }
        }
        self.answering.store(0, Ordering::Relaxed);
    }

    /// How many replicas have to have a change, as far as is known before the server is asked.
    async fn needed(&self) -> Result<usize, StoreError> {
        let candidates = match &self.server {
            Server::Single(_) => ONE,
            Server::Sentinel(sentinel) => sentinel.candidates(),
            Server::Node(node, known) => match known.load(Ordering::Relaxed) {
                UNKNOWN => {
                    let candidates = candidates_of(node).await?;
                    known.store(candidates, Ordering::Relaxed);
                    candidates
                }
                candidates => candidates,
            },
        };
        Ok(candidates.max(self.answering.load(Ordering::Relaxed)).max(ONE))
    }

    /// For how long (s) a replica that counts as answering may have been silent. `None` where their number does not
    /// matter.
    fn longest_silence(&self) -> Option<u64> {
        match &self.server {
            Server::Single(_) => None,
            Server::Sentinel(_) => Some(SILENT),
            Server::Node(..) => Some(JUST_SEEN),
        }
    }

    /// Whether too few replicas have confirmed the last changes.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Lets calls wait until replicas have synced a change, or only until they have it.
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
        // Calls that were answered at the same time are counted first.
        yield_now().await;
        let last = self.answered.load(Ordering::Relaxed);
        let is_synced = self.is_synced.load(Ordering::Relaxed);
        let waited = self.wait(connection, mark, is_synced).await;
        let is_behind = matches!(waited, Err(StoreError::Unreplicated));
        self.is_behind.store(is_behind, Ordering::Relaxed);
        *group = Group { connection: number, last, result: waited };
        group.result.clone()
    }

    /// Waits until each replica that may take over has all that was written over this connection. If more replicas
    /// answer the server than were waited for, they are waited for too.
    async fn wait(
        &self,
        mut connection: MultiplexedConnection,
        mark: &str,
        is_synced: bool,
    ) -> Result<(), StoreError> {
        let (begin, mut replicas) = (Instant::now(), self.needed().await?);
        loop {
            let left = self.wait.saturating_sub(begin.elapsed());
            let (answering, confirming) =
                self.wait_for(replicas, &mut connection, mark, is_synced, left).await?;
            if confirming < replicas {
                return Err(StoreError::Unreplicated);
            }
            if answering <= replicas {
                return Ok(());
            }
            if left.is_zero() {
                return Err(StoreError::Unreplicated);
            }
            replicas = answering;
        }
    }

    /// Waits for so many replicas. Returns how many answer the server, and how many confirm.
    ///
    /// A replica reports how far it has synced before it syncs new data, and then once a second. The WAIT makes the
    /// master ask again, so that WAITAOF does not wait for that second.
    async fn wait_for(
        &self,
        replicas: usize,
        connection: &mut MultiplexedConnection,
        mark: &str,
        is_synced: bool,
        within: Duration,
    ) -> Result<(usize, usize), StoreError> {
        // 0 would be without a limit.
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let (received, synced) = if is_synced { (within / 3, within * 2 / 3) } else { (within, within) };
        let (mut pipe, silence) = (redis::pipe(), self.longest_silence());
        pipe.cmd("EVAL").arg(if is_synced { MARK_IN_FILE } else { MARK }).arg(1).arg(mark);
        pipe.cmd("WAIT").arg(replicas).arg(millis(received));
        if is_synced {
            pipe.cmd("WAITAOF").arg(1).arg(replicas).arg(millis(synced));
        }
        if silence.is_some() {
            pipe.cmd("INFO").arg("replication");
        }
        let (limit, count) = (within + self.wait, pipe.len());
        let answers = timeout(limit, connection.send_packed_commands(&pipe, 0, count)).await;
        let mut answers = answers.map_err(|_elapsed| StoreError::Slow(limit))?.map_err(classify)?;
        let mut answering = 0;
        if let Some(silence) = silence
            && let Some(info) = answers.pop()
        {
            // Without the right to ask, what is known otherwise has to do.
            let info: String = redis::from_redis_value(info).unwrap_or_default();
            answering = answer::answering_replicas(&info, silence);
            self.answering.fetch_max(answering, Ordering::Relaxed);
        }
        for answer in &answers {
            if let Value::ServerError(error) = answer {
                return Err(classify(error.clone().into()));
            }
        }
        let confirming = match answers.pop() {
            Some(Value::Int(count)) => count,
            // The server itself, and replicas.
            Some(Value::Array(counts)) => match counts[..] {
                [Value::Int(1..), Value::Int(count)] => count,
                _ => 0,
            },
            _ => return Err(StoreError::Unreadable("the answer of a WAIT")),
        };
        Ok((answering, usize::try_from(confirming).unwrap_or(0)))
    }
}

/// The error of a call that was executed but not confirmed. Never one that means "nothing was done": a server that
/// became a replica meanwhile refuses the mark, and so does one whose slot has moved.
fn after_the_change(error: StoreError) -> StoreError {
    match error {
        StoreError::Slow(_) | StoreError::Unreadable(_) => error,
        StoreError::Away(_) if moved_to(&error).is_none() && !is_half_moved(&error) => error,
        _ => StoreError::Unreplicated,
    }
}

/// Asks a master of a cluster how many of its replicas may take over. None, if it does not allow the question.
async fn candidates_of(node: &Single) -> Result<usize, StoreError> {
    let text = async |cmd: &Cmd| match node.call(cmd).await {
        Err(error) if error.is_refusal() => Ok(String::new()),
        answer => {
            redis::from_redis_value(answer?).map_err(|_| StoreError::Unreadable("the nodes of a cluster"))
        }
    };
    let nodes = text(redis::cmd("CLUSTER").arg("NODES")).await?;
    Ok(candidates::of_cluster(&nodes, &text(redis::cmd("INFO").arg("replication")).await?))
}
