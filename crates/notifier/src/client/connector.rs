//! Makes a connection to a receiver: looks up its addresses, has the guard judge them, connects to one of them, and
//! does the TLS handshake for https.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

use super::error::{PostError, is_out_of_resources};
use super::gate::Gate;
use super::metered::{MeteredStream, TooMuch};
use super::race::{Connected, Failed, Race};
use super::resolver::{Resolution, Resolver};
use super::stream::Stream;
use super::tls::{self, Tls, is_http2};
use crate::credentials::Identity;
use crate::slow_calls::SlowCalls;

/// How long making a connection may take, also after its attempt has found another one.
const LONGEST: Duration = Duration::from_secs(30);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[error("no connection to {host}: {kind}")]
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

    /// The same connector with other certificate authorities.
    pub(super) fn with_tls(&self, tls: Tls) -> Self {
        Self { parts: Arc::clone(&self.parts), tls: Arc::new(tls) }
    }

    /// The same connector, whose TLS connections use an identity.
    ///
    /// # Errors
    /// [`PostError::Unsigned`], which is logged, if its certificates cannot be used.
    pub(super) fn with_identity(&self, identity: &Identity) -> Result<Self, PostError> {
        let tls = self.tls.with_identity(identity).map_err(|error| {
            tracing::warn!(%error, "the certificates of a credential cannot be used, so its callbacks wait");
            PostError::Unsigned
        })?;
        Ok(self.with_tls(tls))
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

impl Parts {
    async fn connect(&self, uri: &Uri, tls: &Tls) -> Result<Stream, Failed> {
        let tls = Some(tls).filter(|_| uri.scheme() == Some(&Scheme::HTTPS));
        let host = host(uri);
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        self.gate.judge_url(uri).map_err(|kind| (kind, None))?;
        // Looked up once: what is judged is what is used.
        let judged = async |addresses: Vec<IpAddr>| {
            self.gate.judge_addresses(uri, &addresses, port)?;
            self.gate.refuse_own(uri, &addresses, port, &self.resolver).await?;
            Ok(addresses)
        };
        let found = match host.parse() {
            Ok(address) => Ok(Resolution { addresses: vec![address], later: None }),
            Err(_) => self.resolver.find(host).await,
        };
        let Resolution { addresses, later } = found.map_err(|kind| (kind, None))?;
        let addresses = judged(addresses).await.map_err(|kind| (kind, None))?;
        let later = later.map(async |later| judged(later.await?).await);
        let origin = origin(uri);
        let race = Race { slow_calls: &self.slow_calls, origin: &origin, port };
        let Connected { stream, peer, mut watch } = race.run(addresses, later).await?;
        let connected = tokio::select! {
            biased;
            connected = stream_of(host, tls, stream, peer) => connected,
            () = watch.becomes_slow() => unreachable!("it does not end"),
        };
        if connected.is_ok() {
            watch.connected();
        }
        connected
    }
}

/// Wraps a TCP connection: counts its bytes, and does the TLS handshake if there is `tls`.
async fn stream_of(
    host: &str,
    tls: Option<&Tls>,
    stream: TcpStream,
    peer: SocketAddr,
) -> Result<Stream, Failed> {
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

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::rr::Name;
    use ringback_core::job::Callback;
    use ringback_egress::{Forbidden, Guard};
    use rustls::pki_types::ServerName;

    use super::*;

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
            "https://a-._b.{{c}}.xn--mnchen-3ya:0/",
        ];
        let guard = Guard::default();
        ringback_fuzz::run_texts(&samples, |text| {
            let Ok(callback) = Callback::parse(text) else { return };
            // A URL that the client cannot take is not connected to, and a submit of it was refused.
            let uri = Uri::try_from(callback.to_string());
            if callback.check().is_ok() {
                let uri = uri.as_ref().unwrap_or_else(|error| panic!("{callback}: {error}"));
                let host = host(uri);
                assert!(host.parse::<IpAddr>().is_ok() || Name::from_ascii(host).is_ok(), "{callback}");
                let is_https = uri.scheme() == Some(&Scheme::HTTPS);
                assert!(!is_https || ServerName::try_from(host).is_ok(), "{callback}");
            }
            let Ok(uri) = uri else { return };
            assert_eq!(origin(&uri), callback.origin());
            let judged = guard.judge_origin(&origin(&uri));
            let url = url::Url::parse(text).expect("it was parsed");
            let port = uri.port_u16().unwrap_or(if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 });
            assert_eq!(Some(port), url.port_or_known_default(), "{uri}");
            let connected = host(&uri).parse::<IpAddr>();
            match url.host().expect("a host") {
                url::Host::Ipv4(address) => assert_eq!(connected, Ok(address.into()), "{uri}"),
                url::Host::Ipv6(address) => assert_eq!(connected, Ok(address.into()), "{uri}"),
                url::Host::Domain(name) => {
                    let name = name
                        .strip_suffix('.')
                        .filter(|short| !short.is_empty() && !short.ends_with('.'))
                        .unwrap_or(name);
                    assert_eq!((connected.is_err(), host(&uri)), (true, name));
                }
            }
            if let Ok(address) = connected
                && !matches!(judged, Err(Forbidden::Port(_)))
            {
                assert_eq!(judged, guard.judge_addresses(&[address], port), "{uri}");
            }
        });
    }
}
