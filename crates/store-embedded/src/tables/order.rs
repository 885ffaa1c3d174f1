//! Ordered topics. One table has three kinds of rows: how a topic is ordered, by its name; the head of each key, by the
//! topic and the key; and behind it the ready jobs of the key that wait, by their places. It is empty unless a topic is
//! ordered, which is known without a look at it.

use redb::ReadableTable as _;
use ringback_core::job::JobId;
use ringback_core::topic_policy::OrderOnDead;

use super::definitions::ORDER;
use super::record::{Place, Record, Stage};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// The place of the rows that are not of a job that waits: those of topics and of heads.
const NONE: Place = Place { due: 0, arrival: 0 };

/// How a topic is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderRow {
    pub(crate) on_dead: OrderOnDead,
    /// Since when the order holds for all jobs, in ms; `None` while those that came before it are looked for.
    pub(crate) since: Option<u64>,
    /// The order ends: no more jobs are to wait.
    pub(crate) is_ending: bool,
}

impl OrderRow {
    /// Whether a job that is the head of its key still is.
    pub(crate) fn keeps(self, head: &Record) -> bool {
        match head.stage {
            Stage::Ready { .. } | Stage::Reserved { .. } => true,
            Stage::Delayed => head.was_tried(),
            Stage::Dead { .. } => self.on_dead == OrderOnDead::Hold,
            Stage::Waiting(_) | Stage::Done { .. } | Stage::Cancelled { .. } => false,
        }
    }

    fn pack(self) -> u64 {
        let is_held = u64::from(self.on_dead == OrderOnDead::Hold);
        self.since.unwrap_or(0) << 2 | u64::from(self.is_ending) << 1 | is_held
    }

    fn unpack(row: u64) -> Self {
        let on_dead = if row & 1 == 1 { OrderOnDead::Hold } else { OrderOnDead::Next };
        Self { on_dead, since: Some(row >> 2).filter(|since| *since > 0), is_ending: row & 2 == 2 }
    }
}

/// A row of a key: its head, or a job that waits behind that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRow {
    pub(crate) shard: u16,
    pub(crate) key: String,
    /// `None` for the head.
    pub(crate) place: Option<Place>,
    pub(crate) number: u64,
}

impl KeyRow {
    fn new((shard, key, due, arrival): (u16, &str, u64, u64), number: u64) -> Self {
        let place = Some(Place { due, arrival }).filter(|place| *place != NONE);
        Self { shard, key: key.to_owned(), place, number }
    }
}

/// Returns the name of the key of the job with this id; `None` if no other job of the topic has its key, or the id cannot
/// be read.
pub(crate) fn key_name(topic: &str, id: &str) -> Option<String> {
    let id: JobId = id.parse().ok()?;
    // An id that begins with `~` is a key by itself.
    let key = Some(id.order_key()).filter(|key| !key.starts_with('~'))?;
    Some(format!("{topic} {key}"))
}

pub(crate) struct Order<A: Access> {
    rows: Rows<A, (u16, &'static str, u64, u64), u64>,
    is_empty: bool,
}

impl<A: Access> Order<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        let rows = access.open(ORDER)?;
        let is_empty = rows.len()? == 0;
        Ok(Self { rows, is_empty })
    }

    /// Whether no topic is ordered, in no shard.
    pub(crate) const fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns how a topic is ordered; `None` if it is not.
    pub(crate) fn topic(&self, shard: u16, topic: &str) -> Result<Option<OrderRow>> {
        if self.is_empty { Ok(None) } else { Ok(self.at(shard, topic, NONE)?.map(OrderRow::unpack)) }
    }

    /// Returns the number of the job at the head of a key.
    pub(crate) fn head(&self, shard: u16, key: &str) -> Result<Option<u64>> {
        self.at(shard, key, NONE)
    }

    /// Returns the first job of a key that waits.
    pub(crate) fn first(&self, shard: u16, key: &str) -> Result<Option<(Place, u64)>> {
        let waiting = (shard, key, 0, 1)..=(shard, key, u64::MAX, u64::MAX);
        let first =
            self.rows.list(waiting, 1, |(.., due, arrival), number| (Place { due, arrival }, number))?;
        Ok(first.first().copied())
    }

    /// Returns the number of the job that waits at a place.
    pub(crate) fn at(&self, shard: u16, key: &str, place: Place) -> Result<Option<u64>> {
        self.rows.read((shard, key, place.due, place.arrival), |number| number)
    }

    /// Returns how many jobs of a key wait before a place, counted up to `limit`.
    pub(crate) fn before(&self, shard: u16, key: &str, place: Place, limit: u32) -> Result<u32> {
        let rows = self.rows.range((shard, key, 0, 1)..(shard, key, place.due, place.arrival))?;
        rows.take(limit as usize).try_fold(0, |count, row| Ok(row.map(|_| count + 1)?))
    }

    /// Returns at most `limit` rows of the keys of a topic, in order: those behind the row `after`, or the first.
    pub(crate) fn of_topic(
        &self,
        shard: u16,
        topic: &str,
        after: Option<&KeyRow>,
        limit: usize,
    ) -> Result<Vec<KeyRow>> {
        let (first, end) = (format!("{topic} "), format!("{topic}!"));
        let from = after.map_or((shard, &*first, 0, 0), |row| {
            let Place { due, arrival } = row.place.unwrap_or(NONE);
            (shard, &*row.key, due, arrival + 1)
        });
        self.rows.list(from..(shard, &*end, 0, 0), limit, KeyRow::new)
    }

    /// Calls `visit` with every row of a key, in order.
    pub(crate) fn each_of_keys(&self, mut visit: impl FnMut(KeyRow) -> Result<()>) -> Result<()> {
        self.rows
            .each(|row, number| if row.1.contains(' ') { visit(KeyRow::new(row, number)) } else { Ok(()) })
    }
}

impl Order<Writing<'_>> {
    /// Sets how a topic is ordered; `None` for not at all, once its keys have no rows.
    pub(crate) fn set_topic(&mut self, shard: u16, topic: &str, row: Option<OrderRow>) -> Result<()> {
        self.set(shard, topic, NONE, row.map(OrderRow::pack))?;
        self.is_empty = row.is_none() && self.rows.len()? == 0;
        Ok(())
    }

    /// Sets the number of the job at the head of a key; `None` for a key without one.
    pub(crate) fn set_head(&mut self, shard: u16, key: &str, number: Option<u64>) -> Result<()> {
        self.set(shard, key, NONE, number)
    }

    pub(crate) fn add(&mut self, shard: u16, key: &str, place: Place, number: u64) -> Result<()> {
        self.set(shard, key, place, Some(number))
    }

    pub(crate) fn remove(&mut self, shard: u16, key: &str, place: Place) -> Result<()> {
        self.set(shard, key, place, None)
    }

    fn set(
        &mut self,
        shard: u16,
        name: &str,
        Place { due, arrival }: Place,
        value: Option<u64>,
    ) -> Result<()> {
        match value {
            Some(value) => self.rows.insert((shard, name, due, arrival), value),
            None => self.rows.remove((shard, name, due, arrival)).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_a_topic_is_read_as_it_was_packed() {
        for on_dead in [OrderOnDead::Next, OrderOnDead::Hold] {
            for (since, is_ending) in [(None, false), (Some(1 << 48), false), (Some(7), true), (None, true)] {
                let row = OrderRow { on_dead, since, is_ending };
                assert_eq!(OrderRow::unpack(row.pack()), row);
            }
        }
    }

    #[test]
    fn jobs_share_a_key_unless_their_ids_begin_with_a_tilde() {
        assert_eq!(key_name("t", "a~1"), Some("t a".to_owned()));
        assert_eq!(key_name("t", "a"), Some("t a".to_owned()));
        assert_eq!(key_name("t", "~a"), None);
    }
}
