//! How much of the limits is used: tokens of rates, and places of callbacks in flight. Only in memory, because all
//! callers are in this process: after a restart nothing is in flight. What the limits allow is stored
//! (`tables/limits`). Times are those of the store, in µs.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ringback_core::clock::micros;
use ringback_core::flow::{Bucket, Limits, Rate};
use ringback_core::store_types::{Admission, Admitted, LimitTarget, PlaceId};

/// The limits of lanes, with their names, by the names of the lanes.
pub(crate) type LimitsOfLanes<'l> = BTreeMap<&'l str, Vec<(String, Limits)>>;

#[derive(Default)]
pub(crate) struct LimitUsage {
    /// When the store was opened.
    opened: u64,
    /// The last place that was given. Places are numbered by times.
    last: u64,
    /// By the name of the limit, as the places.
    tokens: BTreeMap<String, Tokens>,
    in_flight: BTreeMap<String, InFlight>,
}

struct Tokens {
    bucket: Bucket,
    /// The number after the last place that was given under the limit.
    after: u64,
}

impl LimitUsage {
    /// Nothing is in flight in a store that is opened now. Buckets begin as if a burst had just begun, because the
    /// process before may have given one.
    pub(crate) fn new(now: u64) -> Self {
        Self { opened: now, ..Self::default() }
    }

    /// Begins with a limit that is stored now, and goes on with what the limit `before` of the same target has used. That
    /// of a breaker allows the first callback after an interval.
    pub(crate) fn put(&mut self, of: &LimitTarget, before: Option<&Limits>, limits: &Limits, now: u64) {
        let (name, now) = (of.name(), now as f64);
        if before.is_none() {
            self.forget(&name);
            self.tokens.insert(name.clone(), Tokens { bucket: Bucket::default(), after: 0 });
        }
        let tokens = self.tokens(&name, before.unwrap_or(limits));
        match of {
            LimitTarget::Breaker(_) => {
                tokens.bucket = Bucket::full_at(now + limits.rate.map_or(0.0, Rate::interval_us));
            }
            LimitTarget::Destination(_) | LimitTarget::Topic(_) => tokens.bucket.change(limits, now),
        }
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.tokens.remove(name);
        self.in_flight.remove(name);
    }

    /// Returns how many callbacks are in flight under a limit, if it limits them, and how long after `now` the next one
    /// may begin by the rate.
    pub(crate) fn state(&mut self, name: &str, limits: &Limits, now: u64) -> (u32, Duration) {
        let next_in = self.tokens(name, limits).bucket.earliest(limits, now as f64) - now as f64;
        (self.in_flight.get_mut(name).map_or(0, |places| places.count(now)), micros_up(next_in))
    }

    /// Takes places back, and gives those that are wanted and free under all limits of their lanes: an answer for each
    /// lane that wants some. `limits` has the lanes of the call, or those with limits.
    pub(crate) fn admit(&mut self, ask: &Admission, limits: &LimitsOfLanes<'_>, now: u64) -> Vec<Admitted> {
        let of = |lane: &str| limits.get(lane).map_or(&[][..], Vec::as_slice);
        for (lane, place) in &ask.ended {
            self.each_in_flight(of(lane), |places| places.remove(place.0));
        }
        for (lane, PlaceId(first), n) in &ask.unused {
            let after = first + u64::from(*n);
            self.each_in_flight(of(lane), |places| (*first..after).for_each(|place| places.remove(place)));
            for (name, limits) in of(lane) {
                let tokens = self.tokens(name, limits);
                if tokens.after == after {
                    tokens.bucket.put_back(limits, *n);
                    tokens.after = *first;
                }
            }
        }
        for (lane, place, time) in &ask.held {
            self.each_in_flight(of(lane), |places| places.extend(place.0, now + micros(*time)));
        }
        ask.wanted.iter().map(|(lane, wanted)| self.give(of(lane), *wanted, ask, now)).collect()
    }

    /// Gives at most `wanted` places under all of these limits.
    fn give(&mut self, limits: &[(String, Limits)], wanted: u32, ask: &Admission, now: u64) -> Admitted {
        if limits.is_empty() {
            return Admitted::Unlimited;
        }
        let mut free = wanted;
        for (name, Limits { in_flight, .. }) in limits {
            if let Some(most) = in_flight {
                let used = self.in_flight.get_mut(name).map_or(0, |places| places.count(now));
                free = free.min(most.saturating_sub(used));
            }
        }
        let bucket_of = |(name, limits): &'_ (String, Limits)| (self.tokens(name, limits).bucket, *limits);
        let mut buckets: Vec<_> = limits.iter().map(bucket_of).collect();
        let (now_us, ahead) = (now as f64, micros(ask.ahead) as f64);
        let lead = limits.iter().any(|(_, limits)| limits.rate.is_some()).then_some(ask.lead);
        let (mut begin, mut begin_in) = (now_us + micros(lead.unwrap_or_default()) as f64, Vec::new());
        while begin_in.len() < free as usize {
            begin = buckets.iter().fold(begin, |begin, (bucket, limits)| bucket.earliest(limits, begin));
            if begin > now_us + ahead {
                break;
            }
            buckets.iter_mut().for_each(|(bucket, limits)| bucket.take(limits, begin));
            begin_in.push(micros_up(begin - now_us));
        }
        if begin_in.is_empty() {
            // Asked when half of `ahead` is free, a limit gives several places at a time.
            return Admitted::Wait((free > 0).then(|| micros_up(begin - now_us - ahead / 2.0)));
        }
        let first = now.max(self.last + 1);
        let after = first + begin_in.len() as u64;
        self.last = after - 1;
        for ((name, _), (bucket, limits)) in limits.iter().zip(buckets) {
            *self.tokens(name, &limits) = Tokens { bucket, after };
        }
        let until = now + micros(ask.lasts);
        self.each_in_flight(limits, |places| (first..after).for_each(|place| places.set(place, until)));
        Admitted::Granted { first: PlaceId(first), begin_in }
    }

    /// Goes on at the time `to` if the store's time goes back from `from`. Buckets begin as in a store that is opened.
    pub(crate) fn set_back(&mut self, from: u64, to: u64) {
        self.opened = to;
        self.tokens.clear();
        self.in_flight.values_mut().for_each(|places| places.move_back(from.saturating_sub(to)));
    }

    fn tokens(&mut self, name: &str, limits: &Limits) -> &mut Tokens {
        let burst = f64::from(limits.burst()) * limits.rate.map_or(0.0, Rate::interval_us);
        let bucket = Bucket::full_at(self.opened as f64 + burst);
        self.tokens.entry(name.to_owned()).or_insert(Tokens { bucket, after: 0 })
    }

    /// Calls `change` with the places under each of the limits that limit callbacks in flight.
    fn each_in_flight(&mut self, limits: &[(String, Limits)], mut change: impl FnMut(&mut InFlight)) {
        for (name, _) in limits.iter().filter(|(_, limits)| limits.in_flight.is_some()) {
            change(self.in_flight.entry(name.to_owned()).or_default());
        }
    }
}

/// The places of callbacks in flight, and when each lapses.
#[derive(Default)]
struct InFlight {
    until: HashMap<u64, u64>,
    by_time: BTreeSet<(u64, u64)>,
}

impl InFlight {
    fn set(&mut self, place: u64, until: u64) {
        self.remove(place);
        self.until.insert(place, until);
        self.by_time.insert((until, place));
    }

    /// Changes when a place lapses, if it is taken.
    fn extend(&mut self, place: u64, until: u64) {
        if self.until.contains_key(&place) {
            self.set(place, until);
        }
    }

    fn remove(&mut self, place: u64) {
        if let Some(until) = self.until.remove(&place) {
            self.by_time.remove(&(until, place));
        }
    }

    /// Forgets the places that have lapsed, and returns how many are left.
    fn count(&mut self, now: u64) -> u32 {
        while let Some(&(until, place)) = self.by_time.first()
            && until <= now
        {
            self.remove(place);
        }
        u32::try_from(self.until.len()).unwrap_or(u32::MAX)
    }

    fn move_back(&mut self, by: u64) {
        for (place, until) in std::mem::take(self).until {
            self.set(place, until.saturating_sub(by));
        }
    }
}

fn micros_up(micros: f64) -> Duration {
    Duration::from_micros(micros.max(0.0).ceil() as u64)
}
