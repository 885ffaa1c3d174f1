//! `SlowCalls`: counts callbacks that wait for more than a second, by the address of the receiver, since many names can
//! lead to one address. While such calls use too many places, the address is suspected and gets few of them. Origins
//! that answer there are not limited.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::pending;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A call counts once it has waited for so long: for a connection, for the head of the response, or for its body.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// A suspected address gets at most this fraction of all places.
const FEW: usize = 8;
/// The most origins that are remembered of an address.
const MAX_ORIGINS: usize = 1_024;
/// How long an address is suspected after its last call, and how many addresses are suspected at most.
const SUSPECTED: Duration = Duration::from_secs(30);
const MAX_SUSPECTS: usize = 1_024;

/// The slow calls of a notifier.
#[derive(Clone)]
pub(crate) struct SlowCalls(Arc<Mutex<State>>);

struct State {
    concurrency: usize,
    free: usize,
    /// Whether all callbacks in flight are to one origin.
    is_alone: bool,
    addresses: HashMap<SocketAddr, Address>,
}

#[derive(Default)]
struct Address {
    /// The slow calls; at a suspected address also the calls of origins that have not answered, from their beginning.
    calls: usize,
    origins: BTreeMap<String, Origin>,
    /// When it was last found to have too many slow calls, or its last call ended.
    suspected: Option<Instant>,
}

/// An origin that leads to an address.
#[derive(Default)]
struct Origin {
    calls: usize,
    /// Whether its last call was answered.
    answers: bool,
    /// Whether it was refused a connection.
    is_refused: bool,
}

impl State {
    fn few(&self) -> usize {
        (self.concurrency / FEW).max(1)
    }

    /// Whether the slow calls to an address use too many places: at least half of those that other calls leave, or
    /// seven eighths while there is no other origin; at a suspected address, an eighth of all places.
    fn is_crowded(&self, address: &Address) -> bool {
        let left = self.free + address.calls;
        let fair = if self.is_alone { left - left / 8 } else { left / 2 };
        let most = if address.suspected.is_some() { self.few() } else { fair.max(self.few()) };
        address.calls >= most
    }
}

impl SlowCalls {
    pub(crate) fn new(concurrency: usize) -> Self {
        let state = State { concurrency, free: concurrency, is_alone: true, addresses: HashMap::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Records how many places are free, and whether all callbacks in flight are to one origin. Suspects addresses with
    /// too many slow calls, and returns the origins that hang there, whose jobs should not be reserved.
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
        for key in crowded {
            let Some(address) = state.addresses.get_mut(&key) else { continue };
            let hangs = |origin: &Origin| (origin.calls > 0 || origin.is_refused) && !origin.answers;
            origins
                .extend(address.origins.iter().filter(|(_, one)| hangs(one)).map(|(name, _)| name.clone()));
            if address.suspected.is_none() && suspects < MAX_SUSPECTS {
                suspects += 1;
                tracing::warn!(address = %key, calls = address.calls, "calls to an address hang and hold many places; it gets few until they end");
                address.suspected = Some(now);
            } else if let Some(since) = &mut address.suspected {
                *since = now;
            }
        }
        origins
    }

    /// Whether an origin may connect to this address. If the address has too many slow calls, an origin whose last call
    /// there was answered may. Another one may try a single call if it has none there, was not refused, and the address
    /// has less than a quarter of all places.
    pub(crate) fn may_connect(&self, address: SocketAddr, origin: &str) -> bool {
        let state = self.state();
        let Some(known) = state.addresses.get(&key(address)).filter(|known| state.is_crowded(known)) else {
            return true;
        };
        match known.origins.get(origin) {
            Some(known) if known.answers => true,
            Some(own) if own.calls > 0 || own.is_refused => false,
            _ => known.calls < 2 * state.few(),
        }
    }

    /// Records that an origin was refused a connection, because all of its addresses, of which this is one, are
    /// crowded.
    pub(crate) fn refused(&self, address: SocketAddr, origin: &str) {
        if let Some(known) = self.state().addresses.get_mut(&key(address))
            && (known.origins.len() < MAX_ORIGINS || known.origins.contains_key(origin))
        {
            known.origins.entry(origin.to_owned()).or_default().is_refused = true;
        }
    }

    /// Begins a call to an address. It counts once it is slow; at a suspected address at once, unless the origin
    /// answers there.
    pub(crate) fn watch(&self, address: SocketAddr, origin: &str) -> Watch {
        let counts_at_once = |one: &Address| {
            one.suspected.is_some() && !one.origins.get(origin).is_some_and(|origin| origin.answers)
        };
        let counts_at_once = self.state().addresses.get(&key(address)).is_some_and(counts_at_once);
        let slow_at = Instant::now() + SLOW;
        let call = counts_at_once.then(|| self.count(address, origin));
        Watch { calls: self.clone(), address, origin: origin.to_owned(), slow_at, call }
    }

    /// Counts a call until the result is dropped.
    pub(crate) fn count(&self, address: SocketAddr, origin: &str) -> SlowCall {
        let address = key(address);
        let mut state = self.state();
        let slow = state.addresses.entry(address).or_default();
        slow.calls += 1;
        if slow.origins.len() < MAX_ORIGINS || slow.origins.contains_key(origin) {
            slow.origins.entry(origin.to_owned()).or_default().calls += 1;
        }
        SlowCall { calls: self.clone(), address, origin: origin.to_owned(), is_served: false }
    }

    /// Records that a call was answered. Ends the suspicion of the address if few calls hang there.
    fn answered(&self, address: SocketAddr, origin: &str) {
        let mut state = self.state();
        let few = state.few();
        let Some(known) = state.addresses.get_mut(&key(address)) else { return };
        if known.origins.len() < MAX_ORIGINS || known.origins.contains_key(origin) {
            let origin = known.origins.entry(origin.to_owned()).or_default();
            (origin.answers, origin.is_refused) = (true, false);
        }
        if known.calls < few.div_ceil(2) {
            known.suspected = None;
            if known.calls == 0 {
                state.addresses.remove(&key(address));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an address and a port: an IPv6 address counts by its first 64 bits, an IPv4-mapped one as IPv4.
fn key(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip @ IpAddr::V4(_) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// A call under way.
pub(crate) struct Watch {
    calls: SlowCalls,
    address: SocketAddr,
    origin: String,
    /// When it counts, if it does not yet.
    slow_at: Instant,
    call: Option<SlowCall>,
}

impl Watch {
    /// Counts the call as slow once a second has passed since its beginning. Never returns.
    pub(crate) async fn becomes_slow(&mut self) {
        if self.call.is_none() {
            sleep_until(self.slow_at).await;
            self.call = Some(self.calls.count(self.address, &self.origin));
        }
        pending::<()>().await;
    }

    /// Ends the call, because the connection was made.
    pub(crate) fn connected(self) {
        if let Some(mut call) = self.call {
            call.is_served = true;
        }
    }

    /// Ends the call, because the whole response has come, and records that the origin answers at the address.
    pub(crate) fn answered(self) {
        let Self { calls, address, origin, call, .. } = self;
        if let Some(mut call) = call {
            call.is_served = true;
        }
        calls.answered(address, &origin);
    }
}

/// A call that counts.
pub(crate) struct SlowCall {
    calls: SlowCalls,
    address: SocketAddr,
    origin: String,
    /// Whether what was waited for came.
    is_served: bool,
}

impl Drop for SlowCall {
    fn drop(&mut self) {
        let mut state = self.calls.state();
        let Some(slow) = state.addresses.get_mut(&self.address) else { return };
        slow.calls -= 1;
        if let Some(origin) = slow.origins.get_mut(&self.origin) {
            origin.calls = origin.calls.saturating_sub(1);
            origin.answers &= self.is_served;
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
        (0..count).map(|n| calls.count(address(port), &format!("http://{n}.example"))).collect()
    }

    #[test]
    fn an_address_is_crowded_once_its_slow_calls_hold_half_of_what_others_leave_free() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        let slow = begin(&calls, 1, 170);
        let _other = calls.count(address(2), "http://other.example");
        // 171 of 512 are slow, and of the others more or fewer are free.
        assert!(calls.crowded(172, false, now).is_empty());
        assert!(calls.may_connect(address(1), "http://0.example"));
        assert_eq!(calls.crowded(170, false, now).len(), 170);
        assert!(!calls.may_connect(address(1), "http://0.example"));
        assert!(!calls.may_connect(address(1), "http://new.example"), "too many to try one more");
        assert!(calls.may_connect(address(2), "http://0.example"), "another address has room");
        calls.refused(address(1), "http://new.example");
        assert_eq!(calls.crowded(170, false, now).len(), 171, "it is known now where that origin leads");
        drop(slow);
    }

    #[test]
    fn an_address_that_was_crowded_has_few_places_until_few_calls_hang() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        assert!(calls.watch(address(1), "http://0.example").call.is_none(), "it is not suspected");
        let mut slow = begin(&calls, 1, 300);
        assert!(!calls.crowded(0, false, now).is_empty());
        slow.truncate(64);
        assert!(
            !calls.crowded(400, false, now).is_empty() && !calls.may_connect(address(1), "http://0.example")
        );
        slow.truncate(63);
        assert!(
            calls.crowded(400, false, now).is_empty() && calls.may_connect(address(1), "http://0.example")
        );
        let watch = calls.watch(address(1), "http://a.example");
        assert!(!calls.crowded(400, false, now).is_empty(), "a new call counts at once");

        watch.answered();
        assert!(calls.watch(address(1), "http://b.example").call.is_some(), "one answer changes nothing");
        slow.truncate(31);
        calls.watch(address(1), "http://a.example").answered();
        assert!(calls.watch(address(1), "http://b.example").call.is_none());
        drop(slow);
        assert!(calls.state().addresses.is_empty());
    }

    #[test]
    fn an_origin_that_answers_is_not_held_up_by_a_neighbour_at_its_address() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        let _slow: Vec<_> = (0..300).map(|_| calls.count(address(1), "http://hangs.example")).collect();
        assert_eq!(calls.crowded(100, false, now).len(), 1);
        calls.watch(address(1), "http://good.example").answered();
        let _more: Vec<_> = (0..200).map(|_| calls.watch(address(1), "http://good.example")).collect();
        assert!(calls.may_connect(address(1), "http://good.example"));
        assert_eq!(
            calls.state().addresses[&address(1)].calls,
            300,
            "calls that are answered soon do not count"
        );
        assert!(!calls.crowded(100, false, now).contains("http://good.example"));
        // One that is new tries a single call, while few of all calls hang.
        let (calls, few) = (SlowCalls::new(512), 65);
        let _slow: Vec<_> = (0..few).map(|_| calls.count(address(1), "http://hangs.example")).collect();
        assert_eq!(calls.crowded(0, false, now).len(), 1);
        assert!(calls.may_connect(address(1), "http://new.example"));
        let _try = calls.watch(address(1), "http://new.example");
        assert!(!calls.may_connect(address(1), "http://new.example"), "it has a call there");
    }

    #[test]
    fn an_origin_that_is_alone_may_have_more_and_few_slow_calls_are_no_crowd() {
        let (calls, now) = (SlowCalls::new(512), Instant::now());
        let slow = begin(&calls, 1, 447);
        assert!(calls.crowded(65, true, now).is_empty());
        let _one_more = calls.count(address(1), "http://0.example");
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
        calls.refused(address(1), "http://new.example");
        assert_eq!(calls.crowded(0, false, now).len(), MAX_ORIGINS);
        drop((slow, many));
        assert_eq!(calls.state().addresses.len(), MAX_SUSPECTS, "no more are suspected without calls");
        assert!(calls.crowded(8, false, Instant::now() + SUSPECTED).is_empty());
        assert!(calls.state().addresses.is_empty());
    }

    #[test]
    fn one_address_is_one_however_it_is_written_and_so_is_a_network_of_ipv6() {
        let parsed = |text: &str| key(text.parse().unwrap());
        assert_eq!(parsed("[::ffff:192.0.2.1]:80"), parsed("192.0.2.1:80"));
        assert_eq!(parsed("[2001:db8::1]:80"), parsed("[2001:db8::ffff:1]:80"));
        assert_ne!(parsed("[2001:db8:0:1::1]:80"), parsed("[2001:db8::1]:80"));
        assert_ne!(parsed("192.0.2.1:80"), parsed("192.0.2.1:81"));
    }
}
