//! Ordered topics: which job of a key is its head, and which jobs wait behind it. The state changes call this module when
//! a job becomes ready, is reserved, is to be retried, dies or ends.
//!
//! The row of a key names its head while that is ready or reserved, waits for a retry, or is dead and holds the key. A
//! job that waits is ready, but in no queue of a lane.

use ringback_core::store_types::MAX_BEFORE;

use super::Txn;
use crate::error::Result;
use crate::tables::{Arrival, OrderRow, Place, QueueEnd, Record, Stage};

impl Txn<'_> {
    /// Returns how the topic of a job is ordered, and the name of the job's key; `None` if it goes in no order.
    fn ordered(&self, job: &Record) -> Result<Option<(OrderRow, String)>> {
        let Some(row) = self.tables.order.topic(self.shard(), &job.topic)? else { return Ok(None) };
        Ok(self.tables.order_key(job)?.map(|key| (row, key)))
    }

    /// Gives a job of an ordered topic the number of its arrival, which is greater than all before.
    pub(crate) fn number_arrival(&mut self, job: &mut Record) -> Result<()> {
        if job.arrival != Arrival::Fired && self.tables.order.topic(self.shard(), &job.topic)?.is_some() {
            self.row.arrival = (self.row.arrival + 1).max(self.now_us());
            job.arrival = Arrival::Numbered(self.row.arrival);
        }
        Ok(())
    }

    /// Whether a job that becomes ready waits behind another one of its key: then adds it to those that wait. Otherwise
    /// the job is the head of its key, if it has one.
    pub(crate) fn waits_in_order(&mut self, job: &Record) -> Result<bool> {
        let Some((row, key)) = self.ordered(job)?.filter(|(row, _)| !row.is_ending) else { return Ok(false) };
        let (shard, place) = (self.shard(), job.place());
        let is_head = self.tables.order.head(shard, &key)? == Some(job.number);
        if is_head && job.was_tried() {
            return Ok(false);
        }
        let head = if is_head { None } else { self.head(row, &key)? };
        match head {
            Some(mut head)
                if matches!(head.stage, Stage::Ready { .. }) && !head.was_tried() && place < head.place() =>
            {
                self.set_aside(&key, &mut head)?;
            }
            Some(_) => return self.add_waiting(&key, place, job.number).map(|()| true),
            None => {
                if self.tables.order.first(shard, &key)?.is_some_and(|(first, _)| first < place) {
                    self.pass_on(&key)?;
                    return self.add_waiting(&key, place, job.number).map(|()| true);
                }
            }
        }
        self.tables.order.set_head(shard, &key, Some(job.number))?;
        Ok(false)
    }

    /// Makes a job that was attempted the head of its key, if the key has none.
    pub(crate) fn claim_key(&mut self, job: &Record) -> Result<()> {
        if !job.was_tried() {
            return Ok(());
        }
        let Some((row, key)) = self.ordered(job)?.filter(|(row, _)| !row.is_ending) else { return Ok(()) };
        let (shard, head) = (self.shard(), self.head(row, &key)?);
        if head.is_none() { self.tables.order.set_head(shard, &key, Some(job.number)) } else { Ok(()) }
    }

    /// Lets the next job of a key go, if this job, which has changed its state, was the head and is it no more.
    pub(crate) fn follow_order(&mut self, job: &Record) -> Result<()> {
        if matches!(job.stage, Stage::Ready { .. } | Stage::Waiting(_) | Stage::Reserved { .. }) {
            return Ok(());
        }
        match self.ordered(job)? {
            Some((row, key)) if !row.keeps(job) => self.release(&key, job.number),
            _ => Ok(()),
        }
    }

    /// Lets the next job of a key go, if this job, which ends or is removed, is the head.
    pub(crate) fn leave_order(&mut self, job: &Record) -> Result<()> {
        let Some((_, key)) = self.ordered(job)? else { return Ok(()) };
        self.release(&key, job.number)
    }

    /// Lets the next job of a key go that a dead job holds. Returns whether one held it.
    pub(crate) fn unblock(&mut self, topic: &str, key: &str) -> Result<bool> {
        let Some(row) = self.tables.order.topic(self.shard(), topic)? else { return Ok(false) };
        let Some(head) = self.head(row, key)?.filter(|head| matches!(head.stage, Stage::Dead { .. })) else {
            return Ok(false);
        };
        self.may_evict(&head);
        self.pass_on(key)?;
        Ok(true)
    }

    /// Returns the job at the head of a key; `None` if there is none, or the one that was is it no more.
    pub(crate) fn head(&mut self, row: OrderRow, key: &str) -> Result<Option<Record>> {
        let Some(number) = self.tables.order.head(self.shard(), key)? else { return Ok(None) };
        let head = self.tables.records.get(number)?;
        if let Some(former) = head.as_ref().filter(|head| !row.keeps(head)) {
            self.may_evict(former);
            return Ok(None);
        }
        Ok(head)
    }

    /// Whether a dead job holds its key.
    pub(crate) fn holds_key(&self, dead: &Record) -> Result<bool> {
        let Some((row, key)) = self.ordered(dead)? else { return Ok(false) };
        Ok(row.keeps(dead) && self.tables.order.head(self.shard(), &key)? == Some(dead.number))
    }

    /// Whether a ready job in the queue of its lane waits, since it came before its topic was ordered and another job is
    /// the head of its key: then adds it to those that wait. Without such a job it is the head.
    pub(crate) fn is_met_behind(&mut self, job: &Record) -> Result<bool> {
        let shard = self.shard();
        let row = self.tables.order.topic(shard, &job.topic)?;
        let Some(row) = row.filter(|row| row.since.is_none() && !row.is_ending) else { return Ok(false) };
        let Some(key) = self.tables.order_key(job)? else { return Ok(false) };
        let head = self.head(row, &key)?.map(|head| head.number);
        match head {
            Some(head) if head == job.number => Ok(false),
            Some(_) => self.set_aside(&key, &mut job.clone()).map(|()| true),
            None => self.tables.order.set_head(shard, &key, Some(job.number)).map(|()| false),
        }
    }

    /// Makes an attempted job the head of its key, which came before its topic was ordered, unless another attempted job
    /// goes before it or a dead one holds the key.
    pub(crate) fn take_key(&mut self, job: &Record) -> Result<()> {
        let Some((row, key)) = self.ordered(job)? else { return Ok(()) };
        let shard = self.shard();
        match self.head(row, &key)? {
            Some(head) if head.number == job.number => return Ok(()),
            Some(head) if matches!(head.stage, Stage::Dead { .. }) => return Ok(()),
            Some(head) if head.was_tried() && head.place() < job.place() => return Ok(()),
            Some(mut head) if matches!(head.stage, Stage::Ready { .. }) => self.set_aside(&key, &mut head)?,
            Some(_) | None => {}
        }
        self.tables.order.set_head(shard, &key, Some(job.number))
    }

    /// Puts a ready job that is in the queue of its lane, since it came before its topic was ordered, in its order.
    pub(crate) fn order_ready(&mut self, mut job: Record) -> Result<()> {
        if self.waits_in_order(&job)? { self.take_out(&mut job) } else { Ok(()) }
    }

    /// Makes a job that waits deliverable. Returns false if there is no such job.
    pub(crate) fn let_go(&mut self, key: &str, place: Place, number: u64) -> Result<bool> {
        self.remove_waiting(key, place)?;
        let job = self.tables.records.get(number)?.filter(|job| job.stage == Stage::Waiting(place));
        let Some(mut job) = job else { return Ok(false) };
        job.stage = self.enqueue(&job, QueueEnd::Back)?;
        self.tables.records.put(&job)?;
        Ok(true)
    }

    /// Lets the first job of a key that waits go, as its head; without one the key has no head.
    pub(crate) fn pass_on(&mut self, key: &str) -> Result<()> {
        let shard = self.shard();
        while let Some((place, number)) = self.tables.order.first(shard, key)? {
            if self.let_go(key, place, number)? {
                return self.tables.order.set_head(shard, key, Some(number));
            }
        }
        self.tables.order.set_head(shard, key, None)
    }

    /// Adds a job to those of its key that wait.
    pub(crate) fn add_waiting(&mut self, key: &str, place: Place, number: u64) -> Result<()> {
        let shard = self.shard();
        self.row.waiting_keys += u64::from(self.tables.order.first(shard, key)?.is_none());
        self.tables.order.add(shard, key, place, number)
    }

    /// Removes a job from those of its key that wait.
    pub(crate) fn remove_waiting(&mut self, key: &str, place: Place) -> Result<()> {
        let shard = self.shard();
        if self.tables.order.at(shard, key, place)?.is_some() {
            self.tables.order.remove(shard, key, place)?;
            let is_last = self.tables.order.first(shard, key)?.is_none();
            self.row.waiting_keys = self.row.waiting_keys.saturating_sub(u64::from(is_last));
        }
        Ok(())
    }

    /// Lets the next eviction see a dead job that has held its key.
    pub(crate) fn may_evict(&mut self, job: &Record) {
        if let Stage::Dead { since, .. } = job.stage {
            self.row.held_dead = self.row.held_dead.min((since, job.number));
            self.wake_at(since);
        }
    }

    /// Returns how many ready jobs of a lane can be reserved; of an ordered topic no more than [`MAX_BEFORE`].
    pub(crate) fn deliverable(&mut self, lane: &str, topic: &str) -> Result<u32> {
        let shard = self.shard();
        match self.tables.order.topic(shard, topic)? {
            Some(_) => self.tables.ready.before(shard, lane, i64::MAX, MAX_BEFORE),
            None => self.tables.counts.ready(shard, lane),
        }
    }

    fn release(&mut self, key: &str, number: u64) -> Result<()> {
        if self.tables.order.head(self.shard(), key)? == Some(number) { self.pass_on(key) } else { Ok(()) }
    }

    /// Moves a ready job from the queue of its lane to those of its key that wait.
    fn set_aside(&mut self, key: &str, job: &mut Record) -> Result<()> {
        self.add_waiting(key, job.place(), job.number)?;
        self.take_out(job)
    }

    /// Takes a job out of the queue of its lane, since it waits.
    fn take_out(&mut self, job: &mut Record) -> Result<()> {
        let Stage::Ready { position } = job.stage else { return Ok(()) };
        let (shard, lane) = (self.shard(), job.lane().name());
        self.tables.ready.remove(shard, &lane, position)?;
        self.tables.ready.tidy(shard, &lane)?;
        job.stage = Stage::Waiting(job.place());
        self.tables.records.put(job)
    }
}
