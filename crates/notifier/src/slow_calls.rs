//! Calls that wait for an answer for long, by the address that they are connected to. Many names can lead to one
//! address, so a receiver that hangs is known by it: while such calls hold too many of the places, the address gets no
//! new connection, and no job of the origins that lead there is reserved. From then on it has few places until it
//! answers again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A call counts once it has waited for so long, for a connection or for the head of the response.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// Calls to one address are few up to this fraction of all places.
const FEW: usize = 8;
/// The most origins that are remembered of an address.
const MAX_ORIGINS: usize = 1_024;
/// How long an address that does not answer is suspected after its last call, and how many are at most.
const SUSPECTED: Duration = Duration::from_secs(30);
const MAX_SUSPECTS: usize = 1_024;

/// The slow calls of a notifier.
#[derive(Clone)]
pub(crate) struct SlowCalls(Arc<Mutex<State>>);

struct State {
    /// All places.
    concurrency: usize,
    /// Those that are free.
    free: usize,
    /// Whether all callbacks in flight are to one origin.
    is_alone: bool,
    addresses: HashMap<SocketAddr, Address>,
}

#[derive(Default)]
struct Address {
    /// Slow ones; all those that have begun since it is suspected.
    calls: usize,
    /// The origins that have led to it, and the calls of each.
    origins: BTreeMap<String, usize>,
    /// When it was last found to have too many slow calls, or its last call ended. It has not answered since.
    suspected: Option<Instant>,
}

impl State {
    /// Whether the slow calls to an address hold too many places: more than half of what is free beside them, or seven
    /// eighths while there is no other origin. Of one that is suspected, more than a few.
    fn is_crowded(&self, address: &Address) -> bool {
        let left = self.free + address.calls;
        let fair = if self.is_alone { left - left / 8 } else { left / 2 };
        let few = (self.concurrency / FEW).max(1);
        let most = if address.suspected.is_some() { few } else { fair.max(few) };
        address.calls >= most
    }
}

impl SlowCalls {
    pub(crate) fn new(concurrency: usize) -> Self {
        let state = State { concurrency, free: concurrency, is_alone: true, addresses: HashMap::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Says how many places are free, and whether all callbacks in flight are to one origin. Returns the origins that
    /// lead to addresses whose calls hold too many places.
    pub(crate) fn crowded(&self, free: usize, is_alone: bool, now: Instant) -> BTreeSet<String> {
        let mut state = self.state();
        (state.free, state.is_alone) = (free, is_alone);
        if state.addresses.is_empty() {
            return BTreeSet::new();
        }
        let is_over = |since: Instant| now.saturating_duration_since(since) >= SUSPECTED;
        state.addresses.retain(|_, one| one.calls > 0 || one.suspected.is_some_and(|since| !is_over(since)));
        let is_crowded = |(_, address): &(&SocketAddr, &Address)| state.is_crowded(address);
        let crowded: Vec<_> =
            state.addresses.iter().filter(is_crowded).map(|(address, _)| *address).collect();
        let mut suspects = state.addresses.values().filter(|one| one.suspected.is_some()).count();
        let mut origins = BTreeSet::new();
        for address in crowded {
            let Some(address) = state.addresses.get_mut(&address) else { continue };
            origins.extend(address.origins.keys().cloned());
            if address.suspected.is_some() || suspects < MAX_SUSPECTS {
                suspects += usize::from(address.suspected.is_none());
                address.suspected = Some(now);
            }
        }
        origins
    }

    /// Whether an origin may connect to this address. One that may not is remembered.
    pub(crate) fn may_connect(&self, address: SocketAddr, origin: &str) -> bool {
        let mut state = self.state();
        let is_crowded = state.addresses.get(&address).is_some_and(|address| state.is_crowded(address));
        if is_crowded
            && let Some(crowded) = state.addresses.get_mut(&address)
            && crowded.origins.len() < MAX_ORIGINS
        {
            crowded.origins.entry(origin.to_owned()).or_default();
        }
        !is_crowded
    }

    /// A call to an address begins: it counts at once if the address is suspected.
    pub(crate) fn begin(&self, address: SocketAddr, origin: &str) -> Option<SlowCall> {
        let is_suspected = self.state().addresses.get(&address).is_some_and(|one| one.suspected.is_some());
        is_suspected.then(|| self.slow(address, origin))
    }

    /// A call has become slow. It is over when the result is dropped.
    pub(crate) fn slow(&self, address: SocketAddr, origin: &str) -> SlowCall {
        let mut state = self.state();
        let slow = state.addresses.entry(address).or_default();
        slow.calls += 1;
        if slow.origins.len() < MAX_ORIGINS || slow.origins.contains_key(origin) {
            *slow.origins.entry(origin.to_owned()).or_default() += 1;
        }
        SlowCall { calls: self.clone(), address, origin: origin.to_owned() }
    }

    /// An address has answered a call, so it is not suspected any more.
    pub(crate) fn answered(&self, address: SocketAddr) {
        let mut state = self.state();
        if let Some(answers) = state.addresses.get_mut(&address) {
            answers.suspected = None;
            if answers.calls == 0 {
                state.addresses.remove(&address);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slow call.
pub(crate) struct SlowCall {
    calls: SlowCalls,
    address: SocketAddr,
    origin: String,
}

impl Drop for SlowCall {
    fn drop(&mut self) {
        let mut state = self.calls.state();
        let Some(slow) = state.addresses.get_mut(&self.address) else { return };
        slow.calls -= 1;
        if let Some(calls) = slow.origins.get_mut(&self.origin) {
            *calls = calls.saturating_sub(1);
        }
        match &mut slow.suspected {
            Some(since) => *since = Instant::now(),
            None if slow.calls == 0 => drop(state.addresses.remove(&self.address)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// So many slow calls to an address, each of an origin of its own.
    fn begin(calls: &SlowCalls, port: u16, count: usize) -> Vec<SlowCall> {
        (0..count).map(|n| calls.slow(address(port), &format!("http://{n}.example"))).collect()
    }

    #[test]
    fn an_address_is_crowded_once_its_slow_calls_hold_half_of_what_others_leave_free() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        let slow = begin(&calls, 1, 170);
        let _other = calls.slow(address(2), "http://other.example");
        // 171 of 512 are slow, and of the others more or fewer are free.
        assert!(calls.crowded(172, false, now).is_empty());
        assert!(calls.may_connect(address(1), "http://new.example"));
        assert_eq!(calls.crowded(170, false, now).len(), 170);
        assert!(!calls.may_connect(address(1), "http://new.example"));
        assert!(calls.may_connect(address(2), "http://new.example"), "another address has room");
        assert_eq!(calls.crowded(170, false, now).len(), 171, "it is known now where that origin leads");
        drop(slow);
    }

    #[test]
    fn an_address_that_was_crowded_has_few_places_until_it_answers() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        assert!(calls.begin(address(1), "http://0.example").is_none(), "it is not suspected");
        let mut slow = begin(&calls, 1, 300);
        assert!(!calls.crowded(0, false, now).is_empty());
        slow.truncate(64);
        assert!(
            !calls.crowded(400, false, now).is_empty() && !calls.may_connect(address(1), "http://a.example")
        );
        slow.truncate(63);
        assert!(
            calls.crowded(400, false, now).is_empty() && calls.may_connect(address(1), "http://a.example")
        );
        slow.extend(calls.begin(address(1), "http://a.example"));
        assert!(!calls.crowded(400, false, now).is_empty(), "a new call counts at once");

        calls.answered(address(1));
        assert!(
            calls.crowded(400, false, now).is_empty()
                && calls.begin(address(1), "http://a.example").is_none()
        );
        drop(slow);
        assert!(calls.state().addresses.is_empty());
    }

    #[test]
    fn an_origin_that_is_alone_may_have_more_and_few_slow_calls_are_no_crowd() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        let slow = begin(&calls, 1, 447);
        assert!(calls.crowded(65, true, now).is_empty());
        let _one_more = calls.slow(address(1), "http://0.example");
        assert_eq!(calls.crowded(64, true, now).len(), 447);
        drop(slow);
        let _few = begin(&calls, 3, 63);
        assert!(calls.crowded(0, false, now).is_empty(), "63 of 512");
    }

    #[test]
    fn what_is_kept_is_bounded_and_forgotten() {
        let (calls, now) = (SlowCalls::new(8), Instant::now());
        let slow = begin(&calls, 1, MAX_ORIGINS + 100);
        let many: Vec<_> = (2..MAX_SUSPECTS as u16 + 100).flat_map(|port| begin(&calls, port, 1)).collect();
        assert_eq!(calls.crowded(0, false, now).len(), MAX_ORIGINS);
        assert!(!calls.may_connect(address(1), "http://new.example"));
        assert_eq!(calls.crowded(0, false, now).len(), MAX_ORIGINS);
        drop((slow, many));
        assert_eq!(calls.state().addresses.len(), MAX_SUSPECTS, "no more are suspected without calls");
        assert!(calls.crowded(8, false, Instant::now() + SUSPECTED).is_empty());
        assert!(calls.state().addresses.is_empty());
    }
}
