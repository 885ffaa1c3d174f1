//! Destinations: pauses and resumes them, lists pauses, counts jobs by destination, and gives a paused lane's turn.

use std::ops::Bound;

use ringback_core::destination::DestinationPause;
use ringback_core::lane::Lane;
use ringback_core::state::State;
use ringback_core::store_types::{
    DESTINATION_STEP, DestinationCounts, DestinationPart, LaneSpan, MAX_RESUMED_LANES, PauseLimit, Shard,
    StoreError,
};

use crate::error::Result;
use crate::tables::{PAUSED, Pause, PauseRow};
use crate::txn::Txn;
use crate::{EmbeddedStore, TRANSITION_BYTES};

impl EmbeddedStore {
    /// Pauses a destination in a shard. If the pause would exceed a limit, changes nothing and returns the limit.
    pub async fn pause_destination(
        &self,
        shard: Shard,
        pause: &DestinationPause,
    ) -> Result<Option<PauseLimit>, StoreError> {
        let pause = pause.clone();
        let put = move |txn: &mut Txn<'_>| txn.tables.destinations.pause(txn.shard(), &pause);
        self.call(shard, TRANSITION_BYTES, put).await
    }

    /// Resumes a destination in a shard, in several calls if it holds many lanes. Returns whether it was paused there.
    pub async fn resume_destination(
        &self,
        shard: Shard,
        pause: &DestinationPause,
    ) -> Result<bool, StoreError> {
        loop {
            let name = pause.name();
            let resume = move |txn: &mut Txn<'_>| resume(txn, &name);
            match self.call(shard, MAX_RESUMED_LANES * 64, resume).await? {
                Some(true) => {}
                is_more => return Ok(is_more.is_some()),
            }
        }
    }

    pub async fn paused_destinations(&self, shard: Shard) -> Result<Vec<DestinationPause>, StoreError> {
        let names = self.call(shard, 0, |txn| txn.tables.destinations.all(txn.shard())).await?;
        let unreadable = || StoreError::Unreadable("a paused destination");
        names.iter().map(|(name, _)| DestinationPause::from_name(name).ok_or_else(unreadable)).collect()
    }

    /// Returns up to [`DESTINATION_STEP`] lanes with origin and counts, and where to go on, `None` at the end.
    pub async fn destinations(
        &self,
        shard: Shard,
        span: &LaneSpan,
        after: Option<&[u8]>,
    ) -> Result<DestinationPart, StoreError> {
        let (first, below) = match span {
            LaneSpan::Topic(topic) => {
                let topic = topic.as_str();
                (format!("{topic} "), Some(format!("{topic}!")))
            }
            LaneSpan::Of(scope) => scope.bounds(),
        };
        let after = after.map(|after| String::from_utf8_lossy(after).into_owned());
        let part = move |txn: &mut Txn<'_>| part(txn, &first, below.as_deref(), after.as_deref());
        self.call(shard, 0, part).await
    }
}

/// Gives up to [`MAX_RESUMED_LANES`] lanes of a paused destination their turns, and removes the pause after the last.
/// Returns whether lanes may be left; `None` if the destination is not paused.
fn resume(txn: &mut Txn<'_>, name: &str) -> Result<Option<bool>> {
    let shard = txn.shard();
    let Some(row) = txn.tables.destinations.get(shard, name)? else { return Ok(None) };
    // From here on the pause holds no further lane.
    txn.tables.destinations.put(shard, name, PauseRow { pause: Pause::Resuming, ..row })?;
    let lanes = txn.tables.ready.paused_at(shard, row.turn(), MAX_RESUMED_LANES)?;
    for lane in &lanes {
        match txn.paused_turn(lane)? {
            Some(turn) => txn.tables.ready.set_turn(shard, lane, Some(turn))?,
            None => txn.give_turn(lane)?,
        }
    }
    let is_more = lanes.len() == MAX_RESUMED_LANES;
    if !is_more {
        txn.tables.destinations.remove(shard, name)?;
    }
    Ok(Some(is_more))
}

fn part(txn: &Txn<'_>, first: &str, below: Option<&str>, after: Option<&str>) -> Result<DestinationPart> {
    let shard = txn.shard();
    let from = after.map_or(Bound::Included((shard, first)), |after| Bound::Excluded((shard, after)));
    let till = below.map_or(Bound::Excluded((shard + 1, "")), |below| Bound::Excluded((shard, below)));
    let (mut origins, mut last) = (Vec::new(), None);
    for (n, row) in txn.tables.counts.lanes_between(from, till)?.take(DESTINATION_STEP).enumerate() {
        let (lane, jobs) = row?;
        let origin = Lane::parse(&lane).map_or("", |lane| lane.origin);
        if !origin.is_empty() {
            let of = |state| u64::try_from(jobs.of(state)).unwrap_or(0);
            let counts = DestinationCounts {
                delayed: of(State::Delayed),
                ready: of(State::Ready),
                reserved: of(State::Reserved),
                dead: of(State::Dead),
            };
            origins.push((origin.to_owned(), counts));
        }
        last = (n + 1 == DESTINATION_STEP).then(|| lane.into_bytes().into());
    }
    Ok((origins, last))
}

impl Txn<'_> {
    /// Returns the turn at which a paused lane is kept; `None` if neither its topic nor its destination is paused.
    pub(crate) fn paused_turn(&mut self, lane: &str) -> Result<Option<u64>> {
        let shard = self.shard();
        if self.tables.counts.is_lane_paused(shard, lane)? {
            return Ok(Some(PAUSED));
        }
        self.tables.destinations.holder(shard, lane)
    }
}
