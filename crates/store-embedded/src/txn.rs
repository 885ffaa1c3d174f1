//! The writer's open transaction as the transitions see it: the tables, the shard and the time of the present
//! transition, and the wake-ups, events and log lines that its group publishes. `state_changes` has the steps that
//! transitions are made of.

mod order;
pub(crate) mod set_back;
pub(crate) mod state_changes;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{JobKey, Topic};
use ringback_core::lane::Lane;
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;
use ringback_core::store_types::{
    AttemptEnded, AttemptOutcome, Event, EventKind, LoggedTransition, Shard, StoreError, TransitionName,
    Wake, transition_log,
};

use super::error::Result;
use super::tables::{Journal, Last, PULL, Record, ShardRow, Tables, Writing};

/// The time of the next planned pass over each shard, in ms. Only earlier times wake the carrier. The
/// map starts empty, so a carrier is woken for every time before its first pass.
pub(crate) type PassTimes = HashMap<u16, u64>;

/// The age and the number of the tombstones that a shard keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepTombstones {
    /// In ms.
    pub(crate) time: u64,
    pub(crate) count: u64,
}

/// The wake-ups, events and log lines that a group publishes once its changes are safe.
#[derive(Default)]
pub(crate) struct Sealed {
    pub(crate) wakes: Vec<Wake>,
    pub(crate) events: Vec<Event>,
    /// Changes of jobs to log.
    pub(crate) transitions: Vec<LoggedTransition>,
}

pub(crate) struct Txn<'t> {
    pub(crate) tables: Tables<Writing<'t>>,
    journal: &'t Journal,
    /// The rows of shards that transitions of this transaction have changed.
    rows: HashMap<u16, ShardRow>,
    /// The shards among them that the present group has changed.
    changed: BTreeSet<u16>,
    passes: PassTimes,
    /// What the present group publishes.
    sealed: Sealed,
    /// The row of the shard before the present transition.
    before: ShardRow,
    /// The row of the shard, as the present transition changes it.
    pub(crate) row: ShardRow,
    transition: Transition,
}

/// The state of the present transition.
#[derive(Default)]
struct Transition {
    shard: u16,
    now_us: u64,
    /// The earliest time for which a carrier must wake up, in ms.
    wake_at: Option<u64>,
    /// Whether a lane of push jobs is no longer empty.
    is_ready: bool,
    /// Lanes of pull jobs that are no longer empty.
    pull_topics: BTreeSet<Box<str>>,
    /// How many jobs the transition has ended.
    ended: usize,
    /// Whether the shard's events are watched.
    is_watched: bool,
    events: Vec<Event>,
    /// Whether the changes of jobs are logged.
    is_logged: bool,
    /// The name under which changes are logged, and a reason that the name does not imply.
    cause: Option<(TransitionName, Option<&'static str>)>,
    /// The transitions to log.
    taken: Vec<LoggedTransition>,
}

impl<'t> Txn<'t> {
    pub(crate) fn open(access: &Writing<'t>, passes: PassTimes) -> Result<Self> {
        Ok(Self {
            tables: Tables::open(access)?,
            journal: access.journal,
            rows: HashMap::new(),
            changed: BTreeSet::new(),
            passes,
            sealed: Sealed::default(),
            before: ShardRow::default(),
            row: ShardRow::default(),
            transition: Transition::default(),
        })
    }

    /// Begins a transition of a shard at a time in µs, and discards the state of one that failed. The shard's events
    /// are watched until `watched`, in ms.
    pub(crate) fn begin(&mut self, shard: Shard, now_us: u64, watched: u64) -> Result<()> {
        let is_watched = watched > now_us / 1000;
        let is_logged = transition_log::is_on();
        self.transition =
            Transition { shard: shard.0, now_us, is_watched, is_logged, ..Transition::default() };
        self.tables.counts.begin();
        self.before = match self.rows.get(&shard.0) {
            Some(row) => row.clone(),
            None => self.tables.shards.get(shard.0)?,
        };
        self.row = self.before.clone();
        Ok(())
    }

    /// Ends a transition that has succeeded.
    pub(crate) fn end(&mut self) {
        let Transition { shard, now_us, wake_at, is_ready, pull_topics, events, taken, .. } =
            std::mem::take(&mut self.transition);
        self.tables.counts.end(shard);
        self.sealed.events.extend(events);
        self.sealed.transitions.extend(taken);
        let wakes = &mut self.sealed.wakes;
        if is_ready {
            wakes.push(Wake::Ready(Shard(shard)));
        }
        let topics = pull_topics.iter().filter_map(|topic| Topic::from_stored(topic));
        wakes.extend(topics.map(|topic| Wake::Pull(Shard(shard), topic)));
        if let Some(at) = wake_at
            && self.passes.get(&shard).is_none_or(|next| at < *next)
        {
            self.passes.insert(shard, at);
            let wait = Duration::from_micros(at.saturating_mul(1000).saturating_sub(now_us));
            wakes.push(Wake::Due(Shard(shard), wait));
        }
        if self.row != self.before {
            // The time that was written never gets smaller, so a clock that is behind it is noticed.
            self.row.time_us = self.row.time_us.max(now_us);
            self.rows.insert(shard, self.row.clone());
            self.changed.insert(shard);
        }
    }

    /// Changes the time in the row of the shard, so that the group writes the row and shows whether that is possible.
    pub(crate) fn touch(&mut self) {
        self.row.time_us = self.transition.now_us;
    }

    /// Returns the size of the journal in bytes, which grows with each row that is written.
    pub(crate) fn written(&self) -> usize {
        self.journal.bytes()
    }

    /// Ends a group: writes the changed rows of shards and counts, and returns what the group publishes.
    pub(crate) fn seal(&mut self) -> Result<Sealed> {
        self.tables.counts.save()?;
        for shard in std::mem::take(&mut self.changed) {
            if let Some(row) = self.rows.get(&shard) {
                self.tables.shards.put(shard, row)?;
            }
        }
        Ok(std::mem::take(&mut self.sealed))
    }

    pub(crate) fn close(self) -> PassTimes {
        self.passes
    }

    pub(crate) fn shard(&self) -> u16 {
        self.transition.shard
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.transition.now_us
    }

    /// Returns the time in ms, rounded down, to compare due times with.
    pub(crate) fn now(&self) -> u64 {
        self.transition.now_us / 1000
    }

    /// Returns the time in ms, rounded up, to add delays to, so that nothing is early.
    pub(crate) fn now_up(&self) -> u64 {
        self.transition.now_us.div_ceil(1000)
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.transition.is_watched
    }

    /// Wakes the shard's carrier at a time, in ms, unless its next planned pass is not later.
    pub(crate) fn wake_at(&mut self, at: u64) {
        self.transition.wake_at = Some(self.transition.wake_at.map_or(at, |first| first.min(at)));
    }

    /// Publishes a wake-up that is about no shard.
    pub(crate) fn wake(&mut self, wake: Wake) {
        self.sealed.wakes.push(wake);
    }

    /// Wakes the notifiers that reserve push jobs of the shard.
    pub(crate) fn wake_push(&mut self) {
        self.transition.is_ready = true;
    }

    /// Wakes the notifiers, or for a lane of pull jobs the consumers of its topic.
    pub(crate) fn wake_lane(&mut self, lane: Lane<'_>) {
        if lane.is_pull() {
            if !self.transition.pull_topics.contains(lane.topic) {
                self.transition.pull_topics.insert(lane.topic.into());
            }
        } else {
            self.transition.is_ready = true;
        }
    }

    /// Records the time of the next planned pass over the shard, in ms.
    pub(crate) fn plan_pass(&mut self, at: u64) {
        self.passes.insert(self.transition.shard, at);
    }

    /// Returns a turn for a lane that was empty: the time in µs or, if that is not greater, one more than the last turn
    /// before this transition. Records it as the last turn.
    pub(crate) fn next_turn(&mut self) -> u64 {
        let turn = (self.before.turn + 1).max(self.now_us());
        self.row.turn = self.row.turn.max(turn);
        turn
    }

    /// Returns the last turn that has come, those of this transition included. Deferred lanes have later turns.
    pub(crate) fn last_turn(&self) -> u64 {
        self.row.turn.max(self.now_us())
    }

    /// Gives a lane a turn behind the others, and wakes the notifiers or the consumers of its topic.
    pub(crate) fn give_turn(&mut self, lane: &str) -> Result<()> {
        let lane = Lane::parse(lane).ok_or(StoreError::Unreadable("a lane's name"))?;
        let turn = if lane.is_pull() { PULL } else { self.next_turn() };
        self.tables.ready.set_turn(self.transition.shard, &lane.name(), Some(turn))?;
        self.wake_lane(lane);
        Ok(())
    }

    /// Returns a job by its locator, or its tombstone while that is kept; `None` if there is neither.
    pub(crate) fn find(&self, locator: [u8; 12], keep: KeepTombstones) -> Result<Option<Record>> {
        let found = self.tables.records.find(locator)?;
        Ok(found.filter(|record| !self.is_expired(record, keep)))
    }

    /// Whether a record is a tombstone that is older than tombstones are kept.
    pub(crate) fn is_expired(&self, record: &Record, keep: KeepTombstones) -> bool {
        record.ended().is_some_and(|at| self.now() > at.saturating_add(keep.time))
    }

    /// Publishes an event of a job, if the shard is watched and the job's key can be read. Must be called before the
    /// body is removed, and while the record still has its topic.
    pub(crate) fn publish(&mut self, job: &Record, what: impl FnOnce() -> EventKind) -> Result<()> {
        if !self.transition.is_watched {
            return Ok(());
        }
        if let Some(key) = self.key_of(job)? {
            let at = Timestamp::from_millis(self.now());
            self.transition.events.push(Event { at, key, tags: job.tags.clone(), kind: what() });
        }
        Ok(())
    }

    /// Returns the key of a job; `None` unless it has a readable body, and its record still has the topic.
    fn key_of(&self, job: &Record) -> Result<Option<JobKey>> {
        let id = self.tables.records.id(job.number)?.and_then(|id| id.parse().ok());
        Ok(id.zip(Topic::from_stored(&job.topic)).map(|(id, topic)| JobKey { topic, id }))
    }

    /// Sets the name and the reason with which the following changes of jobs are logged.
    pub(crate) fn because(&mut self, name: TransitionName, reason: Option<&'static str>) {
        self.transition.cause = Some((name, reason));
    }

    /// Records a change of a job for the log, if that is on. Must be called before the body is removed, and while the
    /// record still has its topic. `reason`, if given, replaces the reason of [`Self::because`].
    pub(crate) fn log_transition(
        &mut self,
        job: &Record,
        from: Option<State>,
        to: Option<State>,
        reason: Option<&str>,
    ) -> Result<()> {
        if !self.transition.is_logged {
            return Ok(());
        }
        let Some((name, why)) = self.transition.cause else { return Ok(()) };
        if let Some(key) = self.key_of(job)? {
            let reason = reason.or(why).map(Into::into);
            self.transition.taken.push(LoggedTransition { key, name, from, to, reason });
        }
        Ok(())
    }

    /// Publishes the end of an attempt: its outcome, when the job is due again, in ms, and the response, if known.
    pub(crate) fn publish_attempt(
        &mut self,
        job: &Record,
        outcome: AttemptOutcome,
        due: Option<u64>,
        response: Option<&LastAttempt>,
    ) -> Result<()> {
        self.publish(job, || {
            let due = due.map(Timestamp::from_millis);
            let (status, error, duration) = response.map(Last::from).map_or((None, None, None), |last| {
                (last.status, last.error, Some(Duration::from_millis(last.duration)))
            });
            EventKind::Attempt(AttemptEnded { number: job.attempts, outcome, due, status, error, duration })
        })
    }
}
