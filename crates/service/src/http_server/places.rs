//! `Places`: how many of something callers may have at a time, in all and from one address, so that one address cannot
//! hold them all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The bits of an IPv6 address that identify a network; its hosts have as many addresses as they like.
const IPV6_NETWORK: u32 = 64;

/// What counts as one address of a caller: an IPv4 address, or a network of 64 bits of IPv6. An extractor of the
/// requests that came through [`serve`](super::serve).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// The peer at an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << (128 - IPV6_NETWORK));
                Ipv6Addr::from_bits(network).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl Peer {
    /// The peer of a request; 0.0.0.0 for requests that were made within the process.
    #[must_use]
    pub fn of_request(parts: &Parts) -> Self {
        parts.extensions.get().copied().unwrap_or(Self(Ipv4Addr::UNSPECIFIED.into()))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of_request(parts))
    }
}

/// Who holds places: a peer, or who calls from wherever under a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Claimant {
    /// An address.
    Peer(Peer),
    /// A name, such as that of a tenant.
    Name(Box<str>),
}

impl From<Peer> for Claimant {
    fn from(peer: Peer) -> Self {
        Self::Peer(peer)
    }
}

/// A limited number of places, of which one claimant may have at most half, rounded up, of those that the others leave.
/// So one that takes what it can get leaves half to the next one. Clones share them.
#[derive(Clone, Debug)]
pub struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_claimant: HashMap<Claimant, usize>,
}

/// Why there is no place for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// All are taken.
    AllTaken,
    /// Who asks has this number of them, and may not have more.
    ClaimantHas(usize),
}

/// One of the places, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    claimant: Claimant,
}

impl Places {
    /// At most `limit` places.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { limit, taken: Mutex::default() }))
    }

    /// How many there are.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// Takes a place for somebody.
    ///
    /// # Errors
    /// If all are taken, or this one has as many as it may have.
    pub fn take(&self, claimant: impl Into<Claimant>) -> Result<Place, NoPlace> {
        let claimant = claimant.into();
        let mut taken = self.lock();
        let held = taken.by_claimant.get(&claimant).copied().unwrap_or_default();
        if taken.all >= self.0.limit {
            return Err(NoPlace::AllTaken);
        }
        if held >= (self.0.limit - (taken.all - held)).div_ceil(2) {
            return Err(NoPlace::ClaimantHas(held));
        }
        taken.all += 1;
        *taken.by_claimant.entry(claimant.clone()).or_default() += 1;
        drop(taken);
        Ok(Place { places: self.clone(), claimant })
    }

    fn give_back(&self, claimant: &Claimant) {
        let mut taken = self.lock();
        taken.all -= 1;
        if let Entry::Occupied(mut held) = taken.by_claimant.entry(claimant.clone()) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(&self.claimant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places that a peer gets that takes all it can.
    fn greedy(places: &Places, address: &str) -> Vec<Place> {
        let peer = Peer::of(address.parse().unwrap());
        std::iter::from_fn(|| places.take(peer).ok()).collect()
    }

    #[test]
    fn a_peer_gets_half_of_what_the_others_leave() {
        let places = Places::new(100);
        let mut got = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].map(|peer| greedy(&places, peer));
        assert_eq!(got.each_ref().map(Vec::len), [50, 25, 13, 6]);
        assert_eq!(places.take(Peer::of("10.0.0.1".parse().unwrap())).err(), Some(NoPlace::ClaimantHas(50)));
        got[0].clear();
        assert_eq!(places.lock().by_claimant.len(), 3, "nothing is kept of who has none");
        assert_eq!(greedy(&places, "10.0.0.2").len(), 41 - 25, "half of what three and four leave");
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let places = Places::new(10);
        let all: Vec<_> = (0..100).flat_map(|n| greedy(&places, &format!("10.0.1.{n}"))).collect();
        assert_eq!((all.len(), places.taken()), (10, 10));
        assert_eq!(places.take(Peer::of("10.0.2.1".parse().unwrap())).err(), Some(NoPlace::AllTaken));
    }

    #[test]
    fn one_peer_gets_half_rounded_up() {
        for (limit, half) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
            assert_eq!(greedy(&Places::new(limit), "10.0.0.1").len(), half, "{limit}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let places = Places::new(100);
        let got = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1", "::ffff:10.0.0.1", "10.0.0.1"];
        let got = got.map(|peer| greedy(&places, peer));
        assert_eq!(got.each_ref().map(Vec::len), [50, 0, 25, 13, 0]);
    }
}
