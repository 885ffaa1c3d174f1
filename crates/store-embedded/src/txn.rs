//! The open write transaction, as the edges see it: the tables, the time of the edge, its shard's
//! row, and the moves that every edge is made of. An edge looks first and changes after.

mod repair;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use redb::WriteTransaction;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{Event, EventKind, Shard, StoreError, Wake};
use ringback_core::lane::{LaneId, PullLane};
use ringback_core::state::State;

use super::events::Gathered;
use super::tables::{Journal, PULL, Queue, Record, ShardRow, Stage, Tables};
use super::wake::Plan;

/// So many tombstones are looked at for old ones, and two more for each job that ends.
const TRIMMED: usize = 16;
/// No tombstone is forgotten for lack of room before it is so old, in ms.
const LEAST_KEPT: u64 = 120_000;

/// How long and how many tombstones a shard keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// In ms.
    pub(crate) time: u64,
    pub(crate) count: u64,
}

/// Where a job goes.
pub(crate) enum To {
    /// Due at a time, in ms.
    Delayed(u64),
    Ready(Queue),
    Reserved {
        lease: u64,
        bits: [u8; 8],
        deadline: u64,
    },
    Dead(Box<str>),
}

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Cancelled,
}

impl End {
    const fn event(self) -> EventKind {
        match self {
            Self::Done => EventKind::Done,
            Self::Cancelled => EventKind::Cancelled,
        }
    }
}

pub(crate) struct Txn<'t> {
    pub(crate) tables: Tables<'t>,
    journal: &'t Journal,
    /// Rows that edges of this transaction have changed.
    rows: HashMap<u16, ShardRow>,
    /// Which of them in the present group.
    changed: BTreeSet<u16>,
    plan: Plan,
    wakes: Vec<Wake>,
    pub(crate) events: Gathered,
    /// Of the edge under way.
    shard: u16,
    now_us: u64,
    before: ShardRow,
    pub(crate) row: ShardRow,
    soonest: Option<u64>,
    woken: bool,
    /// Lanes for pull that are no longer empty.
    pulls: BTreeSet<PullLane>,
    ended: usize,
}

impl<'t> Txn<'t> {
    pub(crate) fn open(
        txn: &'t WriteTransaction,
        journal: &'t Journal,
        plan: Plan,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            tables: Tables::open(txn, journal)?,
            journal,
            rows: HashMap::new(),
            changed: BTreeSet::new(),
            plan,
            wakes: Vec::new(),
            events: Gathered::default(),
            shard: 0,
            now_us: 0,
            before: ShardRow::default(),
            row: ShardRow::default(),
            soonest: None,
            woken: false,
            pulls: BTreeSet::new(),
            ended: 0,
        })
    }

    /// Begins an edge of a shard, at a time in µs. `watched`: until when the shard is, in ms.
    pub(crate) fn begin(&mut self, shard: Shard, now_us: u64, watched: u64) -> Result<(), StoreError> {
        (self.shard, self.now_us, self.soonest, self.woken, self.ended) = (shard.0, now_us, None, false, 0);
        self.pulls.clear();
        self.events.begin(watched, now_us / 1000);
        self.tables.counts.begin();
        self.before = match self.rows.get(&shard.0) {
            Some(row) => row.clone(),
            None => self.tables.shards.get(shard.0)?,
        };
        self.row = self.before.clone();
        Ok(())
    }

    /// Ends an edge that has succeeded.
    pub(crate) fn end(&mut self) {
        let shard = Shard(self.shard);
        self.tables.counts.end(self.shard);
        self.events.end();
        if self.woken {
            self.wakes.push(Wake::Ready(shard));
        }
        self.wakes.extend(std::mem::take(&mut self.pulls).into_iter().map(|lane| Wake::Pull(shard, lane)));
        if let Some(soonest) = self.soonest
            && self.plan.get(&self.shard).is_none_or(|planned| soonest < *planned)
        {
            self.plan.insert(self.shard, soonest);
            let wait = Duration::from_micros(soonest.saturating_mul(1000).saturating_sub(self.now_us));
            self.wakes.push(Wake::Due(shard, wait));
        }
        if self.row != self.before {
            self.row.time_us = self.now_us;
            self.rows.insert(self.shard, self.row.clone());
            self.changed.insert(self.shard);
        }
    }

    /// Grows with each row that is written.
    pub(crate) fn written(&self) -> usize {
        self.journal.bytes()
    }

    /// Ends a group: writes the shards' rows and the counts, and hands over what is to be told once all of
    /// it is safe.
    pub(crate) fn seal(&mut self) -> Result<(Vec<Wake>, Vec<Event>), StoreError> {
        self.tables.counts.save()?;
        for shard in std::mem::take(&mut self.changed) {
            if let Some(row) = self.rows.get(&shard) {
                self.tables.shards.put(shard, row)?;
            }
        }
        Ok((std::mem::take(&mut self.wakes), self.events.take()))
    }

    /// Lets go of the tables.
    pub(crate) fn close(self) -> Plan {
        self.plan
    }

    pub(crate) fn shard(&self) -> u16 {
        self.shard
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// In ms, rounded down, to compare with: "is it due?"
    pub(crate) fn now(&self) -> u64 {
        self.now_us / 1000
    }

    /// In ms, rounded up, to add to, so that nothing is ever early.
    pub(crate) fn now_up(&self) -> u64 {
        self.now_us.div_ceil(1000)
    }

    /// Something of this shard is due at a time.
    pub(crate) fn moment(&mut self, at: u64) {
        self.soonest = Some(self.soonest.map_or(at, |soonest| soonest.min(at)));
    }

    /// Something that is of no shard.
    pub(crate) fn tell(&mut self, wake: Wake) {
        self.wakes.push(wake);
    }

    /// The shard's carrier will look again at a time.
    pub(crate) fn plan(&mut self, at: u64) {
        self.plan.insert(self.shard, at);
    }

    /// The turn of a lane that was empty: behind all that were given one before this edge.
    pub(crate) fn turn(&mut self) -> u64 {
        let turn = self.before.turn + 1;
        self.row.turn = self.row.turn.max(turn);
        turn
    }

    /// A job by its name; one that has ended, as long as it is remembered.
    pub(crate) fn known(&self, locator: [u8; 12], keep: Keep) -> Result<Option<Record>, StoreError> {
        let found = self.tables.records.find(locator)?;
        Ok(found.filter(|record| self.remembers(record, keep)))
    }

    /// False for a tombstone past its time.
    pub(crate) fn remembers(&self, record: &Record, keep: Keep) -> bool {
        record.ended().is_none_or(|at| self.now() <= at.saturating_add(keep.time))
    }

    /// Moves a job that has a record, or adds a new one: its entry, its record, the ledger.
    pub(crate) fn enter(&mut self, record: &mut Record, to: To) -> Result<(), StoreError> {
        self.leave(record)?;
        self.place(record, to)?;
        self.tables.records.put(record)
    }

    /// A job dies, and that is to be told.
    pub(crate) fn die(&mut self, job: &mut Record, reason: Box<str>) -> Result<(), StoreError> {
        let body = self.tables.records.body(job.number)?;
        self.enter(job, To::Dead(reason))?;
        if let Some(body) = body {
            let now = self.now();
            self.tables.outbox.add(now, job, &body)?;
            self.moment(now);
        }
        Ok(())
    }

    /// Makes a job that waits or is dead due now, and ready.
    pub(crate) fn make_ready(&mut self, record: &mut Record) -> Result<(), StoreError> {
        self.leave(record)?;
        record.due = self.now();
        self.tell_event(record, || EventKind::Promoted)?;
        self.place(record, To::Ready(Queue::Back))?;
        self.tables.records.put(record)
    }

    /// A new job.
    pub(crate) fn add(&mut self, mut record: Record, body: &[u8], to: To) -> Result<Record, StoreError> {
        self.tables.records.add(&mut record, body)?;
        self.row.ledger.accepted += 1;
        let due = Timestamp::from_millis(record.due);
        self.tell_event(&record, || EventKind::Submitted { due })?;
        self.place(&mut record, to)?;
        self.tables.records.put(&record)?;
        Ok(record)
    }

    fn place(&mut self, record: &mut Record, to: To) -> Result<(), StoreError> {
        let (shard, number) = (self.shard, record.number);
        record.stage = match to {
            To::Delayed(due) => {
                record.due = due;
                self.tables.due.add(shard, &record.topic, due, number)?;
                self.moment(due);
                Stage::Delayed
            }
            To::Ready(queue) => {
                let turn = if record.is_pull() { PULL } else { self.turn() };
                let lane = record.lane();
                let (position, was_empty) = self.tables.ready.push(shard, &lane, number, queue, turn)?;
                if was_empty {
                    self.wake(&lane);
                }
                Stage::Ready { position }
            }
            To::Reserved { lease, bits, deadline } => {
                self.tables.leases.add(shard, deadline, number)?;
                self.moment(deadline);
                Stage::Reserved { lease, bits, deadline, cancel: false, put_off: 0 }
            }
            To::Dead(reason) => {
                let since = self.now();
                self.tables.dead.add(shard, since, number)?;
                self.tell_event(record, || EventKind::Dead { reason: reason.clone() })?;
                Stage::Dead { since, reason }
            }
        };
        self.row.ledger.enter(record.state());
        self.tables.counts.note(shard, record, record.state(), 1)
    }

    /// A lease that has run out is looked at again at a time, where nobody settles it before.
    pub(crate) fn put_off(&mut self, record: &mut Record, until: u64) -> Result<(), StoreError> {
        let (shard, number) = (self.shard, record.number);
        let Stage::Reserved { deadline, put_off, .. } = &mut record.stage else { return Ok(()) };
        self.tables.leases.remove(shard, *deadline + *put_off, number)?;
        *put_off = until.saturating_sub(*deadline);
        self.tables.leases.add(shard, *deadline + *put_off, number)?;
        self.moment(until);
        self.tables.records.put(record)
    }

    /// A lane has its turn: whoever takes from it is told.
    pub(crate) fn wake(&mut self, lane: &str) {
        if lane.ends_with(' ') {
            self.pulls.insert(PullLane(LaneId::of(lane)));
        } else {
            self.woken = true;
        }
    }

    /// Takes a job's entry out of the index of its state.
    fn leave(&mut self, record: &Record) -> Result<(), StoreError> {
        let (shard, number) = (self.shard, record.number);
        self.row.ledger.leave(record.state());
        self.tables.counts.note(shard, record, record.state(), -1)?;
        match &record.stage {
            Stage::Delayed => self.tables.due.remove(shard, &record.topic, record.due, number),
            Stage::Ready { position } => self.tables.ready.remove(shard, &record.lane(), *position),
            Stage::Reserved { deadline, put_off, .. } => {
                self.tables.leases.remove(shard, deadline + put_off, number)
            }
            Stage::Dead { since, .. } => self.tables.dead.remove(shard, *since, number),
            Stage::Done { at } | Stage::Cancelled { at, .. } => self.tables.ended.remove(shard, *at, number),
        }
    }

    /// Ends a job: its body goes, its record stays as a tombstone. `settled` is the last
    /// lease that counts.
    pub(crate) fn finish(&mut self, mut record: Record, end: End, settled: u64) -> Result<(), StoreError> {
        self.tell_event(&record, || end.event())?;
        self.leave(&record)?;
        match record.state() {
            State::Delayed => self.tables.due.tidy(self.shard, &record.topic)?,
            State::Ready => self.tables.ready.tidy(self.shard, &record.lane())?,
            State::Reserved | State::Done | State::Dead | State::Cancelled => {}
        }
        let (at, doubt) = (self.now(), record.lost > 0);
        record.stage = match end {
            End::Done => Stage::Done { at },
            End::Cancelled => Stage::Cancelled { at, doubt },
        };
        self.tables.counts.note_end(self.shard, &record.topic, record.state())?;
        (record.settled, record.last) = (settled, None);
        (record.topic, record.origin, record.token) = (Box::default(), Box::default(), None);
        self.row.ledger.enter(record.state());
        self.row.ended += 1;
        self.ended += 1;
        self.tables.ended.add(self.shard, at, record.number)?;
        self.tables.records.drop_body(record.number)?;
        self.tables.records.put(&record)
    }

    /// Removes a dead job; no tombstone is left.
    pub(crate) fn purge(&mut self, job: &Record) -> Result<(), StoreError> {
        self.leave(job)?;
        self.row.ledger.purged += 1;
        self.tables.records.remove(job)
    }

    /// Forgets a tombstone.
    pub(crate) fn forget(&mut self, tombstone: &Record) -> Result<(), StoreError> {
        if let Some(at) = tombstone.ended() {
            self.tables.ended.remove(self.shard, at, tombstone.number)?;
            self.tables.records.remove(tombstone)?;
            self.row.ended = self.row.ended.saturating_sub(1);
        }
        Ok(())
    }

    /// Forgets tombstones that are old, or too many; more of them than this edge has added.
    pub(crate) fn trim(&mut self, keep: Keep) -> Result<(), StoreError> {
        if self.ended == 0 {
            return Ok(());
        }
        let (now, most) = (self.now(), TRIMMED + 2 * self.ended);
        for (at, number) in self.tables.ended.until(self.shard, now, most)? {
            let old = now > at.saturating_add(keep.time);
            let early = self.row.ended > keep.count && now >= at.saturating_add(LEAST_KEPT.min(keep.time));
            if !old && !early {
                break;
            }
            match self.tables.records.get(number)? {
                Some(tombstone) => self.forget(&tombstone)?,
                None => self.tables.ended.remove(self.shard, at, number)?,
            }
            self.row.ledger.forgotten_early += u64::from(!old);
        }
        Ok(())
    }
}
