//! Calls that wait for an answer for long, by the address that they are connected to. Many names can lead to one
//! address, so a receiver that hangs is known by it: while such calls hold too many of the places, the address gets no
//! new connection, and no job of the origins that lead there is reserved.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A call counts once it has waited for so long, for a connection or for the head of the response.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// Slow calls to one address are few up to this fraction of all places.
const FEW: usize = 8;
/// The most origins that are remembered of an address.
const MAX_ORIGINS: usize = 1_024;

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
    calls: usize,
    /// The origins that have led to it since the oldest of these calls became slow, and the slow calls of each.
    origins: BTreeMap<String, usize>,
}

impl State {
    /// Whether the slow calls to an address hold too many places: more than half of what is free beside them, or seven
    /// eighths while there is no other origin.
    fn is_crowded(&self, address: &Address) -> bool {
        let left = self.free + address.calls;
        let most = if self.is_alone { left - left / 8 } else { left / 2 };
        address.calls >= most.max(self.concurrency / FEW).max(1)
    }
}

impl SlowCalls {
    pub(crate) fn new(concurrency: usize) -> Self {
        let state = State { concurrency, free: concurrency, is_alone: true, addresses: HashMap::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Says how many places are free, and whether all callbacks in flight are to one origin. Returns the origins that
    /// lead to addresses whose slow calls hold too many places.
    pub(crate) fn crowded(&self, free: usize, is_alone: bool) -> BTreeSet<String> {
        let mut state = self.state();
        (state.free, state.is_alone) = (free, is_alone);
        let crowded = state.addresses.values().filter(|address| state.is_crowded(address));
        crowded.flat_map(|address| address.origins.keys().cloned()).collect()
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

    /// A call has become slow. It is over when the result is dropped.
    pub(crate) fn begin(&self, address: SocketAddr, origin: &str) -> SlowCall {
        let mut state = self.state();
        let slow = state.addresses.entry(address).or_default();
        slow.calls += 1;
        if slow.origins.len() < MAX_ORIGINS || slow.origins.contains_key(origin) {
            *slow.origins.entry(origin.to_owned()).or_default() += 1;
        }
        SlowCall { calls: self.clone(), address, origin: origin.to_owned() }
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
        if slow.calls == 0 {
            state.addresses.remove(&self.address);
        } else if let Some(calls) = slow.origins.get_mut(&self.origin) {
            *calls = calls.saturating_sub(1);
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
        (0..count).map(|n| calls.begin(address(port), &format!("http://{n}.example"))).collect()
    }

    #[test]
    fn an_address_is_crowded_once_its_slow_calls_hold_half_of_what_others_leave_free() {
        let calls = SlowCalls::new(512);
        let mut slow = begin(&calls, 1, 170);
        let _other = calls.begin(address(2), "http://other.example");
        // 171 of 512 are slow, and of the others more or fewer are free.
        assert!(calls.crowded(172, false).is_empty() && calls.may_connect(address(1), "http://new.example"));
        assert_eq!(calls.crowded(170, false).len(), 170);
        assert!(!calls.may_connect(address(1), "http://new.example"));
        assert!(calls.may_connect(address(2), "http://new.example"), "another address has room");
        assert_eq!(calls.crowded(170, false).len(), 171, "it is known now where that origin leads");
        drop(slow.pop());
        assert!(calls.crowded(171, false).is_empty() && calls.may_connect(address(1), "http://new.example"));
    }

    #[test]
    fn an_origin_that_is_alone_may_have_more_and_few_slow_calls_are_no_crowd() {
        let calls = SlowCalls::new(512);
        let slow = begin(&calls, 1, 447);
        assert!(calls.crowded(65, true).is_empty());
        let _one_more = calls.begin(address(1), "http://0.example");
        assert_eq!(calls.crowded(64, true).len(), 447);
        drop(slow);
        let _few = begin(&calls, 3, 63);
        assert!(calls.crowded(0, false).is_empty(), "63 of 512");
    }

    #[test]
    fn nothing_is_kept_of_an_address_once_no_call_is_slow_and_a_bounded_number_of_origins_before() {
        let calls = SlowCalls::new(8);
        let slow = begin(&calls, 1, MAX_ORIGINS + 100);
        assert_eq!(calls.crowded(0, false).len(), MAX_ORIGINS);
        assert!(!calls.may_connect(address(1), "http://new.example"));
        assert_eq!(calls.crowded(0, false).len(), MAX_ORIGINS);
        drop(slow);
        assert!(calls.crowded(0, false).is_empty() && calls.state().addresses.is_empty());
    }
}
