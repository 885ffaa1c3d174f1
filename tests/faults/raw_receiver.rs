//! A receiver whose connections a test handles byte by byte, with TLS or without.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The path of a file with a test certificate or key.
pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tls").join(name)
}

/// Accepts TLS connections with the certificate `name` and offers these protocols by ALPN.
pub(crate) fn acceptor(name: &str, protocols: &[&str]) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let certificate = CertificateDer::from_pem_file(file(&format!("{name}.pem"))).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).expect("a key");
    let builder = builder.expect("TLS 1.2 and 1.3").with_no_client_auth();
    let mut config = builder.with_single_cert(vec![certificate], key).expect("a pair");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// A running receiver.
pub(crate) struct RawReceiver {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl RawReceiver {
    /// Starts a receiver that calls `handle` with each connection and its number, from 1.
    pub(crate) async fn start<F>(handle: impl Fn(TcpStream, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let socket = TcpSocket::new_v4().expect("a socket");
        // With a small buffer, little of a request arrives before it is read.
        socket.set_recv_buffer_size(4096).expect("a size");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let listener: TcpListener = socket.listen(1024).expect("it listens");
        let address = listener.local_addr().expect("it is bound");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                number += 1;
                connections.spawn(handle(stream, number));
            }
        });
        Self { address, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn https_url(&self, name: &str) -> String {
        format!("https://{name}:{}/hook", self.address.port())
    }
}

/// A connection with TLS or without.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

pub(crate) type Boxed = Pin<Box<dyn Connection>>;

/// Reads the next request with its body. Returns the head; `None` when the connection ends before.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&read);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = header(head, "content-length").map_or(0, |length| length.parse().expect("a length"));
        if body.len() >= length {
            return Some(head.to_owned());
        }
    }
}

pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}
