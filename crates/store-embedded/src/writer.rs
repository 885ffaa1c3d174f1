//! The one writer: a thread that takes what is waiting, carries all of it out, has what was
//! written synced in the log, and only then answers. So many calls share one sync of the disk.
//! The transaction of the database stays open over many groups, until a checkpoint.
//!
//! A call that fails does not touch the others of its group. When the files cannot be
//! written, all of the group are told; then, as after a failed call, the store is opened again
//! at its last checkpoint and carries out the log.

mod queue;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use redb::ReadTransaction;
use ringback_core::contract::{Event, Shard, StoreError, Wake};
use tokio::sync::{mpsc, oneshot};

use self::queue::{Member, Next, Queue, Request};
use super::base::Base;
use super::place::Place;
use super::tables::{self, Journal};
use super::time::Time;
use super::txn::Txn;
use super::wake::Plan;

/// Calls that may wait.
const WAITING: usize = 1024;

/// The way to the writer. The writer ends with the last of them.
pub(crate) struct Handle {
    /// None only while it is dropped.
    queue: Option<mpsc::Sender<Request>>,
    /// As fixed in the file.
    pub(crate) shards: u16,
    place: Arc<Place>,
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
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        shard: Shard,
        bytes: usize,
        work: impl FnMut(&mut Txn<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Work { work, done: None, reply });
        self.send(Request::Edge(Member { shard, call, failed: None }, bytes)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// What is committed now, to be read at leisure.
    pub(crate) async fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Snapshot(reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Whether the writer has ended before its time: it has panicked.
    pub(crate) fn has_ended(&self) -> bool {
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
pub(crate) fn start(place: &Arc<Place>, shards: u16) -> Result<(Arc<Handle>, JoinHandle<()>), StoreError> {
    let (base, shards) = Base::open(place, shards)?;
    let time = Time::new(Arc::clone(&place.clock), last_time(&base)?);
    let (sender, requests) = mpsc::channel(WAITING);
    let writer = Writer {
        place: Arc::clone(place),
        base: Some(base),
        shards,
        time,
        plan: Plan::default(),
        queue: Queue::new(requests).map_err(redb::Error::Io)?,
        asked: None,
    };
    let thread = std::thread::Builder::new()
        .name("ringback-store".to_owned())
        .spawn(move || writer.run())
        .map_err(redb::Error::Io)?;
    Ok((Arc::new(Handle { queue: Some(sender), shards, place: Arc::clone(place) }), thread))
}

fn last_time(base: &Base) -> Result<u64, StoreError> {
    let rows = tables::rows(&base.snapshot()?)?;
    Ok(rows.into_iter().map(|(_, row)| row.time_us).max().unwrap_or(0))
}

struct Writer {
    place: Arc<Place>,
    /// None after a failure, until it could be opened again.
    base: Option<Base>,
    shards: u16,
    time: Time,
    plan: Plan,
    queue: Queue,
    /// Who waits for a snapshot.
    asked: Option<Reply>,
}

type Reply = oneshot::Sender<Result<ReadTransaction, StoreError>>;

/// Why the open transaction is thrown away.
enum Failed {
    /// This call of the group failed after it had begun to write.
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
        let mut again = Vec::new();
        loop {
            if again.is_empty() {
                let patience = self.base.as_ref().and_then(Base::patience);
                match self.queue.next(patience) {
                    Next::Group(group) => again = group,
                    Next::Snapshot(reply) => self.asked = Some(reply),
                    Next::Quiet => {}
                    Next::Ended => return self.close(),
                }
            }
            // Each round that leaves some has answered one, so this ends.
            again = self.period(again);
        }
    }

    /// A group and what follows it, up to the next checkpoint. Returns the calls that are to
    /// be carried out again.
    fn period(&mut self, mut group: Vec<Member>) -> Vec<Member> {
        let mut base = match self.base() {
            Ok(base) => base,
            Err(error) => return self.fail(group, &error),
        };
        match self.serve(&mut base, &mut group) {
            Ok(()) => {
                if let Some(reply) = self.asked.take() {
                    let _ = reply.send(base.snapshot());
                }
                self.base = Some(base);
                group
            }
            Err(Failed::One(index, error)) => {
                group.remove(index).call.answer(Some(error));
                group
            }
            Err(Failed::All(error)) => self.fail(group, &error),
        }
    }

    fn base(&mut self) -> Result<Base, StoreError> {
        let open = || Base::open(&self.place, self.shards).map(|(base, _)| base);
        self.base.take().map_or_else(open, Ok)
    }

    /// One transaction of the database, over as many groups as come before the next
    /// checkpoint. What is left in `group` was not answered.
    fn serve(&mut self, base: &mut Base, group: &mut Vec<Member>) -> Result<(), Failed> {
        if group.is_empty() {
            // A snapshot has all there is; or nothing was asked for, and a checkpoint is due.
            return if self.asked.is_some() { Ok(()) } else { Ok(base.checkpoint(base.begin()?)?) };
        }
        let (journal, write) = (Journal::new(), base.begin()?);
        let mut txn = Txn::open(&write, &journal, std::mem::take(&mut self.plan))?;
        let told = loop {
            self.carry_out(&mut txn, group)?;
            let told = txn.seal()?;
            if !base.keep(&journal)? {
                break told;
            }
            self.tell(group, told);
            let patience = base.patience();
            if patience == Some(Duration::ZERO) {
                break <_>::default();
            }
            match self.queue.next(patience) {
                Next::Group(next) => *group = next,
                Next::Snapshot(reply) => {
                    self.asked = Some(reply);
                    break <_>::default();
                }
                Next::Quiet | Next::Ended => break <_>::default(),
            }
        };
        self.plan = txn.close();
        let ended = if self.asked.is_some() { base.show(write) } else { base.checkpoint(write) };
        ended?;
        self.tell(group, told);
        Ok(())
    }

    fn carry_out(&mut self, txn: &mut Txn<'_>, group: &mut [Member]) -> Result<(), Failed> {
        for (index, member) in group.iter_mut().enumerate() {
            let before = txn.written();
            txn.begin(member.shard, self.time.read(), self.place.tower.until(member.shard))?;
            member.failed = match member.call.run(txn) {
                Ok(()) => {
                    txn.end();
                    None
                }
                Err(error @ StoreError::Disk(_)) => return Err(Failed::All(error)),
                Err(error) if txn.written() == before => Some(error),
                Err(error) => return Err(Failed::One(index, error)),
            };
        }
        Ok(())
    }

    /// Answers a group that is safe.
    fn tell(&self, group: &mut Vec<Member>, (wakes, events): (Vec<Wake>, Vec<Event>)) {
        self.place.tower.tell(events);
        group.drain(..).for_each(|member| member.call.answer(member.failed));
        wakes.into_iter().for_each(|wake| self.place.hub.tell(wake));
    }

    /// Tells all of a group. What was read of the files may be wrong now, so they are opened
    /// again for the next.
    fn fail(&mut self, group: Vec<Member>, error: &StoreError) -> Vec<Member> {
        tracing::error!(
            error = error as &dyn std::error::Error,
            calls = group.len(),
            "the embedded store cannot write its files"
        );
        let same = || match error {
            StoreError::Disk(cause) => StoreError::Disk(Arc::clone(cause)),
            StoreError::Unfit(why) => StoreError::Unfit(why.clone()),
            other => StoreError::Unfit(other.to_string()),
        };
        group.into_iter().for_each(|member| member.call.answer(Some(same())));
        if let Some(reply) = self.asked.take() {
            let _ = reply.send(Err(same()));
        }
        Vec::new()
    }

    fn close(mut self) {
        if let Err(error) = self.base.take().map_or(Ok(()), Base::close) {
            // The log stays, and is carried out at the next start.
            tracing::error!(error = &error as &dyn std::error::Error, "the embedded store cannot be closed");
        }
    }
}
