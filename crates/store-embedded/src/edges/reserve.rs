//! reserve: ready → reserved, for a notifier. Lanes take turns; a lane that is full for the caller is
//! skipped, and a lane of a paused topic is parked. exchange settles and reserves in one call.

use std::collections::HashMap;

use ringback_core::clock::millis_up;
use ringback_core::contract::{Lateness, Lease, Reserve, Reserved, Settled, Shard, StoreError};
use ringback_core::limits::lease_stretch;
use ringback_core::outcome::Outcome;
use tokio::time::Instant;

use super::grant::{Caller, MAX_BYTES, find_ready, grant_leases, granted_before, read_granted};
use super::settle::{Settlement, settle_push};
use crate::answers::{self, ReservedAt};
use crate::error::Result;
use crate::tables::{PARKED, StoredJob};
use crate::txn::Txn;
use crate::{EDGE_BYTES, EmbeddedStore};

/// The most lanes that are looked at, beside those that the caller names.
const LANES: usize = 64;

impl EmbeddedStore {
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        let asked = Instant::now();
        let request = Request::from(ask);
        let found = self.call(shard, ask.limit * EDGE_BYTES, move |txn| reserve(txn, &request)).await?;
        Ok(found.answer(shard, asked))
    }

    pub async fn exchange(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        lateness: &Lateness,
        ask: &Reserve<'_>,
    ) -> Result<(Vec<Settled>, Reserved), StoreError> {
        let asked = Instant::now();
        let settlements: Vec<_> = items.iter().map(Settlement::push).collect();
        let (lateness, keep, request) = (lateness.clone(), self.keep_tombstones(), Request::from(ask));
        let bytes = (settlements.len() + ask.limit) * EDGE_BYTES;
        let exchange = move |txn: &mut Txn<'_>| {
            Ok((settle_push(txn, &settlements, &lateness, keep)?, reserve(txn, &request)?))
        };
        let (settled, found) = self.call(shard, bytes, exchange).await?;
        Ok((settled, found.answer(shard, asked)))
    }
}

struct Request {
    caller: Caller,
    limit: usize,
    /// The most jobs of a lane that `limits` does not name.
    lane_limit: usize,
    limits: HashMap<String, usize>,
    /// How much longer than an attempt a lease is, in ms.
    margin: u64,
}

impl From<&Reserve<'_>> for Request {
    fn from(ask: &Reserve<'_>) -> Self {
        Self {
            caller: Caller { name: ask.caller.to_owned(), sequence: ask.sequence, bits: ask.bits },
            limit: ask.limit,
            lane_limit: ask.lane_limit,
            limits: ask.lane_limits.iter().cloned().collect(),
            margin: millis_up(ask.margin),
        }
    }
}

impl Request {
    fn limit_of(&self, lane: &str) -> usize {
        self.limits.get(lane).copied().unwrap_or(self.lane_limit)
    }
}

/// What a reserve found.
#[derive(Default)]
struct Found {
    now_us: u64,
    is_watched: bool,
    jobs: Vec<StoredJob>,
    /// The lanes that jobs were taken from, and whether each has more.
    visited: Vec<(String, bool)>,
    is_more: bool,
    skipped: Vec<String>,
    /// The lanes of paused topics.
    parked: Vec<String>,
}

impl Found {
    fn answer(self, shard: Shard, asked: Instant) -> Reserved {
        let at = ReservedAt { now_us: self.now_us, is_watched: self.is_watched, asked };
        let leases = read_granted(shard, &self.jobs, |record, body| answers::lease(shard, record, body, at));
        Reserved { leases, more: self.is_more, skipped: self.skipped }
    }
}

fn reserve(txn: &mut Txn<'_>, request: &Request) -> Result<Found> {
    let (shard, now_us, is_watched) = (txn.shard(), txn.now_us(), txn.is_watched());
    if let Some(jobs) = granted_before(txn, &request.caller)? {
        return Ok(Found { now_us, is_watched, jobs, is_more: true, ..Found::default() });
    }
    let mut found = find(txn, request)?;
    grant_leases(txn, &request.caller, &mut found.jobs, |job| {
        millis_up(lease_stretch(job.timeout())) + request.margin
    })?;
    for lane in &found.parked {
        txn.tables.ready.set_turn(shard, lane, Some(PARKED))?;
    }
    for (n, (lane, is_rest)) in (1..).zip(&found.visited) {
        // A lane that has more goes behind the others.
        let turn = is_rest.then(|| txn.next_turn() + n);
        txn.tables.ready.set_turn(shard, lane, turn)?;
        txn.row.turn = txn.row.turn.max(turn.unwrap_or(0));
    }
    Ok(Found { now_us, is_watched, ..found })
}

/// Finds jobs in the lanes, in turn. Nothing is reserved yet.
fn find(txn: &mut Txn<'_>, request: &Request) -> Result<Found> {
    let (shard, window) = (txn.shard(), LANES + request.limits.len());
    let (mut lanes, mut parked) = (Vec::new(), Vec::new());
    for lane in txn.tables.ready.lanes(shard, window)? {
        let is_paused = txn.tables.counts.is_lane_paused(shard, &lane)?;
        if is_paused { parked.push(lane) } else { lanes.push(lane) }
    }
    let is_more = lanes.len() + parked.len() == window;
    let open = lanes.iter().filter(|lane| request.limit_of(lane) > 0).count();
    let share = request.limit.div_ceil(open.max(1));
    let mut found = Found { is_more, parked, ..Found::default() };
    let mut budget = MAX_BYTES;
    for lane in lanes {
        let bound = request.limit_of(&lane);
        let limit = bound.min(share).min(request.limit - found.jobs.len());
        if bound == 0 {
            found.skipped.push(lane);
            continue;
        }
        if limit == 0 || budget == 0 {
            found.is_more = true;
            break;
        }
        let taken = find_ready(txn, &lane, limit, &mut budget, &mut found.jobs)?;
        if taken.is_rest && bound > taken.entries {
            found.is_more = true;
        } else if taken.is_rest {
            found.skipped.push(lane.clone());
        }
        found.visited.push((lane, taken.is_rest));
    }
    Ok(found)
}
