//! The queue of the writer: collects waiting calls into groups. A call runs in the writer and answers its caller.

use std::io;
use std::time::Duration;

use redb::ReadTransaction;
use ringback_core::store_types::{Shard, StoreError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::error::Result;
use crate::txn::Txn;

/// The most calls of a group.
const GROUP: usize = 256;
/// A group is full once its calls write this many bytes.
const GROUP_BYTES: usize = 4 * 1024 * 1024;
/// How long a group waits to have as many calls as the one before, since callers that were answered may call again at
/// once. After a group of one call, there is no wait.
const LINGER: Duration = Duration::from_micros(300);

pub(crate) enum Request {
    /// A call, and about how many bytes it writes.
    Call(Member, usize),
    Snapshot(Reply),
}

pub(crate) type Reply = oneshot::Sender<Result<ReadTransaction, StoreError>>;

/// The next thing for the writer to do.
pub(crate) enum Next {
    Group(Vec<Member>),
    Snapshot(Reply),
    /// No request came within the time.
    Quiet,
    /// No more requests will come.
    Ended,
}

pub(crate) struct Queue {
    requests: Receiver<Request>,
    /// A request for a snapshot that ended the group before it.
    held: Option<Request>,
    /// The number of calls of the last group.
    last: usize,
    /// Runs waits that have a limit.
    timer: Runtime,
}

impl Queue {
    pub(crate) fn new(requests: Receiver<Request>) -> io::Result<Self> {
        let timer = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { requests, held: None, last: 0, timer })
    }

    /// Waits for the next request, at most for `wait`, and collects a group if it is a call.
    pub(crate) fn next(&mut self, wait: Option<Duration>) -> Next {
        let request = match self.held.take().map_or_else(|| self.requests.try_recv(), Ok) {
            Ok(request) => Some(request),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => match wait {
                None => self.requests.blocking_recv(),
                Some(wait) => {
                    let requests = &mut self.requests;
                    match self.timer.block_on(async { timeout(wait, requests.recv()).await }) {
                        Ok(request) => request,
                        Err(_elapsed) => return Next::Quiet,
                    }
                }
            },
        };
        match request {
            Some(Request::Call(member, bytes)) => Next::Group(self.gather(member, bytes)),
            Some(Request::Snapshot(reply)) => Next::Snapshot(reply),
            None => Next::Ended,
        }
    }

    /// Returns a group: `first` and the calls that wait already or, if the last group was larger, arrive within
    /// [`LINGER`]. A request for a snapshot ends the group and is kept for later.
    fn gather(&mut self, first: Member, mut bytes: usize) -> Vec<Member> {
        let mut group = vec![first];
        let begun = Instant::now();
        while group.len() < GROUP && bytes < GROUP_BYTES {
            match self.requests.try_recv() {
                Ok(Request::Call(member, more)) => {
                    bytes += more;
                    group.push(member);
                }
                Ok(other) => {
                    self.held = Some(other);
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
}

/// A call, which may run more than once before it is answered.
pub(crate) trait Call: Send {
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<()>;
    /// Answers the caller with the result of the last run, or with the reason why it failed.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

/// A call of a group, and its own error if it failed.
pub(crate) struct Member {
    pub(crate) shard: Shard,
    pub(crate) call: Box<dyn Call>,
    pub(crate) failed: Option<StoreError>,
}

impl Member {
    /// Returns a call that runs `work`, and the receiver of its answer.
    pub(crate) fn new<T: Send + 'static>(
        shard: Shard,
        work: impl FnMut(&mut Txn<'_>) -> Result<T> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { shard, call: Box::new(Work { work, done: None, reply }), failed: None }, answer)
    }
}

struct Work<F, T> {
    work: F,
    /// The result of the last run.
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Txn<'_>) -> Result<T> + Send> Call for Work<F, T> {
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<()> {
        self.done = Some((self.work)(txn)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let answer = match (failed, self.done) {
            (None, Some(done)) => Ok(done),
            (failed, _) => Err(failed.unwrap_or(StoreError::Closed)),
        };
        // An error means that the caller has stopped waiting.
        let _ = self.reply.send(answer);
    }
}
