//! The one writer: a thread that takes all waiting calls as a group, runs them, syncs their changes to the log, and only
//! then answers them, so that many calls share one sync of the disk. The database's transaction stays open over many
//! groups, until a checkpoint. Sets the store's time back if the clock is far behind.
//!
//! A call that fails does not affect the others of its group. When the files cannot be written, all
//! calls of the group fail; then, as after a call that failed half-way, the store is opened again at
//! its last checkpoint and the log is replayed.

mod queue;
pub(crate) mod shared;
mod time;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringback_core::crash_point;
use ringback_core::store_types::{ClockGap, StoreError, transition_log};
use tokio::sync::mpsc;

use self::queue::{Member, Next, Queue, Reply, Request};
use self::time::Time;
use super::clock_consent::{Ahead, ClockConsent};
use super::error::{Error, Result};
use super::location::StoreLocation;
use super::mutex::lock;
use super::places::LimitUsage;
use super::redo_log::checkpoint::CheckpointedDb;
use super::tables::{Journal, Shards, Writing};
use super::txn::set_back::SetBack;
use super::txn::{PassTimes, Sealed, Txn};

/// How many calls may wait.
const WAITING: usize = 1024;

/// Opens a location and starts its writer. Returns the writer's queue and thread, and the number of shards.
pub(crate) fn start(
    location: &Arc<StoreLocation>,
    shards: u16,
) -> Result<(mpsc::Sender<Request>, JoinHandle<()>, u16)> {
    let (sender, requests) = mpsc::channel(WAITING);
    let queue = Queue::new(requests)?;
    let writer = Writer { queue: Some(queue), ..Writer::open(location, shards)? };
    let shards = writer.shards;
    let thread = std::thread::Builder::new().name("ringback-store".to_owned()).spawn(|| writer.run())?;
    Ok((sender, thread, shards))
}

pub(crate) struct Writer {
    location: Arc<StoreLocation>,
    /// `None` after a failure, until it is opened again.
    db: Option<CheckpointedDb>,
    pub(crate) shards: u16,
    time: Time,
    passes: PassTimes,
    /// `None` if each caller runs its call itself.
    queue: Option<Queue>,
    /// A request for a snapshot that is not answered yet.
    snapshot: Option<Reply>,
    /// The number of the last frame that callers were answered for.
    acknowledged: u64,
}

/// Why the open transaction is thrown away.
enum Failed {
    /// This call of the group failed after it had begun to write.
    One(usize, Error),
    All(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::All(error)
    }
}

impl Writer {
    /// Opens the database of a location. The writer has no queue yet.
    pub(crate) fn open(location: &Arc<StoreLocation>, shards: u16) -> Result<Self> {
        let (db, shards) = CheckpointedDb::open(location, shards)?;
        let mut time = Time::new(Arc::clone(&location.clock), last_time(&db)?);
        *lock(&location.places) = LimitUsage::new(time.read());
        Ok(Self {
            location: Arc::clone(location),
            db: Some(db),
            shards,
            time,
            passes: PassTimes::default(),
            queue: None,
            snapshot: None,
            acknowledged: 0,
        })
    }

    /// Runs and answers one request on the thread of its caller. Only for a writer without a queue.
    pub(crate) fn run_one(&mut self, request: Request) {
        let mut again = match request {
            Request::Call(member, _bytes) => self.round(vec![member]),
            Request::Snapshot(reply) => {
                self.snapshot = Some(reply);
                self.round(Vec::new())
            }
        };
        while !again.is_empty() {
            again = self.round(again);
        }
    }

    fn next(&mut self, wait: Option<Duration>) -> Next {
        self.queue.as_mut().map_or(Next::Ended, |queue| queue.next(wait))
    }

    fn run(mut self) {
        let mut again = Vec::new();
        loop {
            if again.is_empty() {
                let wait = self.db.as_ref().and_then(CheckpointedDb::until_checkpoint);
                match self.next(wait) {
                    Next::Group(group) => again = group,
                    Next::Snapshot(reply) => self.snapshot = Some(reply),
                    Next::Quiet => {}
                    Next::Ended => return self.close(),
                }
            }
            // Each round that leaves calls has answered one, so this ends.
            again = self.round(again);
        }
    }

    /// Runs a group and those that follow it, up to the next checkpoint, and answers a request for a snapshot. Returns
    /// the calls that must run again because another one failed half-way; that one was answered.
    fn round(&mut self, mut group: Vec<Member>) -> Vec<Member> {
        let mut db = match self.db() {
            Ok(db) => db,
            Err(error) => return self.fail(group, error),
        };
        let served = self.serve(&mut db, &mut group);
        self.acknowledged = db.acknowledged();
        match served {
            Ok(()) => {
                if let Some(reply) = self.snapshot.take() {
                    let _ = reply.send(db.snapshot().map_err(StoreError::from));
                }
                self.db = Some(db);
                group
            }
            Err(Failed::One(index, error)) => {
                group.remove(index).call.answer(Some(error.into()));
                group
            }
            Err(Failed::All(error)) => self.fail(group, error),
        }
    }

    /// Returns the database, opened again after a failure. Fails if its file is gone, or lacks frames for which callers
    /// were answered.
    fn db(&mut self) -> Result<CheckpointedDb> {
        if let Some(db) = self.db.take() {
            return Ok(db);
        }
        self.location.check_is_there()?;
        let (db, _) = CheckpointedDb::open(&self.location, self.shards)?;
        if db.acknowledged() < self.acknowledged {
            return Err(self.location.is_older().into());
        }
        self.time.is_opened_at(last_time(&db)?);
        Ok(db)
    }

    /// Runs and answers groups in one transaction of the database, until a checkpoint or a request for a snapshot. The
    /// calls that are left in `group` after an error were not answered.
    fn serve(&mut self, db: &mut CheckpointedDb, group: &mut Vec<Member>) -> Result<(), Failed> {
        if group.is_empty() {
            // A snapshot needs no transaction; otherwise a checkpoint is due.
            return if self.snapshot.is_some() { Ok(()) } else { Ok(db.checkpoint(db.begin()?)?) };
        }
        let (journal, write) = (Journal::new(), db.begin()?);
        let access = Writing { txn: &write, journal: &journal };
        let mut txn = Txn::open(&access, std::mem::take(&mut self.passes))?;
        let unpublished = loop {
            self.run_group(&mut txn, group)?;
            let sealed = txn.seal()?;
            let has_changes = journal.bytes() > 0;
            if !db.append(&journal)? {
                break sealed;
            }
            if has_changes && self.location.can_write() {
                tracing::info!("the embedded store can write its files again");
            }
            self.answer(group, sealed);
            let wait = db.until_checkpoint();
            if wait == Some(Duration::ZERO) {
                break Sealed::default();
            }
            match self.next(wait) {
                Next::Group(next) => *group = next,
                Next::Snapshot(reply) => {
                    self.snapshot = Some(reply);
                    break Sealed::default();
                }
                Next::Quiet | Next::Ended => break Sealed::default(),
            }
        };
        self.passes = txn.close();
        if self.snapshot.is_some() {
            db.publish(write)?;
        } else {
            db.checkpoint(write)?;
        }
        self.answer(group, unpublished);
        Ok(())
    }

    /// Goes back to the clock if the store's time is far ahead of it, or an operator has said that the clock is right.
    /// Until an operator says so, the former time is remembered and shown, if jobs were touched by it.
    fn follow_clock(&mut self, txn: &mut Txn<'_>) -> Result<()> {
        let (word, known) = (self.location.clock_word.take(), self.location.clock_word.ahead());
        let accepted = known.filter(|_| word == ClockConsent::Given).map(|ahead| ahead.time_us);
        let Some(from_us) = self.time.is_to_go_back_from().or(accepted) else { return Ok(()) };
        let (shards, last_us, to_us) = (self.shards, self.time.read(), self.time.go_back());
        lock(&self.location.places).set_back(last_us, to_us);
        let from_us = known.map_or(from_us, |ahead| ahead.time_us.max(from_us));
        let jobs = txn.set_back(&SetBack { shards, from_us, to_us, word })?;
        let gap = ClockGap::ahead(Duration::from_micros(from_us.saturating_sub(to_us)), jobs);
        let ahead = (jobs > 0 && word == ClockConsent::Awaited).then_some(Ahead { time_us: from_us, jobs });
        if ahead.is_some() {
            tracing::warn!(
                jobs,
                ahead_ms = gap.ahead_ms,
                "the store's last time is {gap} the machine's clock, and jobs were accepted, tried or became due by it; none of them is delivered before the clock shows its due time. If the clock is right: `ringback check --accept-clock`"
            );
        } else {
            txn.forget_time(shards, to_us)?;
            tracing::warn!(
                jobs,
                ahead_ms = gap.ahead_ms,
                "the store's last time is {gap} the machine's clock; the store follows the clock"
            );
        }
        self.location.clock_word.set_ahead(ahead);
        Ok(())
    }

    fn run_group(&mut self, txn: &mut Txn<'_>, group: &mut [Member]) -> Result<(), Failed> {
        self.follow_clock(txn)?;
        for (index, member) in group.iter_mut().enumerate() {
            let before = txn.written();
            let watched = self.location.events.watched_until(member.shard);
            txn.begin(member.shard, self.time.read(), watched)?;
            member.failed = match member.call.run(txn) {
                Ok(()) => {
                    txn.end();
                    None
                }
                Err(error @ Error::Disk(_)) => return Err(Failed::All(error)),
                Err(error) if txn.written() == before => Some(error.into()),
                Err(error) => return Err(Failed::One(index, error)),
            };
        }
        Ok(())
    }

    /// Answers a group whose changes are safe, logs its transitions, and publishes its events and wake-ups.
    fn answer(&self, group: &mut Vec<Member>, sealed: Sealed) {
        crash_point!("embedded.before_answer");
        transition_log::write(&sealed.transitions);
        self.location.events.publish(sealed.events);
        for member in group.drain(..) {
            member.call.answer(member.failed);
        }
        for wake in sealed.wakes {
            // An error means that nobody listens.
            let _ = self.location.wakes.send(wake);
        }
    }

    /// Answers all calls of a group, and a request for a snapshot, with an error, and logs the first error in a row.
    /// Returns no calls. The files are opened again for the next group, since what was read of them may be wrong now.
    fn fail(&mut self, group: Vec<Member>, error: Error) -> Vec<Member> {
        let error = StoreError::from(error);
        // Logged once: every group fails while the disk is full.
        if self.location.cannot_write() {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                calls = group.len(),
                "the embedded store cannot write its files"
            );
        }
        group.into_iter().for_each(|member| member.call.answer(Some(error.clone())));
        if let Some(reply) = self.snapshot.take() {
            let _ = reply.send(Err(error));
        }
        Vec::new()
    }

    fn close(mut self) {
        if let Err(error) = self.db.take().map_or(Ok(()), CheckpointedDb::close) {
            // The log stays, and is replayed at the next start.
            let error = StoreError::from(error);
            tracing::error!(error = &error as &dyn std::error::Error, "the embedded store cannot be closed");
        }
    }
}

/// Returns the latest time that the store has written, in µs; 0 if there is none.
fn last_time(db: &CheckpointedDb) -> Result<u64> {
    let rows = Shards::open(&db.snapshot()?)?.all()?;
    Ok(rows.into_values().map(|row| row.time_us).max().unwrap_or(0))
}
