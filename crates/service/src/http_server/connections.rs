//! How many connections a server may have at a time, in all and from one address, so that one address cannot hold them
//! all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bits of an IPv6 address that identify a network; its hosts have as many addresses as they like.
const IPV6_NETWORK: u32 = 64;

/// The connections that a server may have at a time. Clones share them.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Limit>);

#[derive(Debug)]
enum Limit {
    /// More wait until one ends.
    Waiting(Arc<Semaphore>),
    /// More are refused.
    Fair(Fair),
}

#[derive(Debug)]
struct Fair {
    limit: usize,
    open: Mutex<Open>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    of: Option<(Connections, IpAddr)>,
}

impl Connections {
    /// At most `limit`. More wait until one ends.
    #[must_use]
    pub fn at_most(limit: usize) -> Self {
        Self(Arc::new(Limit::Waiting(Arc::new(Semaphore::new(limit)))))
    }

    /// At most `limit`, and from one address at most half of what the others leave. More are closed at once. So an
    /// address that takes what it can get leaves half to the next one.
    #[must_use]
    pub fn fair(limit: usize) -> Self {
        let fair = Fair { limit, open: Mutex::default(), refused: AtomicU64::new(0) };
        Self(Arc::new(Limit::Fair(fair)))
    }

    /// How many more there may be in all.
    #[must_use]
    pub fn free(&self) -> usize {
        match &*self.0 {
            Limit::Waiting(permits) => permits.available_permits(),
            Limit::Fair(fair) => fair.limit.saturating_sub(fair.all()),
        }
    }

    /// How many there are; 0 if they are not counted.
    #[must_use]
    pub fn open(&self) -> usize {
        if let Limit::Fair(fair) = &*self.0 { fair.all() } else { 0 }
    }

    /// How many were refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        if let Limit::Fair(fair) = &*self.0 { fair.refused.load(Ordering::Relaxed) } else { 0 }
    }

    /// Accepts a connection. `None` if it was refused.
    pub(super) async fn accept(&self, listener: &TcpListener) -> io::Result<Option<(TcpStream, Place)>> {
        match &*self.0 {
            Limit::Waiting(permits) => {
                let permit = Arc::clone(permits).acquire_owned().await.expect("it is never closed");
                Ok(Some((listener.accept().await?.0, Place { _permit: Some(permit), of: None })))
            }
            Limit::Fair(fair) => {
                let (stream, address) = listener.accept().await?;
                let peer = peer(address.ip());
                if fair.take(peer) {
                    return Ok(Some((stream, Place { _permit: None, of: Some((self.clone(), peer)) })));
                }
                fair.refused.fetch_add(1, Ordering::Relaxed);
                let open = fair.all();
                tracing::warn!(%peer, open, "a connection is refused: its address has as many as it may have");
                Ok(None)
            }
        }
    }
}

impl Fair {
    fn take(&self, peer: IpAddr) -> bool {
        let mut open = self.open();
        let held = open.by_peer.get(&peer).copied().unwrap_or_default();
        let left = self.limit.saturating_sub(open.all - held);
        if open.all >= self.limit || held >= (left / 2).max(1) {
            return false;
        }
        open.all += 1;
        *open.by_peer.entry(peer).or_default() += 1;
        true
    }

    fn give_back(&self, peer: IpAddr) {
        let mut open = self.open();
        open.all -= 1;
        if let Entry::Occupied(mut held) = open.by_peer.entry(peer) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }

    fn all(&self) -> usize {
        self.open().all
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((connections, peer)) = &self.of
            && let Limit::Fair(fair) = &*connections.0
        {
            fair.give_back(*peer);
        }
    }
}

/// What counts as one address.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << (128 - IPV6_NETWORK));
            Ipv6Addr::from_bits(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fair(limit: usize) -> Fair {
        Fair { limit, open: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// How many connections an address gets that takes all it can.
    fn greedy(fair: &Fair, address: &str) -> usize {
        let peer = peer(address.parse().unwrap());
        std::iter::repeat_with(|| fair.take(peer)).take_while(|taken| *taken).count()
    }

    #[test]
    fn an_address_gets_half_of_what_the_others_leave() {
        let fair = fair(100);
        let got = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].map(|address| greedy(&fair, address));
        assert_eq!(got, [50, 25, 12, 6]);
        assert_eq!(greedy(&fair, "10.0.0.1"), 0);
        for _ in 0..50 {
            fair.give_back("10.0.0.1".parse().unwrap());
        }
        assert_eq!(fair.open().by_peer.len(), 3, "nothing is kept of who has none");
        assert_eq!(greedy(&fair, "10.0.0.2"), 41 - 25, "half of what three and four leave");
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let fair = fair(10);
        let all: usize = (0..100).map(|n| greedy(&fair, &format!("10.0.1.{n}"))).sum();
        assert_eq!((all, fair.all()), (10, 10));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let fair = fair(100);
        assert_eq!((greedy(&fair, "2001:db8::1"), greedy(&fair, "2001:db8::ffff:1")), (50, 0));
        assert_eq!(greedy(&fair, "2001:db8:0:1::1"), 25);
        assert_eq!((greedy(&fair, "::ffff:10.0.0.1"), greedy(&fair, "10.0.0.1")), (12, 0));
    }
}
