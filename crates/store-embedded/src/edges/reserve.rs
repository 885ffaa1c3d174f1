//! reserve: ready → reserved. Lanes take turns; those full for the caller are passed, those of paused
//! topics are parked.

use std::collections::HashMap;

use ringback_core::clock::millis_up;
use ringback_core::contract::{Reserve, StoreError};
use ringback_core::job::DEFAULT_TIMEOUT;
use ringback_core::limits::MAX_LEASE_STRETCH;

use crate::tables::{Body, Given, PARKED, Record, Stage};
use crate::txn::{To, Txn};

/// The most bytes of jobs that one reserve takes, and one job beyond.
const BYTES: usize = 1024 * 1024;
/// So many lanes are looked at, and those that the caller names.
const LANES: usize = 64;

/// What is asked for.
pub(crate) struct Order {
    caller: String,
    sequence: u64,
    limit: usize,
    lane_limit: usize,
    rooms: HashMap<String, usize>,
    bits: [u8; 8],
    /// In ms.
    margin: u64,
}

impl From<&Reserve<'_>> for Order {
    fn from(ask: &Reserve<'_>) -> Self {
        Self {
            caller: ask.caller.to_owned(),
            sequence: ask.sequence,
            limit: ask.limit,
            lane_limit: ask.lane_limit,
            rooms: ask.lane_limits.iter().cloned().collect(),
            bits: ask.bits,
            margin: millis_up(ask.margin),
        }
    }
}

/// What was taken.
pub(crate) struct Taken {
    pub(crate) now_us: u64,
    pub(crate) jobs: Vec<(Record, Body)>,
    pub(crate) more: bool,
    pub(crate) passed: Vec<String>,
    /// Somebody watches.
    pub(crate) is_watched: bool,
}

impl Order {
    fn room(&self, lane: &str) -> usize {
        self.rooms.get(lane).copied().unwrap_or(self.lane_limit)
    }
}

/// What a look at the lanes has found; nothing is taken yet.
#[derive(Default)]
struct Found {
    jobs: Vec<(Record, Body)>,
    /// Lanes that were looked at, and whether something of them is left.
    visits: Vec<(String, bool)>,
    more: bool,
    passed: Vec<String>,
    /// Lanes of paused topics.
    parked: Vec<String>,
}

pub(crate) fn reserve(txn: &mut Txn<'_>, order: &Order) -> Result<Taken, StoreError> {
    let (shard, now, now_us, is_watched) = (txn.shard(), txn.now(), txn.now_us(), txn.events.is_watched());
    if let Some(given) = txn.tables.callers.recall(shard, &order.caller, order.sequence, now)? {
        let jobs = again(txn, &given)?;
        return Ok(Taken { now_us, jobs, more: true, passed: Vec::new(), is_watched });
    }
    let mut found = look(txn, order)?;
    take(txn, order, &mut found)?;
    for lane in &found.parked {
        txn.tables.ready.set_turn(shard, lane, Some(PARKED))?;
    }
    for (n, (lane, left)) in (1..).zip(&found.visits) {
        // A lane that has more goes behind the others.
        let turn = left.then(|| txn.turn() + n);
        txn.tables.ready.set_turn(shard, lane, turn)?;
        txn.row.turn = txn.row.turn.max(turn.unwrap_or(0));
    }
    Ok(Taken { now_us, jobs: found.jobs, more: found.more, passed: found.passed, is_watched })
}

/// What a caller was given before, as far as it is still reserved by that.
pub(crate) fn again(txn: &Txn<'_>, given: &Given) -> Result<Vec<(Record, Body)>, StoreError> {
    let mut jobs = Vec::new();
    for number in &given.numbers {
        if let Some(job) = txn.tables.records.get(*number)?
            && matches!(job.stage, Stage::Reserved { bits, .. } if bits == given.bits)
            && let Some(body) = txn.tables.records.body(*number)?
        {
            jobs.push((job, body));
        }
    }
    Ok(jobs)
}

fn look(txn: &mut Txn<'_>, order: &Order) -> Result<Found, StoreError> {
    let (shard, window) = (txn.shard(), LANES + order.rooms.len());
    let (mut lanes, mut parked) = (Vec::new(), Vec::new());
    for lane in txn.tables.ready.lanes(shard, window)? {
        let is_held = txn.tables.counts.is_held(shard, &lane)?;
        if is_held { parked.push(lane) } else { lanes.push(lane) }
    }
    let is_more = lanes.len() + parked.len() == window;
    let open = lanes.iter().filter(|lane| order.room(lane) > 0).count();
    let share = order.limit.div_ceil(open.max(1));
    let mut found = Found { more: is_more, parked, ..Found::default() };
    let (mut left, mut budget) = (order.limit, BYTES);
    for lane in lanes {
        let bound = order.room(&lane);
        let room = bound.min(share).min(left);
        if bound == 0 {
            found.passed.push(lane);
            continue;
        }
        if room == 0 || budget == 0 {
            found.more = true;
            break;
        }
        // One more than may be taken tells whether something is left.
        let entries = txn.tables.ready.first(shard, &lane, room + 1)?;
        let mut taken = 0;
        for (position, number) in entries.iter().take(room) {
            if budget == 0 {
                break;
            }
            taken += 1;
            match both(txn, *number, *position)? {
                Some((job, body)) => {
                    budget = budget.saturating_sub(body.payload.len() + 256);
                    left -= 1;
                    found.jobs.push((job, body));
                }
                None => txn.tables.ready.remove(shard, &lane, *position)?,
            }
        }
        let rest = taken < entries.len();
        if rest && bound > taken {
            found.more = true;
        } else if rest {
            found.passed.push(lane.clone());
        }
        found.visits.push((lane, rest));
    }
    Ok(found)
}

/// A ready job with its body; none for an entry that is not its own.
pub(crate) fn both(txn: &Txn<'_>, number: u64, position: i64) -> Result<Option<(Record, Body)>, StoreError> {
    let Some(job) = txn.tables.records.get(number)? else { return Ok(None) };
    if job.stage != (Stage::Ready { position }) {
        return Ok(None);
    }
    Ok(txn.tables.records.body(number)?.map(|body| (job, body)))
}

/// A lease for each.
fn take(txn: &mut Txn<'_>, order: &Order, found: &mut Found) -> Result<(), StoreError> {
    if found.jobs.is_empty() {
        return Ok(());
    }
    let first = txn.now_us().max(txn.row.lease + 1);
    let (default, stretch) = (millis_up(DEFAULT_TIMEOUT), millis_up(MAX_LEASE_STRETCH));
    let (mut numbers, mut next) = (Vec::with_capacity(found.jobs.len()), first);
    for (job, _) in &mut found.jobs {
        let wait = if job.timeout == 0 { default } else { job.timeout };
        let deadline = txn.now_up() + wait.min(stretch) + order.margin;
        job.attempts += 1;
        txn.enter(job, To::Reserved { lease: next, bits: order.bits, deadline })?;
        numbers.push(job.number);
        next += 1;
    }
    txn.row.lease = next - 1;
    let given = Given { at: txn.now(), sequence: order.sequence, bits: order.bits, numbers };
    let shard = txn.shard();
    txn.tables.callers.remember(shard, &order.caller, &given)
}
