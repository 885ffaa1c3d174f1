//! Limits of destinations and topics: stores and lists them, gives places under them, and gives lanes their turns back
//! that have no limit any more.

use std::sync::{Arc, Mutex};

use ringback_core::flow::Limits;
use ringback_core::store_types::{
    Admission, Admitted, LimitState, LimitTarget, MAX_RESUMED_LANES, PauseLimit, Shard, StoreError,
};

use crate::error::Result;
use crate::mutex::lock;
use crate::places::{LimitUsage, LimitsOfLanes};
use crate::tables::{is_of_limit, turn_of_limited};
use crate::txn::Txn;
use crate::{ANY_SHARD, EmbeddedStore, TRANSITION_BYTES};

impl EmbeddedStore {
    /// Stores a limit, in place of another one; removes it if nothing is limited. If it would be one
    /// too many, changes nothing and returns which bound it would exceed. The limit holds in all shards at once.
    pub async fn put_limit(
        &self,
        of: &LimitTarget,
        limits: &Limits,
    ) -> Result<Option<PauseLimit>, StoreError> {
        let (location, of, limits) = (Arc::clone(&self.shared.location), of.clone(), *limits);
        let put = move |txn: &mut Txn<'_>| put(txn, &location.places, &of, &limits);
        self.call(ANY_SHARD, TRANSITION_BYTES, put).await
    }

    /// Gives the lanes of a shard their turns back that have no limit any more. Does nothing when there is a limit: a
    /// reserve finds it in its table.
    pub async fn mark_limit(
        &self,
        shard: Shard,
        _of: &LimitTarget,
        is_limited: bool,
    ) -> Result<(), StoreError> {
        let mut next = (!is_limited).then_some(0);
        while let Some(from) = next {
            next = self.call(shard, MAX_RESUMED_LANES * 64, move |txn| release(txn, from)).await?;
        }
        Ok(())
    }

    /// Which callbacks are limited.
    pub async fn limit_names(&self) -> Result<Vec<LimitTarget>, StoreError> {
        self.call(ANY_SHARD, 0, |txn| txn.tables.limits.targets()).await
    }

    /// Returns the limits with these names, without those that do not exist.
    pub async fn limits(&self, of: &[LimitTarget]) -> Result<Vec<LimitState>, StoreError> {
        let (location, of) = (Arc::clone(&self.shared.location), of.to_vec());
        self.call(ANY_SHARD, 0, move |txn| states(txn, &location.places, &of)).await
    }

    /// Takes places back, and gives those that are wanted and free: an answer for each lane that wants some.
    pub async fn admit(&self, admission: &Admission) -> Result<Vec<Admitted>, StoreError> {
        let (location, ask) = (Arc::clone(&self.shared.location), admission.clone());
        self.call(ANY_SHARD, 0, move |txn| admit(txn, &location.places, &ask)).await
    }
}

fn put(
    txn: &mut Txn<'_>,
    places: &Mutex<LimitUsage>,
    of: &LimitTarget,
    limits: &Limits,
) -> Result<Option<PauseLimit>> {
    let name = of.name();
    if limits.is_empty() {
        txn.tables.limits.remove(&name)?;
        lock(places).forget(&name);
        return Ok(None);
    }
    let before = txn.tables.limits.get(&name)?;
    let exceeded = txn.tables.limits.put(of, limits)?;
    if exceeded.is_none() {
        lock(places).put(of, before.as_ref(), limits, txn.now_us());
    }
    Ok(exceeded)
}

fn states(txn: &Txn<'_>, places: &Mutex<LimitUsage>, of: &[LimitTarget]) -> Result<Vec<LimitState>> {
    let mut states = Vec::new();
    for of in of {
        let name = of.name();
        if let Some(limits) = txn.tables.limits.get(&name)? {
            let (in_flight, next_in) = lock(places).state(&name, &limits, txn.now_us());
            states.push(LimitState { of: of.clone(), limits, in_flight, next_in });
        }
    }
    Ok(states)
}

fn admit(txn: &Txn<'_>, places: &Mutex<LimitUsage>, ask: &Admission) -> Result<Vec<Admitted>> {
    let Admission { wanted, ended, unused, held, .. } = ask;
    let given_back = ended.iter().map(|(lane, _)| lane).chain(unused.iter().map(|(lane, ..)| lane));
    let lanes = wanted.iter().map(|(lane, _)| lane).chain(held.iter().map(|(lane, ..)| lane));
    let mut limits = LimitsOfLanes::new();
    for lane in lanes.chain(given_back) {
        if !limits.contains_key(lane.as_str()) {
            limits.insert(lane, txn.tables.limits.of_lane(lane)?);
        }
    }
    Ok(lock(places).admit(ask, &limits, txn.now_us()))
}

/// Looks at up to [`MAX_RESUMED_LANES`] limited lanes from a turn on. Returns where to go on; `None` at the end.
fn release(txn: &mut Txn<'_>, from: u64) -> Result<Option<u64>> {
    let lanes = txn.tables.ready.limited(txn.shard(), from, MAX_RESUMED_LANES)?;
    let last = lanes.last().filter(|_| lanes.len() == MAX_RESUMED_LANES).map(|(turn, _)| *turn);
    txn.release_unlimited(lanes.into_iter().map(|(_, lane)| lane).collect())?;
    Ok(last.map(|turn| turn + 1))
}

impl Txn<'_> {
    /// Returns the turn at which a lane is kept because its topic or its destination is paused, or else one of them
    /// is limited; `None` if it is neither.
    pub(crate) fn held_turn(&mut self, lane: &str) -> Result<Option<u64>> {
        if let Some(turn) = self.paused_turn(lane)? {
            return Ok(Some(turn));
        }
        Ok(self.tables.limits.has(lane)?.then(|| turn_of_limited(lane)))
    }

    /// Returns the lanes that still have a limit, of these that a limit has held. Gives the others their turns, or
    /// keeps them for a pause.
    pub(crate) fn release_unlimited(&mut self, lanes: Vec<String>) -> Result<Vec<String>> {
        let (shard, mut limited) = (self.shard(), Vec::new());
        for lane in lanes {
            match self.held_turn(&lane)? {
                Some(turn) if is_of_limit(turn) => limited.push(lane),
                Some(turn) => self.tables.ready.set_turn(shard, &lane, Some(turn))?,
                None => self.give_turn(&lane)?,
            }
        }
        Ok(limited)
    }
}
