//! Connects to the addresses of a receiver in parallel, each a little later than the one before, until one connection
//! is made ("happy eyeballs", RFC 8305). So a dead address costs a short wait and not the attempt. `connector` has
//! looked up and judged the addresses; each connection is counted by `slow_calls` while it is being made.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::OptionFuture;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::error::{PostError, is_out_of_resources};
use crate::slow_calls::{SlowCalls, Watch};

/// The error on Linux when no local port is free for a destination. Of an IPv6 address: this machine has none.
const EADDRNOTAVAIL: i32 = 99;
/// How many addresses of a receiver are tried.
const MAX_ADDRESSES: usize = 8;
/// After this time without a connection the next address is tried beside (RFC 8305, section 5).
const NEXT: Duration = Duration::from_millis(250);

/// What went wrong, and the error that says more.
pub(super) type Failed = (PostError, Option<io::Error>);

/// A connection that is to be made.
pub(super) struct Race<'a> {
    pub(super) slow_calls: &'a SlowCalls,
    pub(super) origin: &'a str,
    pub(super) port: u16,
}

/// The connection that was made first.
pub(super) struct Connected {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    /// Counts what still has to come.
    pub(super) watch: Watch,
}

impl Race<'_> {
    /// Connects to one of these addresses, or of those that `later` brings, up to [`MAX_ADDRESSES`]. An address has 250
    /// ms before the next is tried too, which follows at once if it fails. Fails with the most telling error of all, or
    /// at once if a later address is forbidden.
    pub(super) async fn run(
        &self,
        addresses: Vec<IpAddr>,
        later: Option<impl Future<Output = Result<Vec<IpAddr>, PostError>>>,
    ) -> Result<Connected, Failed> {
        let mut entrants = Entrants { left: in_turn(addresses), begun: 0, crowded: None };
        let (mut is_later, mut later) = (later.is_some(), pin!(OptionFuture::from(later)));
        let mut connecting: FuturesUnordered<_> = self.next(&mut entrants).into_iter().collect();
        let (mut next_at, mut failed) = (Instant::now() + NEXT, None);
        loop {
            tokio::select! {
                Some(connected) = connecting.next() => match connected {
                    Ok(connected) => return Ok(connected),
                    Err(error) => failed = Some(clearer(failed, error)),
                },
                found = &mut later, if is_later => {
                    is_later = false;
                    match found {
                        Some(Ok(found)) => entrants.add(found),
                        Some(Err(PostError::Forbidden)) => return Err((PostError::Forbidden, None)),
                        Some(Err(_)) | None => {}
                    }
                    if !connecting.is_empty() {
                        continue;
                    }
                }
                () = sleep_until(next_at), if entrants.has_more() && !connecting.is_empty() => {}
                else => return Err(failed.unwrap_or_else(|| self.none(&entrants))),
            }
            if let Some(next) = self.next(&mut entrants) {
                connecting.push(next);
                next_at = Instant::now() + NEXT;
            }
        }
    }

    /// Begins the connection to the next address that has room for one more call; `None` if there is none.
    fn next(
        &self,
        entrants: &mut Entrants,
    ) -> Option<impl Future<Output = Result<Connected, Failed>> + use<'_>> {
        while entrants.has_more() {
            let address = SocketAddr::new(entrants.left.pop_front()?, self.port);
            if self.slow_calls.may_connect(address, self.origin) {
                entrants.begun += 1;
                return Some(self.connect(address));
            }
            entrants.crowded = Some(address);
        }
        None
    }

    async fn connect(&self, address: SocketAddr) -> Result<Connected, Failed> {
        let mut watch = self.slow_calls.watch(address, self.origin);
        let connected = tokio::select! {
            biased;
            connected = TcpStream::connect(address) => connected,
            () = watch.becomes_slow() => unreachable!("it does not end"),
        };
        match connected {
            Ok(stream) => Ok(Connected { stream, peer: address, watch }),
            Err(error) => Err((kind(&error, address), Some(error))),
        }
    }

    /// The error if no connection was tried: all addresses are crowded, which is counted, or there are none.
    fn none(&self, entrants: &Entrants) -> Failed {
        match entrants.crowded {
            Some(address) => {
                self.slow_calls.refused(address, self.origin);
                (PostError::Crowded, None)
            }
            None => (PostError::Dns, None),
        }
    }
}

/// The addresses that are not tried yet, in their order.
struct Entrants {
    left: VecDeque<IpAddr>,
    /// How many were tried.
    begun: usize,
    /// The last one that has no room for one more call.
    crowded: Option<SocketAddr>,
}

impl Entrants {
    fn has_more(&self) -> bool {
        !self.left.is_empty() && self.begun < MAX_ADDRESSES
    }

    /// Adds addresses that were found later, alternating by family with those that are left.
    fn add(&mut self, mut found: Vec<IpAddr>) {
        found.extend(&self.left);
        self.left = in_turn(found);
    }
}

/// Orders addresses so that the families alternate, beginning with that of the first one (RFC 8305, section 4).
fn in_turn(addresses: Vec<IpAddr>) -> VecDeque<IpAddr> {
    let is_first = addresses.first().is_some_and(IpAddr::is_ipv4);
    let (own, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == is_first);
    let (mut own, mut other) = (own.into_iter(), other.into_iter());
    let turns = std::iter::from_fn(|| match (own.next(), other.next()) {
        (None, None) => None,
        (one, other) => Some(one.into_iter().chain(other)),
    });
    turns.flatten().collect()
}

/// The more telling of two errors: a shortage of this machine before a refusal of the receiver before any other, which
/// may only mean that this machine has no route to one of the families. Of two of the same rank, the first.
fn clearer(first: Option<Failed>, second: Failed) -> Failed {
    let rank = |(kind, _): &Failed| match kind {
        PostError::Ports | PostError::Local => 2,
        PostError::Refused => 1,
        _ => 0,
    };
    match first {
        Some(first) if rank(&first) >= rank(&second) => first,
        _ => second,
    }
}

fn kind(error: &io::Error, address: SocketAddr) -> PostError {
    match error.raw_os_error() {
        _ if is_out_of_resources(error) => PostError::Local,
        Some(EADDRNOTAVAIL) if address.is_ipv4() => PostError::Ports,
        _ if error.kind() == io::ErrorKind::ConnectionRefused => PostError::Refused,
        _ => PostError::Connect,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<IpAddr> {
        text.split(' ').map(|one| one.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns_and_those_that_come_later_too() {
        assert_eq!(
            in_turn(parsed("10.0.0.1 10.0.0.2 10.0.0.3 ::1")),
            parsed("10.0.0.1 ::1 10.0.0.2 10.0.0.3")
        );
        assert_eq!(in_turn(parsed("::1 10.0.0.1 ::2")), parsed("::1 10.0.0.1 ::2"));
        assert_eq!(in_turn(Vec::new()), [] as [IpAddr; 0]);
        let mut entrants =
            Entrants { left: parsed("10.0.0.2 10.0.0.3").into(), begun: MAX_ADDRESSES - 1, crowded: None };
        entrants.add(parsed("::1 ::2"));
        assert_eq!(entrants.left, parsed("::1 10.0.0.2 ::2 10.0.0.3"));
        assert!(entrants.has_more());
        entrants.begun += 1;
        assert!(!entrants.has_more(), "eight are tried at most");
    }

    #[test]
    fn of_several_errors_the_one_that_says_most_is_kept() {
        let of = |kinds: &[PostError]| {
            let failed = kinds.iter().fold(None, |failed, kind| Some(clearer(failed, (*kind, None))));
            failed.map(|(kind, _)| kind)
        };
        for (kinds, expected) in [
            ([PostError::Connect, PostError::Refused], PostError::Refused),
            ([PostError::Refused, PostError::Connect], PostError::Refused),
            ([PostError::Refused, PostError::Local], PostError::Local),
            ([PostError::Ports, PostError::Local], PostError::Ports),
        ] {
            assert_eq!(of(&kinds), Some(expected), "{kinds:?}");
        }
    }

    #[test]
    fn an_error_is_of_this_machine_or_of_the_receiver() {
        let [four, six] = ["10.0.0.1:1", "[fd00::1]:1"].map(|text| text.parse().unwrap());
        let of = |code, address| kind(&io::Error::from_raw_os_error(code), address);
        // ECONNREFUSED, ENETUNREACH, EMFILE.
        for (code, expected) in [(111, PostError::Refused), (101, PostError::Connect), (24, PostError::Local)]
        {
            assert_eq!((of(code, four), of(code, six)), (expected, expected), "{code}");
        }
        assert_eq!((of(EADDRNOTAVAIL, four), of(EADDRNOTAVAIL, six)), (PostError::Ports, PostError::Connect));
    }
}
