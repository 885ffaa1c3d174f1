//! Ordered topics: begins and ends the order of a topic, in steps, and unblocks a key that a dead job holds. Also what a
//! submit to such a topic does first. `txn/order` puts the jobs of a key in their order.

use std::collections::BTreeSet;

use ringback_core::clock::Timestamp;
use ringback_core::job::{OrderKey, Topic};
use ringback_core::state::State;
use ringback_core::store_types::{
    MAX_BEFORE, MAX_RESUMED_LANES, MAX_WAITING_KEYS, OrderWait, Shard, StoreError, TopicOrder,
};
use ringback_core::topic_policy::OrderOnDead;

use super::carriers::promote_topic;
use super::new_record::NewRecord;
use crate::error::Result;
use crate::tables::{Body, KeyRow, OrderRow, Record, Stage, key_name};
use crate::txn::Txn;
use crate::{EmbeddedStore, TRANSITION_BYTES};

/// How many rows one step of the beginning or the end of an order reads.
const STEP: usize = MAX_RESUMED_LANES;
/// How many due jobs a submit to an ordered topic promotes, at most.
const PROMOTED: usize = 1000;

impl EmbeddedStore {
    /// Begins the order of a topic in a shard, or changes what a death means, in several calls if there are many jobs.
    /// `None` ends the order: then the jobs that wait become deliverable, in several calls too.
    pub async fn order_topic(
        &self,
        shard: Shard,
        topic: &Topic,
        order: Option<OrderOnDead>,
    ) -> Result<(), StoreError> {
        let bytes = STEP * TRANSITION_BYTES;
        let Some(on_dead) = order else {
            loop {
                let topic = topic.clone();
                if !self.call(shard, bytes, move |txn| end(txn, topic.as_str())).await? {
                    return Ok(());
                }
            }
        };
        let name = topic.clone();
        let begin = move |txn: &mut Txn<'_>| begin(txn, name.as_str(), on_dead);
        let mut next = self.call(shard, TRANSITION_BYTES, begin).await?;
        while let Some(from) = next {
            let topic = topic.clone();
            next = self.call(shard, bytes, move |txn| step(txn, topic.as_str(), &from)).await?;
        }
        Ok(())
    }

    /// Returns how a shard orders a topic; `None` if it does not.
    pub async fn topic_order(&self, shard: Shard, topic: &Topic) -> Result<Option<TopicOrder>, StoreError> {
        let topic = topic.clone();
        let row = move |txn: &mut Txn<'_>| txn.tables.order.topic(txn.shard(), topic.as_str());
        let row = self.call(shard, 0, row).await?.filter(|row| !row.is_ending);
        let since = |row: OrderRow| row.since.map(Timestamp::from_millis);
        Ok(row.map(|row| TopicOrder { on_dead: row.on_dead, since: since(row) }))
    }

    /// Lets the next job of a key go that a dead job holds. Returns whether one held it.
    pub async fn unblock(&self, shard: Shard, topic: &Topic, key: &OrderKey) -> Result<bool, StoreError> {
        let topic = topic.as_str().to_owned();
        let Some(key) = key_name(&topic, key.as_str()) else { return Ok(false) };
        self.call(shard, TRANSITION_BYTES, move |txn| txn.unblock(&topic, &key)).await
    }
}

/// Where the beginning of an order goes on.
#[derive(Clone, Debug)]
enum Cursor {
    /// Behind this row of a key: dead jobs that hold their keys no more let go.
    Keys(Option<KeyRow>),
    /// At the lease that is checked at this time, of the job with this number.
    Reserved(u64, u64),
    /// At this due time and number.
    Delayed(u64, u64),
    /// At this lane and position.
    Ready(String, i64),
}

/// Orders new jobs of a topic from now on. Returns where to begin with the jobs that are there; `None` if the topic is
/// ordered so already.
fn begin(txn: &mut Txn<'_>, topic: &str, on_dead: OrderOnDead) -> Result<Option<Cursor>> {
    let shard = txn.shard();
    let known = txn.tables.order.topic(shard, topic)?.filter(|row| !row.is_ending);
    if known.is_some_and(|row| row.on_dead == on_dead && row.since.is_some()) {
        return Ok(None);
    }
    let row = OrderRow { on_dead, since: None, is_ending: false };
    txn.tables.order.set_topic(shard, topic, Some(row))?;
    Ok(Some(Cursor::Keys(None)))
}

/// Puts up to [`STEP`] jobs of a topic in their order: the attempted ones, which take their keys, and then those that
/// are ready. Returns where to go on; `None` once the order holds for all jobs, or ends.
fn step(txn: &mut Txn<'_>, topic: &str, from: &Cursor) -> Result<Option<Cursor>> {
    let shard = txn.shard();
    let Some(row) = txn.tables.order.topic(shard, topic)?.filter(|row| !row.is_ending) else {
        return Ok(None);
    };
    let (numbers, next) = match from {
        Cursor::Keys(after) => {
            let keys = txn.tables.order.of_topic(shard, topic, after.as_ref(), STEP)?;
            for head in keys.iter().filter(|row| row.place.is_none()) {
                if txn.head(row, &head.key)?.is_none() {
                    txn.pass_on(&head.key)?;
                }
            }
            let last = keys.into_iter().nth(STEP - 1);
            (Vec::new(), last.map_or(Cursor::Reserved(0, 0), |last| Cursor::Keys(Some(last))))
        }
        Cursor::Reserved(at, number) => {
            let leases = txn.tables.leases.range(shard, (*at, *number), u64::MAX)?;
            let leases: Vec<_> = leases.take(STEP).collect::<Result<_>>()?;
            let next = leases.get(STEP - 1).map(|(at, number)| Cursor::Reserved(*at, number + 1));
            (numbers(&leases), next.unwrap_or(Cursor::Delayed(0, 0)))
        }
        Cursor::Delayed(at, number) => {
            let jobs = txn.tables.due.between(shard, topic, (*at, *number), u64::MAX, STEP)?;
            let next = jobs.get(STEP - 1).map(|(at, number)| Cursor::Delayed(*at, number + 1));
            (numbers(&jobs), next.unwrap_or_else(|| Cursor::Ready(String::new(), i64::MIN)))
        }
        Cursor::Ready(lane, position) => return step_of_ready(txn, topic, (lane, *position), row),
    };
    for number in numbers {
        let job = txn.tables.records.get(number)?;
        if let Some(job) = job.filter(|job| *job.topic == *topic && job.was_tried()) {
            txn.take_key(&job)?;
        }
    }
    Ok(Some(next))
}

fn numbers(entries: &[(u64, u64)]) -> Vec<u64> {
    entries.iter().map(|(_, number)| *number).collect()
}

/// The last steps of [`step`]: puts ready jobs in their order. After the last one the order holds for all jobs.
fn step_of_ready(txn: &mut Txn<'_>, topic: &str, from: (&str, i64), row: OrderRow) -> Result<Option<Cursor>> {
    let (shard, now) = (txn.shard(), txn.now());
    let jobs = txn.tables.ready.of_topic(shard, topic, from, STEP)?;
    for (_, position, number) in &jobs {
        let job = txn.tables.records.get(*number)?;
        if let Some(job) = job.filter(|job| job.stage == Stage::Ready { position: *position }) {
            txn.order_ready(job)?;
        }
    }
    if let Some((lane, position, _)) = jobs.into_iter().nth(STEP - 1) {
        return Ok(Some(Cursor::Ready(lane, position + 1)));
    }
    let row = OrderRow { since: Some(now), ..row };
    txn.tables.order.set_topic(shard, topic, Some(row))?;
    Ok(None)
}

/// Makes up to [`STEP`] jobs of a topic deliverable that wait, from now on without an order. Returns whether there may be
/// more.
fn end(txn: &mut Txn<'_>, topic: &str) -> Result<bool> {
    let shard = txn.shard();
    let Some(row) = txn.tables.order.topic(shard, topic)? else { return Ok(false) };
    txn.tables.order.set_topic(shard, topic, Some(OrderRow { is_ending: true, ..row }))?;
    let rows = txn.tables.order.of_topic(shard, topic, None, STEP)?;
    for KeyRow { key, place, number, .. } in &rows {
        if let Some(place) = place {
            txn.let_go(key, *place, *number)?;
        }
    }
    for head in rows.iter().filter(|row| row.place.is_none()) {
        // A key keeps its head until none waits, so that no job is lost if this is the last step.
        if txn.tables.order.first(shard, &head.key)?.is_none() {
            txn.tables.order.set_head(shard, &head.key, None)?;
            txn.tables.records.get(head.number)?.iter().for_each(|head| txn.may_evict(head));
        }
    }
    let is_more = rows.len() == STEP;
    if !is_more {
        txn.tables.order.set_topic(shard, topic, None)?;
    }
    Ok(is_more)
}

impl Txn<'_> {
    /// Promotes the due jobs of those topics of a submit that are ordered, so that they go before jobs that come now.
    pub(crate) fn promote_ordered(&mut self, jobs: &[NewRecord]) -> Result<()> {
        if self.tables.order.is_empty() {
            return Ok(());
        }
        let topics: BTreeSet<_> = jobs.iter().map(|job| &*job.record.topic).collect();
        for topic in topics {
            if self.tables.order.topic(self.shard(), topic)?.is_some() {
                promote_topic(self, topic, PROMOTED)?;
            }
        }
        Ok(())
    }

    /// Whether a submit would make one key too many wait. `known` is the job that has its id.
    pub(crate) fn has_too_many_keys(&mut self, job: &NewRecord, known: Option<&Record>) -> Result<bool> {
        if self.row.waiting_keys < MAX_WAITING_KEYS || !job.is_due_at_once(self, known) {
            return Ok(false);
        }
        let shard = self.shard();
        let row = self.tables.order.topic(shard, &job.record.topic)?.filter(|row| !row.is_ending);
        let id = Body::split(&job.body).map(|(id, _)| id);
        let key = id.filter(|_| !job.is_fired()).and_then(|id| key_name(&job.record.topic, id));
        let Some((row, key)) = row.zip(key) else { return Ok(false) };
        let head = self.head(row, &key)?.filter(|head| known.is_none_or(|known| known.number != head.number));
        Ok(head.is_some() && self.tables.order.first(shard, &key)?.is_none())
    }

    /// Returns what a ready job waits for that is behind another one of its key; `None` for one that is not.
    pub(crate) fn order_wait(&mut self, job: &Record) -> Result<Option<OrderWait>> {
        let Stage::Waiting(place) = job.stage else { return Ok(None) };
        let (shard, key) = (self.shard(), self.tables.order_key(job)?);
        let Some(key) = key else { return Ok(None) };
        let Some(head) = self.tables.order.head(shard, &key)? else { return Ok(None) };
        let id = self.tables.records.id(head)?.and_then(|id| id.parse().ok());
        let is_held = self.tables.records.get(head)?.is_some_and(|head| head.state() == State::Dead);
        let before = 1 + self.tables.order.before(shard, &key, place, MAX_BEFORE - 1)?;
        Ok(id.map(|head| OrderWait { before, head, is_held }))
    }
}
