//! What waits for the writer, taken group by group.

use std::io;
use std::time::Duration;

use ringback_core::contract::{Shard, StoreError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::{Instant, timeout};

use super::{Call, Reply};

/// The most calls of a group.
const GROUP: usize = 256;
/// A group is closed once its calls carry so many bytes.
const GROUP_BYTES: usize = 4 * 1024 * 1024;
/// Who was answered with the last group may ask again at once: so long the next one waits
/// for as many as that had, at most. Nobody waits who was alone.
const LINGER: Duration = Duration::from_micros(300);

pub(crate) enum Request {
    /// A call, and about how many bytes it writes.
    Edge(Member, usize),
    Snapshot(Reply),
}

/// A call of a group, and why it failed by itself.
pub(crate) struct Member {
    pub(crate) shard: Shard,
    pub(crate) call: Box<dyn Call>,
    pub(crate) failed: Option<StoreError>,
}

/// What is to be done next.
pub(crate) enum Next {
    Group(Vec<Member>),
    Snapshot(Reply),
    /// Nothing came for so long.
    Quiet,
    /// Nothing will come any more.
    Ended,
}

pub(crate) struct Queue {
    requests: Receiver<Request>,
    /// A request that ended the group before it.
    held: Option<Request>,
    /// How many calls the last group had.
    last: usize,
    /// For waiting with an end.
    timer: Runtime,
}

impl Queue {
    pub(crate) fn new(requests: Receiver<Request>) -> io::Result<Self> {
        let timer = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { requests, held: None, last: 0, timer })
    }

    /// Waits for what comes next; with a `patience` for so long.
    pub(crate) fn next(&mut self, patience: Option<Duration>) -> Next {
        let request = match self.held.take().map_or_else(|| self.requests.try_recv(), Ok) {
            Ok(request) => Some(request),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => match patience {
                None => self.requests.blocking_recv(),
                Some(patience) => {
                    let requests = &mut self.requests;
                    match self.timer.block_on(async { timeout(patience, requests.recv()).await }) {
                        Ok(request) => request,
                        Err(_elapsed) => return Next::Quiet,
                    }
                }
            },
        };
        match request {
            Some(Request::Edge(member, bytes)) => Next::Group(self.gather(member, bytes)),
            Some(Request::Snapshot(reply)) => Next::Snapshot(reply),
            None => Next::Ended,
        }
    }

    /// What is waiting by now, or comes in a moment.
    fn gather(&mut self, first: Member, mut bytes: usize) -> Vec<Member> {
        let mut group = vec![first];
        let begun = Instant::now();
        while group.len() < GROUP && bytes < GROUP_BYTES {
            match self.requests.try_recv() {
                Ok(Request::Edge(member, more)) => {
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
