//! reserve: ready → reserved, for a notifier, and exchange, which settles and reserves in one call. Lanes take turns. A
//! lane gives no job while it is full (the caller allows no more of its jobs), throttled (no more of its origin or its
//! tenant), paused (by its topic or its destination), or limited (its topic or its destination is, and the caller has
//! no places). Many throttled lanes would hide the lanes behind them, so they are deferred: their turns come later.

mod groups;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ringback_core::clock::millis_up;
use ringback_core::lane::Lane;
use ringback_core::limits::lease_stretch;
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{Lease, Reserve, Reserved, SettleResult, Shard, StoreError};
use tokio::time::Instant;

use self::groups::Groups;
use super::grant::{Caller, MAX_BYTES, find_ready, grant_leases, granted_before, read_granted};
use super::settle::{Settlement, settle};
use crate::answers::{self, ReservedAt};
use crate::error::Result;
use crate::tables::{StoredJob, is_of_limit, turn_of_limited};
use crate::txn::Txn;
use crate::{EmbeddedStore, TRANSITION_BYTES};

/// The most lanes that a reserve examines, in addition to full ones, and the most deferred ones.
const LANES: usize = 64;
const DEFERRED: usize = 8;
/// The lanes of an origin or a tenant with more throttled lanes than this are deferred. If there is none, but throttled
/// lanes of several hide others together, these lanes are deferred.
const MOST_THROTTLED: usize = 8;
/// The most limited lanes that a reserve lists, in addition to those that it has met.
const LISTED: usize = 8;
/// How late the last deferred lane has its turn, in µs: [`PER_LANE`] for each lane of its tenant, but at least [`SOON`]
/// and at most [`LATEST`].
const PER_LANE: u64 = 4_000;
const SOON: u64 = 100_000;
const LATEST: u64 = 10_000_000;

impl EmbeddedStore {
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        let asked = Instant::now();
        let request = Request::from(ask);
        let found = self.call(shard, ask.limit * TRANSITION_BYTES, move |txn| reserve(txn, &request)).await?;
        Ok(found.answer(shard, asked))
    }

    /// Returns true: a reserve costs little here.
    pub async fn may_give(&self, _shard: Shard) -> Result<bool, StoreError> {
        Ok(true)
    }

    pub async fn exchange(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        ask: &Reserve<'_>,
    ) -> Result<(Vec<SettleResult>, Reserved), StoreError> {
        let asked = Instant::now();
        let settlements: Vec<_> = items.iter().map(Settlement::push).collect();
        let (keep, request) = (self.keep_tombstones(), Request::from(ask));
        let bytes = (settlements.len() + ask.limit) * TRANSITION_BYTES;
        let exchange =
            move |txn: &mut Txn<'_>| Ok((settle(txn, &settlements, keep)?, reserve(txn, &request)?));
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
    /// Limited lanes that the caller has places for, and how many.
    admitted: Vec<(String, usize)>,
    groups: Groups,
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
            admitted: ask.admitted.clone(),
            groups: Groups::from(ask),
            margin: millis_up(ask.margin),
        }
    }
}

impl Request {
    fn limit_of(&self, lane: &str) -> usize {
        self.limits.get(lane).copied().unwrap_or(self.lane_limit)
    }

    fn is_throttled(&self, lane: &str) -> bool {
        self.limit_of(lane) > 0 && self.groups.left(lane).0 == 0
    }
}

/// The result of a reserve.
#[derive(Default)]
struct Found {
    now_us: u64,
    is_watched: bool,
    jobs: Vec<StoredJob>,
    visited: Vec<Visit>,
    is_more: bool,
    /// Whether there are deferred lanes that were not examined.
    is_rest: bool,
    full: Vec<String>,
    /// Origins and tenants.
    throttled: BTreeSet<String>,
    /// Groups of throttled lanes that may hide others, and how late the last lane of each has its turn, in µs.
    deferred: Vec<(Vec<String>, u64)>,
    /// Paused and limited lanes, and the turns at which they are kept.
    held: Vec<(String, u64)>,
    /// Limited lanes, and how many ready jobs they have.
    limited: Vec<(String, u32)>,
}

/// A lane that jobs were taken from.
struct Visit {
    lane: String,
    /// Whether it has more jobs.
    is_rest: bool,
    is_limited: bool,
}

impl Found {
    fn answer(self, shard: Shard, asked: Instant) -> Reserved {
        let at = ReservedAt { now_us: self.now_us, is_watched: self.is_watched, asked };
        let leases = read_granted(shard, &self.jobs, |record, body| answers::lease(shard, record, body, at));
        let throttled = self.throttled.into_iter().collect();
        let has_deferred = !self.deferred.is_empty();
        Reserved {
            leases,
            more: self.is_more || self.is_rest,
            is_more_later: self.is_rest && !self.is_more,
            has_deferred,
            full: self.full,
            throttled,
            limited: self.limited,
            next_due: None,
        }
    }
}

fn reserve(txn: &mut Txn<'_>, request: &Request) -> Result<Found> {
    let (shard, now_us, is_watched) = (txn.shard(), txn.now_us(), txn.is_watched());
    if let Some(jobs) = granted_before(txn, &request.caller)? {
        return Ok(Found { now_us, is_watched, jobs, is_more: true, ..Found::default() });
    }
    if txn.is_archive_too_full() {
        return Ok(Found { now_us, is_watched, ..Found::default() });
    }
    let mut found = find(txn, request)?;
    grant_leases(txn, &request.caller, &mut found.jobs, |job| {
        millis_up(lease_stretch(job.timeout())) + request.margin
    })?;
    for (lane, turn) in &found.held {
        txn.tables.ready.set_turn(shard, lane, Some(*turn))?;
    }
    for (n, Visit { lane, is_rest, is_limited }) in (1..).zip(&found.visited) {
        if *is_rest && *is_limited {
            txn.tables.ready.set_turn(shard, lane, Some(turn_of_limited(lane)))?;
            continue;
        }
        // A lane that has more jobs goes behind the others.
        let turn = is_rest.then(|| txn.next_turn() + n);
        txn.tables.ready.set_turn(shard, lane, turn)?;
        txn.row.turn = txn.row.turn.max(turn.unwrap_or(0));
    }
    // Lanes that get jobs meanwhile come before these.
    for (lanes, length) in &found.deferred {
        for (n, lane) in (1..).zip(lanes) {
            let turn = txn.last_turn() + length * n / lanes.len() as u64;
            txn.tables.ready.set_turn(shard, lane, Some(turn))?;
        }
    }
    let limited = limited(txn, &found)?;
    Ok(Found { now_us, is_watched, limited, ..found })
}

/// Returns limited lanes with ready jobs, and how many: those that the call has met, and up to [`LISTED`] others. Gives
/// lanes among these their turns that have no limit any more.
fn limited(txn: &mut Txn<'_>, found: &Found) -> Result<Vec<(String, u32)>> {
    let (shard, random) = (txn.shard(), scattered(txn.now_us()));
    let others = txn.tables.ready.some_limited(shard, random, LISTED)?;
    let mut lanes = BTreeSet::from_iter(txn.release_unlimited(others)?);
    lanes.extend(found.held.iter().filter(|(_, turn)| is_of_limit(*turn)).map(|(lane, _)| lane.clone()));
    lanes.extend(found.visited.iter().filter(|visit| visit.is_limited).map(|visit| visit.lane.clone()));
    let mut limited = Vec::new();
    for lane in lanes {
        let jobs = txn.deliverable(&lane, Lane::topic_of(&lane))?;
        if jobs > 0 {
            limited.push((lane, jobs));
        }
    }
    Ok(limited)
}

#[derive(Default)]
struct LanesInTurn {
    /// Lanes to visit.
    open: Vec<String>,
    throttled: Vec<String>,
    /// Paused and limited lanes, and the turns at which they are kept.
    held: Vec<(String, u64)>,
    /// How many of the open and of the throttled lanes are not deferred.
    in_turn: (usize, usize),
    /// Whether more lanes may be in turn.
    is_more: bool,
    /// Whether there are deferred lanes that were not examined.
    is_rest: bool,
    /// The turn and the name of the last lane that was examined.
    last: (u64, String),
}

impl LanesInTurn {
    /// Examines the lanes after `self.last`, at most `limit`, up to the turn `last`, and adds each to the open, throttled
    /// or held ones. Returns whether there may be more.
    fn look(&mut self, txn: &mut Txn<'_>, request: &Request, last: u64, limit: usize) -> Result<bool> {
        let all = txn.tables.ready.lanes(txn.shard(), (self.last.0, &self.last.1), last, limit)?;
        let is_rest = all.len() == limit;
        if let Some(last) = all.last() {
            self.last.clone_from(last);
        }
        for (_, lane) in all {
            if let Some(turn) = txn.held_turn(&lane)? {
                self.held.push((lane, turn));
            } else if request.is_throttled(&lane) {
                self.throttled.push(lane);
            } else {
                self.open.push(lane);
            }
        }
        Ok(is_rest)
    }

    /// Finds the lanes for a reserve. If some origins or tenants may give no job, and all lanes whose turn has come are
    /// known, also examines [`DEFERRED`] deferred ones, from a random one on: they may be open for this caller.
    fn find(&mut self, txn: &mut Txn<'_>, request: &Request) -> Result<()> {
        let window = LANES + request.limits.values().filter(|limit| **limit == 0).count();
        let has_throttled = request.groups.has_throttled();
        let in_turn = if has_throttled { txn.last_turn() } else { u64::MAX };
        self.is_more = self.look(txn, request, in_turn, window)?;
        self.in_turn = (self.open.len(), self.throttled.len());
        if self.is_more || !has_throttled {
            return Ok(());
        }
        let known = self.len();
        let Some((first, last)) = txn.tables.ready.turns(txn.shard(), in_turn + 1)? else {
            return Ok(());
        };
        let begin = first + scattered(txn.now_us()) % (last - first + 1);
        self.last = (begin, String::new());
        self.look(txn, request, u64::MAX, DEFERRED)?;
        let missing = (known + DEFERRED).saturating_sub(self.len());
        if missing > 0 {
            self.last = (first, String::new());
            self.look(txn, request, begin - 1, missing)?;
        }
        // There may be others if as many as possible were found.
        self.is_rest = self.len() == known + DEFERRED;
        Ok(())
    }

    fn len(&self) -> usize {
        self.open.len() + self.throttled.len() + self.held.len()
    }
}

/// Returns a number that differs much where the time differs little (Fibonacci hashing).
const fn scattered(time: u64) -> u64 {
    time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// Returns the groups of throttled lanes to defer, and how late the last lane of each has its turn, in µs: origins and
/// tenants with many throttled lanes or, if there are none, all lanes together if they hide others (`is_hidden`).
fn deferred(
    txn: &mut Txn<'_>,
    by_group: BTreeMap<String, Vec<String>>,
    is_hidden: bool,
) -> Result<Vec<(Vec<String>, u64)>> {
    let (many, few): (Vec<_>, Vec<_>) =
        by_group.into_iter().partition(|(_, lanes)| lanes.len() > MOST_THROTTLED);
    if many.is_empty() {
        let few: Vec<_> = few.into_iter().flat_map(|(_, lanes)| lanes).collect();
        return Ok(if is_hidden && !few.is_empty() { vec![(few, SOON)] } else { Vec::new() });
    }
    let late = |(group, lanes): (String, Vec<String>)| {
        let known = txn.tables.counts.lanes_of(txn.shard(), &group)?;
        Ok((lanes, (PER_LANE * known).clamp(SOON, LATEST)))
    };
    many.into_iter().map(late).collect()
}

/// Finds jobs in the lanes, in turn, and sorts the lanes by what to do with their turns. Reserves nothing yet.
fn find(txn: &mut Txn<'_>, request: &Request) -> Result<Found> {
    let mut lanes = LanesInTurn::default();
    lanes.find(txn, request)?;
    let LanesInTurn { open, throttled, held, in_turn, is_more, is_rest, last: _ } = lanes;
    let named = open.iter().filter(|lane| request.limit_of(lane) > 0).count();
    let share = request.limit.div_ceil(named.max(1));
    let mut found = Found { is_more, is_rest, held, ..Found::default() };
    let mut by_group = BTreeMap::<_, Vec<_>>::new();
    for (n, lane) in throttled.into_iter().enumerate() {
        let group = request.groups.left(&lane).1.to_owned();
        found.throttled.insert(group.clone());
        if n < in_turn.1 {
            by_group.entry(group).or_default().push(lane);
        }
    }
    found.deferred = deferred(txn, by_group, (is_more || is_rest) && in_turn.1 > LANES / 2)?;
    let (mut budget, mut groups) = (MAX_BYTES, request.groups.clone());
    visit_admitted(txn, request, &mut groups, &mut budget, &mut found)?;
    let admitted: BTreeSet<_> = found.visited.iter().map(|visit| visit.lane.clone()).collect();
    for (n, lane) in open.into_iter().enumerate().filter(|(_, lane)| !admitted.contains(lane)) {
        let bound = request.limit_of(&lane);
        let (left, group) = groups.left(&lane);
        let limit = bound.min(left).min(share).min(request.limit - found.jobs.len());
        if bound == 0 {
            found.full.push(lane);
            continue;
        }
        if left == 0 {
            found.throttled.insert(group.to_owned());
            continue;
        }
        if limit == 0 || budget == 0 {
            found.is_more = true;
            break;
        }
        let before = found.jobs.len();
        let taken = find_ready(txn, &lane, limit, &mut budget, &mut found.jobs)?;
        groups.take(&lane, found.jobs.len() - before);
        // If one deferred lane is open, others may be too.
        found.is_more |= is_rest && n >= in_turn.0 && found.jobs.len() > before;
        let (left, group) = groups.left(&lane);
        if taken.is_rest && bound <= taken.entries {
            found.full.push(lane.clone());
        } else if taken.is_rest && left == 0 {
            found.throttled.insert(group.to_owned());
        } else if taken.is_rest {
            found.is_more = true;
        }
        found.visited.push(Visit { lane, is_rest: taken.is_rest, is_limited: false });
    }
    Ok(found)
}

/// Finds jobs in the limited lanes that the caller has places for, by name, unless they are paused.
fn visit_admitted(
    txn: &mut Txn<'_>,
    request: &Request,
    groups: &mut Groups,
    budget: &mut usize,
    found: &mut Found,
) -> Result<()> {
    for (lane, places) in &request.admitted {
        let held = txn.held_turn(lane)?;
        let allowed = groups.left(lane).0.min(*places);
        let limit = allowed.min(request.limit - found.jobs.len());
        let is_paused = held.is_some_and(|turn| !is_of_limit(turn));
        // Twice in one call a lane would give the same jobs.
        if is_paused || allowed == 0 || found.visited.iter().any(|visit| visit.lane == *lane) {
            continue;
        }
        if limit == 0 || *budget == 0 {
            found.is_more = true;
            break;
        }
        let before = found.jobs.len();
        let taken = find_ready(txn, lane, limit, budget, &mut found.jobs)?;
        groups.take(lane, found.jobs.len() - before);
        let (lane, is_rest, is_limited) = (lane.clone(), taken.is_rest, held.is_some());
        // Jobs beyond the caller's places are no reason to call again.
        found.is_more |= is_rest && (taken.entries < allowed || !is_limited);
        found.visited.push(Visit { lane, is_rest, is_limited });
    }
    Ok(())
}
