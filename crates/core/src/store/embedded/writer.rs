//! The one writer: a thread that takes what is waiting, carries all of it out in one
//! transaction, commits, and only then answers. So many calls share one sync of the disk.
//!
//! A call that fails does not touch the others of its group. When the file cannot be
//! written, all of the group are told, and the file is opened again for the next.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use redb::{Database, ReadTransaction, ReadableDatabase as _};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::place::Place;
use super::tables;
use super::time::Time;
use super::txn::{Hints, Txn};
use super::wake::Plan;
use crate::store::{Profile, Shard, StoreError};

/// The most calls of a group.
const GROUP: usize = 256;
/// A group is closed once its calls carry so many bytes.
const GROUP_BYTES: usize = 4 * 1024 * 1024;
/// Calls that may wait.
const QUEUE: usize = 1024;
/// Who was answered with the last group may ask again at once: so long the next one waits
/// for as many as that had, at most. Nobody waits who was alone.
const LINGER: Duration = Duration::from_micros(300);

/// The way to the writer. The writer ends with the last of them.
pub(super) struct Handle {
    /// None only while it is dropped.
    queue: Option<mpsc::Sender<Request>>,
    /// As fixed in the file.
    pub(super) shards: u16,
    place: Arc<Place>,
}

enum Request {
    Edge { shard: Shard, bytes: usize, call: Box<dyn Call> },
    Snapshot(oneshot::Sender<Result<ReadTransaction, StoreError>>),
}

/// An edge under way. It may be run more than once before it is answered.
trait Call: Send {
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), StoreError>;
    /// Tells the caller: what the last run came to, or why it did not come to be.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

struct Work<F, T> {
    work: F,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Txn<'_>) -> Result<T, StoreError> + Send> Call for Work<F, T> {
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), StoreError> {
        self.done = Some((self.work)(txn)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let answer = match (failed, self.done) {
            (None, Some(done)) => Ok(done),
            (failed, _) => Err(failed.unwrap_or(StoreError::Closed)),
        };
        // Whoever asked may have lost patience.
        let _ = self.reply.send(answer);
    }
}

impl Handle {
    /// Carries out an edge of a shard. `bytes` is about how much it writes.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        shard: Shard,
        bytes: usize,
        work: impl FnMut(&mut Txn<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Work { work, done: None, reply });
        self.send(Request::Edge { shard, bytes, call }).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// What is committed now, to be read at leisure.
    pub(super) async fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Snapshot(reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Whether the writer has ended before its time: it has panicked.
    pub(super) fn has_ended(&self) -> bool {
        self.queue.as_ref().is_none_or(mpsc::Sender::is_closed)
    }

    async fn send(&self, request: Request) -> Result<(), StoreError> {
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(request).await.map_err(|_| StoreError::Closed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue = None;
        self.place.wait();
    }
}

/// Opens a place and starts its writer.
pub(super) fn start(place: &Arc<Place>, shards: u16) -> Result<(Arc<Handle>, JoinHandle<()>), StoreError> {
    let database = place.database()?;
    let shards = tables::fixed(&database, shards).map_err(|error| place.name(error))?;
    let time = Time::new(Arc::clone(&place.clock), last_time(&database)?);
    let (queue, requests) = mpsc::channel(QUEUE);
    let writer = Writer {
        place: Arc::clone(place),
        database: Some(database),
        time,
        plan: Plan::default(),
        requests,
        next: None,
        last: 0,
    };
    let thread = std::thread::Builder::new()
        .name("ringback-store".to_owned())
        .spawn(move || writer.run())
        .map_err(redb::Error::Io)?;
    Ok((Arc::new(Handle { queue: Some(queue), shards, place: Arc::clone(place) }), thread))
}

fn last_time(database: &Database) -> Result<u64, StoreError> {
    let snapshot = database.begin_read().map_err(redb::Error::from)?;
    let rows = tables::rows(&snapshot)?;
    Ok(rows.into_iter().map(|(_, row)| row.time_us).max().unwrap_or(0))
}

struct Writer {
    place: Arc<Place>,
    /// None after a failure, until it could be opened again.
    database: Option<Database>,
    time: Time,
    plan: Plan,
    requests: mpsc::Receiver<Request>,
    /// A request that ended the group before it.
    next: Option<Request>,
    /// How many calls the last group had.
    last: usize,
}

/// A call of a group, and why it failed by itself.
struct Member {
    shard: Shard,
    call: Box<dyn Call>,
    failed: Option<StoreError>,
}

/// Why a group was rolled back.
enum Failed {
    /// This one failed after it had begun to write.
    One(usize, StoreError),
    All(StoreError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::All(error)
    }
}

impl Writer {
    fn run(mut self) {
        while let Some(first) = self.next.take().or_else(|| self.requests.blocking_recv()) {
            match first {
                Request::Snapshot(reply) => {
                    let _ = reply.send(self.snapshot());
                }
                Request::Edge { shard, bytes, call } => {
                    let group = self.gather(Member { shard, call, failed: None }, bytes);
                    self.serve(group);
                }
            }
        }
    }

    /// What is waiting by now, or comes in a moment.
    fn gather(&mut self, first: Member, mut bytes: usize) -> Vec<Member> {
        let mut group = vec![first];
        let begun = Instant::now();
        while group.len() < GROUP && bytes < GROUP_BYTES {
            match self.requests.try_recv() {
                Ok(Request::Edge { shard, bytes: more, call }) => {
                    bytes += more;
                    group.push(Member { shard, call, failed: None });
                }
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(TryRecvError::Empty) if group.len() < self.last && begun.elapsed() < LINGER => {
                    std::thread::yield_now();
                }
                Err(_) => break,
            }
        }
        self.last = group.len();
        group
    }

    fn serve(&mut self, mut group: Vec<Member>) {
        // Each round but the last answers one, so this ends.
        while !group.is_empty() {
            match self.attempt(&mut group) {
                Ok(hints) => {
                    self.plan = hints.plan;
                    group.into_iter().for_each(|member| member.call.answer(member.failed));
                    hints.wakes.into_iter().for_each(|wake| self.place.hub.tell(wake));
                    return;
                }
                Err(Failed::One(index, error)) => group.remove(index).call.answer(Some(error)),
                Err(Failed::All(error)) => return self.fail(group, &error),
            }
        }
    }

    /// Carries out a group and commits it.
    fn attempt(&mut self, group: &mut [Member]) -> Result<Hints, Failed> {
        let durable = self.place.profile() == Profile::Disk;
        let mut write = self.database()?.begin_write().map_err(|error| all(error.into()))?;
        write.set_quick_repair(durable);
        let mut txn = Txn::open(&write, self.plan.clone())?;
        for (index, member) in group.iter_mut().enumerate() {
            let before = txn.writes();
            txn.begin(member.shard, self.time.read())?;
            member.failed = match member.call.run(&mut txn) {
                Ok(()) => {
                    txn.end();
                    None
                }
                Err(error @ StoreError::Disk(_)) => return Err(Failed::All(error)),
                Err(error) if txn.writes() == before => Some(error),
                Err(error) => return Err(Failed::One(index, error)),
            };
        }
        let (changed, hints) = txn.close()?;
        if changed {
            write.commit().map_err(|error| all(error.into()))?;
        } else {
            write.abort().map_err(|error| all(error.into()))?;
        }
        Ok(hints)
    }

    /// Tells all of a group. What was read of the file may be wrong now, so it is opened
    /// again for the next.
    fn fail(&mut self, group: Vec<Member>, error: &StoreError) {
        tracing::error!(
            error = error as &dyn std::error::Error,
            calls = group.len(),
            "the embedded store cannot write its file"
        );
        self.database = None;
        for member in group {
            let same = match error {
                StoreError::Disk(cause) => StoreError::Disk(Arc::clone(cause)),
                StoreError::Unfit(why) => StoreError::Unfit(why.clone()),
                other => StoreError::Unfit(other.to_string()),
            };
            member.call.answer(Some(same));
        }
    }

    fn database(&mut self) -> Result<&Database, StoreError> {
        match &mut self.database {
            Some(database) => Ok(database),
            closed => Ok(closed.insert(self.place.database()?)),
        }
    }

    fn snapshot(&mut self) -> Result<ReadTransaction, StoreError> {
        self.database()?.begin_read().map_err(|error| redb::Error::from(error).into())
    }
}

fn all(error: redb::Error) -> Failed {
    Failed::All(error.into())
}
