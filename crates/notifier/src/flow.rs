//! `Flow`: the lanes whose destinations have limits. A notifier asks the store for places for their waiting jobs, all lanes
//! in one call, reserves as many jobs as it got places, and gives a place back when its callback has ended. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ringback_core::flow::{LEAD, MAX_AHEAD};
use ringback_core::lane::{Lane as LaneName, NO_TENANT};
use ringback_core::limits::MAX_LEASE_STRETCH;
use ringback_core::store_types::{Admission, Admitted, MAX_PLACES, PlaceId, Shard};
use tokio::time::Instant;

/// The most lanes of one call.
const MAX_LANES: usize = 256;
/// How long to wait before asking again while all places of a lane are in use: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a lane waits before it asks again that had no room here.
const NO_ROOM: Duration = Duration::from_millis(20);
/// A place that no job was reserved for in this time is given back.
const UNUSED: Duration = Duration::from_millis(200);
/// How long a place may go from one callback to the next before it is given back, for others who wait for it.
const LONGEST_KEPT: Duration = Duration::from_secs(1);

/// A place for one callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `None` if the lane has no limit any more.
    id: Option<PlaceId>,
    /// The callback begins at this time at the earliest.
    pub(crate) begin_at: Instant,
    /// Until when the next callback may have it; `None` if each needs a token of a rate.
    kept_until: Option<Instant>,
}

/// What is known of one lane.
struct Lane {
    /// How many jobs may wait in which shards.
    waiting: BTreeMap<Shard, u32>,
    /// No call before this time.
    ask_at: Instant,
    /// When it asked last, or was found. The lane that waits longest asks first.
    since: Instant,
    /// The next pause while all places are in use.
    pause: Duration,
    /// Places that no reserve uses yet, in the order in which they were given, and since when.
    places: VecDeque<Place>,
    given: Instant,
    /// The places that a reserve in flight uses.
    reserving: Option<VecDeque<Place>>,
}

pub(crate) struct Flow {
    lanes: BTreeMap<String, Lane>,
    /// What the next call gives back and keeps.
    ended: Vec<(String, PlaceId)>,
    unused: Vec<(String, PlaceId, u32)>,
    held: Vec<(String, PlaceId, Duration)>,
    lasts: Duration,
    ahead: Duration,
    lead: Duration,
    /// The lanes that reserves had places for which have failed, by shard, until the next one is answered.
    failed: BTreeMap<Shard, Vec<(String, usize)>>,
    /// Whether a call is in flight.
    is_asking: bool,
    /// No call before this time, after one that failed.
    paused_until: Option<Instant>,
}

impl Flow {
    /// `margin` is how much longer a lease is than its attempt.
    pub(crate) fn new(margin: Duration) -> Self {
        let ahead = MAX_AHEAD.min(margin / 10);
        Self {
            lanes: BTreeMap::new(),
            ended: Vec::new(),
            unused: Vec::new(),
            held: Vec::new(),
            failed: BTreeMap::new(),
            lasts: MAX_LEASE_STRETCH + margin + ahead + LONGEST_KEPT,
            ahead,
            lead: LEAD.min(ahead / 2),
            is_asking: false,
            paused_until: None,
        }
    }

    /// Records the answer to a reserve of a shard: which limited lanes have jobs there, and how many. Of the lanes that it had
    /// places for, those that the answer does not name have none.
    pub(crate) fn found(
        &mut self,
        shard: Shard,
        admitted: &[(String, usize)],
        limited: Vec<(String, u32)>,
        now: Instant,
    ) {
        for (name, _) in admitted {
            if let Some(lane) = self.lanes.get_mut(name) {
                lane.waiting.remove(&shard);
            }
        }
        for (name, ready) in limited {
            self.waits(name, ready, shard, now);
        }
    }

    fn waits(&mut self, lane: String, ready: u32, shard: Shard, now: Instant) {
        let lane = self.lanes.entry(lane).or_insert_with(|| Lane {
            waiting: BTreeMap::new(),
            ask_at: now,
            since: now,
            pause: FIRST_PAUSE,
            places: VecDeque::new(),
            given: now,
            reserving: None,
        });
        if ready > 0 {
            lane.waiting.insert(shard, ready);
        }
    }

    /// Whether a job that a reserve of a shard has brought needs a place: the reserve, or one before it that has failed and may
    /// have had the same answer, had places for its lane. A lane without is not limited: forgets it, if it was.
    pub(crate) fn needs_place(&mut self, lane: &str, shard: Shard, admitted: &[(String, usize)]) -> bool {
        if self.lanes.is_empty() && self.failed.is_empty() {
            return false;
        }
        let has = |lanes: &[(String, usize)]| lanes.iter().any(|(name, _)| name == lane);
        if has(admitted) || self.failed.get(&shard).is_some_and(|lanes| has(lanes)) {
            return true;
        }
        if let Some(state) = self.lanes.remove(lane) {
            give_back(&mut self.unused, &mut self.ended, lane, &state.places);
        }
        false
    }

    /// Returns the next call, if there is something to ask for or to give back. `room` says how many callbacks of a lane may
    /// start; all together may start `free`. The caller makes one call at a time.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        mut free: usize,
        room: impl Fn(&str) -> usize,
    ) -> Option<Admission> {
        if self.is_asking || self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        self.give_back_unused(now);
        let mut asking: Vec<_> = self.lanes.iter_mut().filter(|(_, lane)| lane.asks_by(now)).collect();
        asking.sort_by_key(|(_, lane)| lane.since);
        let mut wanted = Vec::new();
        for (name, lane) in asking.into_iter().take(MAX_LANES) {
            let waiting = lane.waiting.values().fold(0_u32, |sum, n| sum.saturating_add(*n)).min(MAX_PLACES);
            let n = room(name).min(free).min(waiting as usize);
            free -= n;
            if n > 0 {
                lane.since = now;
                wanted.push((name.clone(), u32::try_from(n).unwrap_or(MAX_PLACES)));
            } else {
                lane.ask_at = now + NO_ROOM;
            }
        }
        if wanted.is_empty() && self.ended.is_empty() && self.unused.is_empty() && self.held.is_empty() {
            return None;
        }
        self.is_asking = true;
        Some(Admission {
            wanted,
            ended: std::mem::take(&mut self.ended),
            unused: std::mem::take(&mut self.unused),
            held: std::mem::take(&mut self.held),
            lasts: self.lasts,
            ahead: self.ahead,
            lead: self.lead,
        })
    }

    /// Records the answers to a call that the store processed at `at`. Returns shards with jobs for the places.
    pub(crate) fn admitted(&mut self, call: Admission, answers: Vec<Admitted>, at: Instant) -> Vec<Shard> {
        self.is_asking = false;
        self.paused_until = None;
        let mut shards = Vec::new();
        for ((name, wanted), answer) in call.wanted.into_iter().zip(answers) {
            let Some(lane) = self.lanes.get_mut(&name) else { continue };
            let places: Vec<_> = match answer {
                Admitted::Wait(Some(wait)) => {
                    lane.ask_at = at + wait;
                    continue;
                }
                Admitted::Wait(None) => {
                    lane.ask_at = at + lane.pause;
                    lane.pause = (2 * lane.pause).min(LONGEST_PAUSE);
                    continue;
                }
                Admitted::Unlimited => {
                    vec![Place { id: None, begin_at: at, kept_until: None }; wanted as usize]
                }
                Admitted::Granted { first, begin_in } => {
                    // A callback that needs a token begins after the lead.
                    let is_rated = begin_in.iter().any(|wait| !wait.is_zero());
                    let kept_until = (!is_rated).then(|| at + LONGEST_KEPT);
                    let place = |(id, wait)| Place { id: Some(PlaceId(id)), begin_at: at + wait, kept_until };
                    (first.0..).zip(begin_in).map(place).collect()
                }
            };
            lane.ask_at = at;
            lane.pause = FIRST_PAUSE;
            lane.given = at;
            lane.places.extend(places);
            shards.extend(lane.next_shard());
        }
        shards
    }

    /// Records that a call has failed: it is repeated after a pause. Places that it gave lapse.
    pub(crate) fn failed(&mut self, call: Admission, until: Instant) {
        self.is_asking = false;
        self.paused_until = Some(until);
        self.ended.extend(call.ended);
        self.held.extend(call.held);
        // Their tokens may have been put back, so only the places are given back again.
        for (lane, first, n) in call.unused {
            self.ended.extend((first.0..).take(n as usize).map(|place| (lane.clone(), PlaceId(place))));
        }
    }

    /// Returns the lanes that a reserve of this shard may take jobs of, and how many: it uses their places.
    pub(crate) fn reserving(&mut self, shard: Shard) -> Vec<(String, usize)> {
        let mut admitted = Vec::new();
        for (name, lane) in &mut self.lanes {
            if lane.reserving.is_none() && !lane.places.is_empty() && lane.next_shard() == Some(shard) {
                admitted.push((name.clone(), lane.places.len()));
                lane.reserving = Some(std::mem::take(&mut lane.places));
            }
        }
        admitted
    }

    /// Returns the place of a job that a reserve has brought.
    pub(crate) fn take(&mut self, lane: &str) -> Option<Place> {
        self.lanes.get_mut(lane)?.reserving.as_mut()?.pop_front()
    }

    /// Records that a reserve of a shard has failed. Its repetition may bring the jobs. Returns shards with jobs for places.
    pub(crate) fn reserve_failed(&mut self, shard: Shard, admitted: Vec<(String, usize)>) -> Vec<Shard> {
        let shards = self.finish(&admitted);
        if !admitted.is_empty() {
            self.failed.entry(shard).or_default().extend(admitted);
        }
        shards
    }

    /// Records that a reserve of a shard is answered, once its jobs have their places. Returns shards with jobs for places.
    pub(crate) fn reserved(&mut self, shard: Shard, admitted: &[(String, usize)]) -> Vec<Shard> {
        self.failed.remove(&shard);
        self.finish(admitted)
    }

    /// Gives back the places that a reserve did not use.
    fn finish(&mut self, admitted: &[(String, usize)]) -> Vec<Shard> {
        let mut shards = Vec::new();
        for (name, _) in admitted {
            let Some(lane) = self.lanes.get_mut(name) else { continue };
            let unused = lane.reserving.take().unwrap_or_default();
            if lane.waiting.is_empty() {
                give_back(&mut self.unused, &mut self.ended, name, unused.iter().chain(&lane.places));
                self.lanes.remove(name);
            } else {
                give_back(&mut self.unused, &mut self.ended, name, &unused);
                shards.extend(lane.next_shard().filter(|_| !lane.places.is_empty()));
            }
        }
        shards
    }

    /// Records that the callback of a place has ended. The place goes to the lane with the same limits that waits longest, or
    /// is given back. Returns the shard with a job for it.
    pub(crate) fn ended(&mut self, lane: String, place: Place, now: Instant) -> Option<Shard> {
        let id = place.id?;
        let is_kept = place.kept_until.is_some_and(|until| now < until);
        let (tenant, origin) = groups_of(&lane);
        let is_next = |(name, lane): &(&String, &mut Lane)| {
            let (its_tenant, its_origin) = groups_of(name);
            its_origin == origin && (its_tenant == tenant || !is_kept) && lane.has_more()
        };
        let next = self.lanes.iter_mut().filter(is_next).min_by_key(|(_, lane)| lane.since);
        if let Some((_, next)) = next {
            if is_kept {
                next.since = now;
                next.given = now;
                next.places.push_back(Place { begin_at: now, ..place });
                return next.next_shard().filter(|_| next.reserving.is_none());
            }
            // It asks in the call that gives the place back.
            next.ask_at = next.ask_at.min(now);
            next.pause = FIRST_PAUSE;
        }
        self.ended.push((lane, id));
        None
    }

    /// Keeps the place of a callback that may take this long.
    pub(crate) fn hold(&mut self, lane: &str, place: Place, timeout: Duration) {
        if let Some(id) = place.id.filter(|_| timeout > MAX_LEASE_STRETCH) {
            let margin = self.lasts - MAX_LEASE_STRETCH;
            self.held.push((lane.to_owned(), id, timeout + margin));
        }
    }

    /// When to look again; `None` if nothing waits for a call.
    pub(crate) fn next(&self) -> Option<Instant> {
        if self.is_asking {
            return None;
        }
        let now = Instant::now();
        let is_back = !(self.ended.is_empty() && self.unused.is_empty() && self.held.is_empty());
        let asks = self.lanes.values().filter(|lane| lane.asks()).map(|lane| lane.ask_at).min();
        let given = self.lanes.values().filter(|lane| lane.is_given()).map(|lane| lane.given + UNUSED).min();
        let next = asks.into_iter().chain(given).chain(is_back.then_some(now)).min()?;
        Some(self.paused_until.map_or(next, |until| until.max(next)))
    }

    /// Whether all places are given back, as far as they can be.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_asking && self.ended.is_empty() && self.unused.is_empty()
    }

    /// Gives all places back that no callback has, and asks for no more. Jobs that a reserve in flight brings go back too.
    pub(crate) fn stop(&mut self) {
        for (name, lane) in std::mem::take(&mut self.lanes) {
            let reserving = lane.reserving.iter().flatten();
            give_back(&mut self.unused, &mut self.ended, &name, reserving.chain(&lane.places));
        }
    }

    fn give_back_unused(&mut self, now: Instant) {
        for (name, lane) in &mut self.lanes {
            if lane.is_given() && now >= lane.given + UNUSED {
                give_back(&mut self.unused, &mut self.ended, name, &std::mem::take(&mut lane.places));
            }
        }
    }
}

impl Lane {
    fn next_shard(&self) -> Option<Shard> {
        self.waiting.keys().next().copied()
    }

    fn asks(&self) -> bool {
        self.places.is_empty() && self.reserving.is_none() && !self.waiting.is_empty()
    }

    /// Whether more jobs wait than it has places for.
    fn has_more(&self) -> bool {
        let waiting = self.waiting.values().fold(0_usize, |sum, n| sum.saturating_add(*n as usize));
        let given = self.places.len() + self.reserving.as_ref().map_or(0, VecDeque::len);
        given < waiting
    }

    fn asks_by(&self, now: Instant) -> bool {
        self.asks() && self.ask_at <= now
    }

    /// Whether it has places that no reserve uses.
    fn is_given(&self) -> bool {
        !self.places.is_empty() && self.reserving.is_none()
    }
}

/// The tenant and the origin of a lane, on which its limits depend.
fn groups_of(lane: &str) -> (&str, &str) {
    LaneName::parse(lane).map_or((NO_TENANT, ""), |lane| (lane.tenant(), lane.origin))
}

/// Gives places back that no callback used. Of those with a token, only the last ones of an answer can be put back, so they
/// are runs of ascending numbers.
fn give_back<'p>(
    unused: &mut Vec<(String, PlaceId, u32)>,
    ended: &mut Vec<(String, PlaceId)>,
    lane: &str,
    places: impl IntoIterator<Item = &'p Place>,
) {
    let mut run: Option<(PlaceId, u32)> = None;
    for place in places {
        match (place.id, place.kept_until) {
            (Some(id), None) => match &mut run {
                Some((_, n)) => *n += 1,
                None => run = Some((id, 1)),
            },
            (Some(id), Some(_)) => ended.push((lane.to_owned(), id)),
            (None, _) => {}
        }
    }
    unused.extend(run.map(|(first, n)| (lane.to_owned(), first, n)));
}

#[cfg(test)]
mod tests;
