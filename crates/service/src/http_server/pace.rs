//! `Pace`: when connections of an address begin to be served. Thousands that come at once would else take all threads
//! until each has been read, and requests of open connections would wait behind them. Pure.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::fair_limiter::Peer;

/// How many connections of an address begin at once.
const AT_ONCE: u32 = 64;
/// The time between two further ones.
const APART: Duration = Duration::from_millis(1);
/// The longest wait. Beyond 2,064 connections at once more of them begin together.
const LONGEST: Duration = Duration::from_secs(2);
/// Addresses are forgotten when there are so many.
const MANY: usize = 1_024;

/// The addresses whose connections came lately.
#[derive(Debug)]
pub(super) struct Pace {
    /// When all connections that have come would have begun, one after the other (a leaky bucket).
    by_peer: HashMap<Peer, Instant>,
    /// How many addresses are known before those without a burst are forgotten.
    most: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { by_peer: HashMap::new(), most: MANY }
    }
}

impl Pace {
    /// Counts a connection and returns its wait: none for 64 at once, 1 ms more for each further one, at most 2 s.
    pub(super) fn wait(&mut self, peer: Peer, now: Instant) -> Duration {
        if self.by_peer.len() >= self.most {
            self.by_peer.retain(|_, last| *last > now);
            self.most = MANY.max(2 * self.by_peer.len());
        }
        let last = self.by_peer.entry(peer).or_insert(now);
        *last = ((*last).max(now) + APART).min(now + AT_ONCE * APART + LONGEST);
        last.saturating_duration_since(now).saturating_sub(AT_ONCE * APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u32) -> Peer {
        Peer::of(n.to_be_bytes().into())
    }

    #[test]
    fn those_of_one_address_begin_apart_after_the_first() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let waits: Vec<_> = (0..1_064).map(|_| pace.wait(peer(1), now)).collect();
        assert!(waits[..64].iter().all(Duration::is_zero));
        assert_eq!((waits[64], waits[1_063]), (APART, Duration::from_secs(1)));
        assert!(pace.wait(peer(2), now).is_zero(), "of another address");
        let later = now + Duration::from_millis(500);
        assert_eq!(pace.wait(peer(1), later), Duration::from_millis(500) + APART);
        assert!(pace.wait(peer(1), now + Duration::from_secs(2)).is_zero());
        let longest = (0..10_000).map(|_| pace.wait(peer(1), now + Duration::from_secs(2))).max();
        assert_eq!(longest, Some(LONGEST));
    }

    #[test]
    fn addresses_are_forgotten_when_their_connections_have_begun() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for n in 0..100_000 {
            pace.wait(peer(n), now + n * Duration::from_millis(1));
        }
        assert!(pace.by_peer.len() <= MANY, "{}", pace.by_peer.len());
    }
}
