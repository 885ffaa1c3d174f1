//! `FairLimiter`: how many of something callers may have at a time, in all and each, so that one cannot hold them all;
//! and what counts as one caller, a `Peer` (address) or `Holder`.

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

/// A holder of permits: a peer, or a name under which calls come from any address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    Peer(Peer),
    /// A name, such as that of a tenant.
    Name(Box<str>),
}

impl From<Peer> for Holder {
    fn from(peer: Peer) -> Self {
        Self::Peer(peer)
    }
}

/// A limited number of permits. One holder may have at most half, rounded up, of the permits that the others leave, so
/// a holder that takes all it can get leaves half to the next one. Clones share the permits.
#[derive(Clone, Debug)]
pub struct FairLimiter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    taken: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    all: usize,
    by_holder: HashMap<Holder, usize>,
}

/// Why a permit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    AllTaken,
    /// The holder has this many, and may not have more.
    HolderHas(usize),
}

/// A permit, free again when it is dropped.
#[derive(Debug)]
pub struct Permit {
    limiter: FairLimiter,
    holder: Holder,
}

impl FairLimiter {
    /// At most `limit` permits.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { limit, taken: Mutex::default() }))
    }

    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// If all are taken, or the holder has as many as it may have.
    pub fn take(&self, holder: impl Into<Holder>) -> Result<Permit, NoPermit> {
        let holder = holder.into();
        let mut taken = self.lock();
        let held = taken.by_holder.get(&holder).copied().unwrap_or_default();
        if taken.all >= self.0.limit {
            return Err(NoPermit::AllTaken);
        }
        if held >= (self.0.limit - (taken.all - held)).div_ceil(2) {
            return Err(NoPermit::HolderHas(held));
        }
        taken.all += 1;
        *taken.by_holder.entry(holder.clone()).or_default() += 1;
        drop(taken);
        Ok(Permit { limiter: self.clone(), holder })
    }

    fn give_back(&self, holder: &Holder) {
        let mut taken = self.lock();
        taken.all -= 1;
        if let Entry::Occupied(mut held) = taken.by_holder.entry(holder.clone()) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.give_back(&self.holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The permits that a peer gets if it takes all it can.
    fn greedy(limiter: &FairLimiter, address: &str) -> Vec<Permit> {
        let peer = Peer::of(address.parse().unwrap());
        std::iter::from_fn(|| limiter.take(peer).ok()).collect()
    }

    #[test]
    fn a_peer_gets_half_of_what_the_others_leave() {
        let limiter = FairLimiter::new(100);
        let mut got = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].map(|peer| greedy(&limiter, peer));
        assert_eq!(got.each_ref().map(Vec::len), [50, 25, 13, 6]);
        assert_eq!(limiter.take(Peer::of("10.0.0.1".parse().unwrap())).err(), Some(NoPermit::HolderHas(50)));
        got[0].clear();
        assert_eq!(limiter.lock().by_holder.len(), 3, "nothing is kept of who has none");
        assert_eq!(greedy(&limiter, "10.0.0.2").len(), 41 - 25, "half of what three and four leave");
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let limiter = FairLimiter::new(10);
        let all: Vec<_> = (0..100).flat_map(|n| greedy(&limiter, &format!("10.0.1.{n}"))).collect();
        assert_eq!((all.len(), limiter.taken()), (10, 10));
        assert_eq!(limiter.take(Peer::of("10.0.2.1".parse().unwrap())).err(), Some(NoPermit::AllTaken));
    }

    #[test]
    fn one_peer_gets_half_rounded_up() {
        for (limit, half) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
            assert_eq!(greedy(&FairLimiter::new(limit), "10.0.0.1").len(), half, "{limit}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let limiter = FairLimiter::new(100);
        let got = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1", "::ffff:10.0.0.1", "10.0.0.1"];
        let got = got.map(|peer| greedy(&limiter, peer));
        assert_eq!(got.each_ref().map(Vec::len), [50, 0, 25, 13, 0]);
    }
}
