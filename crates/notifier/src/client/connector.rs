//! Makes a connection to a receiver: finds its addresses, connects to one of them, and makes it a TLS one for https.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tower::Service;

use super::error::{PostError, is_out_of_resources};
use super::gate::Gate;
use super::metered::{MeteredStream, TooMuch};
use super::resolver::Resolver;
use super::stream::Stream;
use super::tls::{self, Tls, is_http2};
use crate::credentials::Identity;
use crate::slow_calls::SlowCalls;

/// The error on Linux when no local port is free for a destination. Of an IPv6 address: this machine has none.
const EADDRNOTAVAIL: i32 = 99;
/// How many of its addresses are tried.
const MAX_ADDRESSES: usize = 8;
/// After this time without a connection the next address is tried beside (RFC 8305, section 5).
const NEXT: Duration = Duration::from_millis(250);
/// How long it may take, also when the attempt it was made for has found another connection.
const LONGEST: Duration = Duration::from_secs(30);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[error("no connection to {host}: {}", kind.name())]
pub(super) struct ConnectError {
    pub(super) kind: PostError,
    host: String,
    source: Option<io::Error>,
}

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    parts: Arc<Parts>,
    tls: Arc<Tls>,
}

struct Parts {
    resolver: Resolver,
    gate: Gate,
    slow_calls: SlowCalls,
}

impl Connector {
    pub(super) fn new(resolver: Resolver, gate: Gate, tls: Tls, slow_calls: SlowCalls) -> Self {
        Self { parts: Arc::new(Parts { resolver, gate, slow_calls }), tls: Arc::new(tls) }
    }

    /// One whose TLS connections use an identity.
    ///
    /// # Errors
    /// If it cannot be used.
    pub(super) fn with_identity(&self, identity: &Identity) -> Result<Self, PostError> {
        let tls = self.tls.with_identity(identity).map_err(|error| {
            tracing::warn!(%error, "the certificates of a credential cannot be used, so its callbacks wait");
            PostError::Unsigned
        })?;
        Ok(Self { parts: Arc::clone(&self.parts), tls: Arc::new(tls) })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { parts, tls } = self.clone();
        async move {
            let failed = |(kind, source)| ConnectError { kind, host: host(&uri).to_owned(), source };
            match timeout(LONGEST, parts.connect(&uri, &tls)).await {
                Ok(connected) => connected.map(TokioIo::new).map_err(failed),
                Err(_elapsed) => Err(failed((PostError::Timeout, None))),
            }
        }
        .boxed()
    }
}

/// What went wrong, and the error that says more.
type Failed = (PostError, Option<io::Error>);

impl Parts {
    async fn connect(&self, uri: &Uri, tls: &Tls) -> Result<Stream, Failed> {
        let tls = Some(tls).filter(|_| uri.scheme() == Some(&Scheme::HTTPS));
        let host = host(uri);
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        let addresses = self.addresses(uri, host, port).await.map_err(|kind| (kind, None))?;
        let origin = origin(uri);
        let at = |address: &IpAddr| SocketAddr::new(*address, port);
        let mut addresses = in_turn(&addresses);
        let last = addresses.last().map(at);
        addresses.retain(|address| self.slow_calls.may_connect(at(address), &origin));
        let Some(first) = addresses.first().map(at) else {
            last.inspect(|last| self.slow_calls.refused(*last, &origin));
            return Err((PostError::Crowded, None));
        };
        let mut watch = self.slow_calls.watch(first, &origin);
        let connected = tokio::select! {
            biased;
            connected = connect_with(host, port, tls, &addresses) => connected,
            () = watch.becomes_slow() => unreachable!("it does not end"),
        };
        if connected.is_ok() {
            watch.connected();
        }
        connected
    }

    /// The addresses of a host, all of which are allowed. They are looked up once: what is judged is what is used.
    async fn addresses(&self, uri: &Uri, host: &str, port: u16) -> Result<Vec<IpAddr>, PostError> {
        let is_allowed = self.gate.judge_url(uri)?;
        let addresses = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => self.resolver.addresses(host).await?,
        };
        if is_allowed {
            self.gate.judge_addresses(uri, &addresses, port)?;
        }
        self.gate.refuse_own(uri, &addresses, port, &self.resolver).await?;
        Ok(addresses)
    }
}

/// Connects to one of these addresses, with TLS or without.
async fn connect_with(
    host: &str,
    port: u16,
    tls: Option<&Tls>,
    addresses: &[IpAddr],
) -> Result<Stream, Failed> {
    let stream = connect_to_any(addresses, port).await;
    let (stream, peer) = stream.map_err(|(kind, error)| (kind, Some(error)))?;
    // Fails only if the connection has ended, which the request notices.
    let _ = stream.set_nodelay(true);
    let stream = MeteredStream::new(stream, peer);
    let Some(tls) = tls else { return Ok(Stream::plain(stream)) };
    match tls.connect(host, stream).await {
        Ok(stream) => {
            let is_http2 = is_http2(&stream);
            Ok(Stream::tls(stream, is_http2))
        }
        Err(error) => {
            tracing::debug!(host, %error, "the TLS handshake failed");
            let is_too_much = error.get_ref().is_some_and(|inner| inner.is::<TooMuch>());
            let kind = match () {
                () if is_out_of_resources(&error) => PostError::Local,
                () if is_too_much => PostError::ResponseTooLarge,
                () => tls::refused(&error).unwrap_or(PostError::Tls),
            };
            Err((kind, Some(error)))
        }
    }
}

/// Scheme and authority of a URL.
pub(super) fn origin(uri: &Uri) -> String {
    let (scheme, authority) = (uri.scheme_str(), uri.authority().map(Authority::as_str));
    [scheme.unwrap_or_default(), "://", authority.unwrap_or_default()].concat()
}

/// The host of a URL, an IPv6 address without its brackets.
fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// The families by turns, beginning with that of the first address (RFC 8305, section 4).
fn in_turn(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let Some(first) = addresses.first() else { return Vec::new() };
    let (mut own, mut other): (Vec<_>, Vec<_>) =
        addresses.iter().rev().partition(|address| address.is_ipv4() == first.is_ipv4());
    let turns = std::iter::from_fn(|| match (own.pop(), other.pop()) {
        (None, None) => None,
        (one, other) => Some(one.into_iter().chain(other)),
    });
    turns.flatten().take(MAX_ADDRESSES).collect()
}

/// The first connection that is made. Each address has a head start before the next, which follows at once if it fails.
async fn connect_to_any(
    addresses: &[IpAddr],
    port: u16,
) -> Result<(TcpStream, SocketAddr), (PostError, io::Error)> {
    let mut left = addresses.iter().map(|address| connect_to(SocketAddr::new(*address, port)));
    let mut connecting: FuturesUnordered<_> = left.next().into_iter().collect();
    let mut failed: Option<(PostError, io::Error)> = None;
    loop {
        let is_last = left.len() == 0;
        tokio::select! {
            Some(connected) = connecting.next() => match connected {
                Ok(stream) => return Ok(stream),
                // The first address says most, but for what is temporary and of this machine.
                Err(error) if failed.is_none() || is_ours(error.0) => failed = Some(error),
                Err(_) => {}
            },
            () = sleep(NEXT), if !is_last && !connecting.is_empty() => {}
            else => return Err(failed.unwrap_or_else(|| (PostError::Dns, io::Error::other("no address")))),
        }
        connecting.extend(left.next());
    }
}

fn is_ours(kind: PostError) -> bool {
    matches!(kind, PostError::Ports | PostError::Local)
}

async fn connect_to(address: SocketAddr) -> Result<(TcpStream, SocketAddr), (PostError, io::Error)> {
    match TcpStream::connect(address).await {
        Ok(stream) => Ok((stream, address)),
        Err(error) => Err((kind(&error, address), error)),
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
    use ringback_core::job::Callback;
    use ringback_egress::{Forbidden, Guard};

    use super::*;

    #[test]
    fn families_take_turns_and_no_more_than_eight_addresses_are_tried() {
        let parsed = |text: &str| text.split(' ').map(|one| one.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(
            in_turn(&parsed("10.0.0.1 10.0.0.2 10.0.0.3 ::1")),
            parsed("10.0.0.1 ::1 10.0.0.2 10.0.0.3")
        );
        assert_eq!(in_turn(&parsed("::1 10.0.0.1 ::2")), parsed("::1 10.0.0.1 ::2"));
        assert_eq!(in_turn(&[]), [] as [IpAddr; 0]);
        assert_eq!(in_turn(&vec![IpAddr::from([10, 0, 0, 1]); 20]).len(), MAX_ADDRESSES);
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

    #[test]
    fn the_host_of_a_url_is_an_address_or_a_name() {
        for (url, expected) in [
            ("http://a.example:81/x", "a.example"),
            ("https://[::1]:8/", "::1"),
            ("http://1.2.3.4/", "1.2.3.4"),
        ] {
            assert_eq!(host(&url.parse().unwrap()), expected);
        }
    }

    #[test]
    fn random_hosts_are_connected_to_as_the_guard_judges_them() {
        let samples = [
            "http://127.0.0.1/",
            "http://0x7f.1:80/",
            "https://017700000001:443/a?b",
            "http://[::ffff:127.0.0.1]:8080/",
            "http://%31%32%37.0.0.1/",
            "http://127。0。0。1/",
            "https://example.com.:8443/x?y=%00|^",
            "http://münchen.example/",
            "http://[fe80::1]:1/",
        ];
        let guard = Guard::default();
        ringback_fuzz::run_texts(&samples, |text| {
            let Ok(callback) = Callback::parse(text) else { return };
            // A URL that the client cannot take is not connected to.
            let Ok(uri) = Uri::try_from(callback.to_string()) else { return };
            assert_eq!(origin(&uri), callback.origin());
            let judged = guard.judge_origin(&origin(&uri));
            let url = url::Url::parse(text).expect("it was parsed");
            let port = uri.port_u16().unwrap_or(if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 });
            assert_eq!(Some(port), url.port_or_known_default(), "{uri}");
            let connected = host(&uri).parse::<IpAddr>();
            match url.host().expect("a host") {
                url::Host::Ipv4(address) => assert_eq!(connected, Ok(address.into()), "{uri}"),
                url::Host::Ipv6(address) => assert_eq!(connected, Ok(address.into()), "{uri}"),
                url::Host::Domain(name) => assert_eq!((connected.is_err(), host(&uri)), (true, name)),
            }
            if let Ok(address) = connected
                && !matches!(judged, Err(Forbidden::Port(_)))
            {
                assert_eq!(judged, guard.judge_addresses(&[address], port), "{uri}");
            }
        });
    }
}
