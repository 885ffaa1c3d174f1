//! Receivers behind TLS: certificate authorities from a file, reloads at SIGHUP, client certificates, large answers,
//! and the choice between HTTP/2 and HTTP/1.1.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use ringback_testkit::{NameServer, Role};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::raw_receiver::{RawReceiver, acceptor, file, read_request};
use crate::prelude::*;

/// The name in the receiver's certificate.
const NAME: &str = "shop.example";

/// A path that is answered with a body of 2 MiB.
const LARGE: &str = "/large";

/// A receiver that takes everything over TLS, and the versions of HTTP that were used.
struct Receiver {
    address: SocketAddr,
    versions: Arc<Mutex<Vec<Version>>>,
    _tasks: JoinSet<()>,
}

impl Receiver {
    async fn start(protocols: &[&str]) -> Self {
        Self::with(protocols, None).await
    }

    /// Starts a receiver that serves only callers with a certificate of this authority.
    async fn asking(authority: &str) -> Self {
        Self::with(&["h2"], Some(authority)).await
    }

    async fn with(protocols: &[&str], authority: Option<&str>) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let certificate = CertificateDer::from_pem_file(file("receiver.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(file("receiver.key")).expect("a key");
        let builder = builder.expect("TLS 1.2 and 1.3");
        let builder = match authority {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let mut roots = RootCertStore::empty();
                let authority = CertificateDer::from_pem_file(file(name)).expect("a certificate");
                roots.add(authority).expect("an authority");
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let mut config = builder.with_single_cert(vec![certificate], key).expect("a pair");
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (address, versions) = (listener.local_addr().expect("it is bound"), Arc::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&versions)));
        Self { address, versions, _tasks: tasks }
    }

    fn url(&self, name: &str) -> String {
        format!("https://{name}:{}/hook", self.address.port())
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, versions: Arc<Mutex<Vec<Version>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, versions) = (acceptor.clone(), Arc::clone(&versions));
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = service_fn(move |request: Request<Incoming>| {
                versions.lock().expect("no test panics with it").push(request.version());
                let body =
                    if request.uri().path() == LARGE { vec![b'x'; 2 * 1024 * 1024] } else { Vec::new() };
                async {
                    request.into_body().collect().await?;
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(body))))
                }
            });
            // The client ends the connection as it likes.
            let _ =
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

fn asking(names: &NameServer) -> StackOptions {
    names.knows(NAME, &[Ipv4Addr::LOCALHOST.into()]);
    names.knows("other.example", &[Ipv4Addr::LOCALHOST.into()]);
    Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string())
}

fn job(id: &str, url: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": url, "retry": {"preset": "none"}})
}

#[tokio::test]
async fn a_receiver_is_trusted_by_the_authorities_of_the_file_and_chooses_the_version_of_http() {
    let (names, ca) = (NameServer::start(60), file("authority.pem"));
    let stack = asking(&names).env("RINGBACK_CA_FILE", ca.to_str().expect("a path")).start().await;
    for (protocols, expected) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let receiver = Receiver::start(protocols).await;
        for n in 0..3 {
            let id = format!("{}-{n}", protocols.len());
            stack.accept(&job(&id, &receiver.url(NAME))).await;
            stack.wait_state(TOPIC, &id, "done", SOON).await;
        }
        assert_eq!(*receiver.versions.lock().expect("no panic"), [expected; 3]);
        let id = format!("{}-other-name", protocols.len());
        stack.accept(&job(&id, &receiver.url("other.example"))).await;
        assert_eq!(stack.wait_state(TOPIC, &id, "dead", SOON).await["last"]["error"], "tls-wrong-name");
    }
}

#[tokio::test]
async fn a_certificate_that_is_named_as_an_authority_may_be_the_receivers_own_and_why_one_is_refused_is_named()
 {
    let names = NameServer::start(60);
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.pem");
    let named = ["itself.pem", "expired.pem", "early.pem", "other.pem"];
    let named = named.map(|name| std::fs::read_to_string(file(name)).expect("a file"));
    std::fs::write(&ca, named.concat()).expect("a file");
    let stack = asking(&names).env("RINGBACK_CA_FILE", ca.to_str().expect("a path")).start().await;
    for (certificate, host, error) in [
        ("itself", NAME, None),
        ("itself", "other.example", Some("tls-wrong-name")),
        ("expired", NAME, Some("tls-expired")),
        ("early", NAME, Some("tls-not-yet-valid")),
        ("receiver", NAME, Some("tls-unknown-issuer")),
    ] {
        let acceptor = acceptor(certificate, &["http/1.1"]);
        let receiver = RawReceiver::start(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                read_request(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        let id = format!("{certificate}-{host}");
        stack.accept(&job(&id, &receiver.https_url(host))).await;
        let ended = stack.wait_state(TOPIC, &id, if error.is_none() { "done" } else { "dead" }, SOON).await;
        assert_eq!(ended["last"]["error"].as_str(), error, "{ended}");
    }
}

#[tokio::test]
async fn the_authorities_of_receivers_are_read_again_at_sighup_unless_they_cannot_be() {
    let (names, receiver) = (NameServer::start(60), Receiver::start(&["http/1.1"]).await);
    let stack = asking(&names).count(Role::Notifier, 0).start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.pem");
    let copy = |name: &str| std::fs::copy(file(name), &ca).expect("a file");
    copy("other.pem");
    let spec = stack.spec(Role::Notifier).without_terminal();
    let mut notifier = spec.env("RINGBACK_CA_FILE", ca.to_str().expect("a path")).start();
    notifier.ready(SOON).await;
    let sent = async |id: &str, state: &str| {
        stack.accept(&job(id, &receiver.url(NAME))).await;
        stack.wait_state(TOPIC, id, state, SOON).await
    };
    assert_eq!(sent("before", "dead").await["last"]["error"], "tls-unknown-issuer");
    let mut says = async |text: &str| {
        notifier.hang_up();
        notifier.wait_log(text, SOON).await;
    };
    // With a byte order mark, as some editors save files.
    let marked = [&b"\xef\xbb\xbf"[..], &std::fs::read(file("authority.pem")).expect("a file")].concat();
    std::fs::write(&ca, marked).expect("a file");
    says("were read again").await;
    sent("after", "done").await;
    std::fs::write(&ca, "nonsense").expect("a file");
    says("the certificate authorities from before are used").await;
    sent("later", "done").await;
}

#[tokio::test]
async fn large_answers_over_one_connection_are_read_to_their_limit_and_end_no_other_attempt() {
    let (names, ca) = (NameServer::start(60), file("authority.pem"));
    let options =
        asking(&names).count(Role::Notifier, 1).env("RINGBACK_CA_FILE", ca.to_str().expect("a path"));
    let (stack, receiver) = (options.start().await, Receiver::start(&["h2"]).await);
    let ids: Vec<_> = (0..40).map(|n| format!("{n}")).collect();
    let jobs: Vec<_> = ids.iter().map(|id| job(id, &receiver.url(NAME).replace("/hook", LARGE))).collect();
    assert_eq!(stack.batch(&jobs).await.0, 200);
    for id in &ids {
        stack.wait_state(TOPIC, id, "done", SOON).await;
    }
    assert_eq!(receiver.versions.lock().expect("no panic").len(), ids.len());
}

#[tokio::test]
async fn a_receiver_that_the_system_does_not_trust_gets_nothing_and_without_authorities_plain_http_goes_on() {
    let (names, receiver) = (NameServer::start(60), Receiver::start(&["http/1.1"]).await);
    let sink = Sink::start().await;
    for (id, authorities) in [("system", None), ("none", Some("/dev/null"))] {
        let options = asking(&names);
        let options = match authorities {
            Some(file) => options.env("SSL_CERT_FILE", file).env("SSL_CERT_DIR", file),
            None => options,
        };
        let stack = options.start().await;
        stack.accept(&job(id, &receiver.url(NAME))).await;
        assert_eq!(
            stack.wait_state(TOPIC, id, "dead", SOON).await["last"]["error"],
            if authorities.is_some() { "tls" } else { "tls-unknown-issuer" }
        );
        let mut command = crate::cli::spec(&stack.url(""), &["stats"]).command();
        if let Some(file) = authorities {
            command.env("SSL_CERT_FILE", file).env("SSL_CERT_DIR", file);
        }
        assert!(command.output().expect("it starts").status.success(), "the command line needs none either");
        let plain = format!("{id}-plain");
        stack.accept(&job(&plain, &sink.url("/hook"))).await;
        sink.wait_for_job(&plain, 1, SOON).await;
    }
    assert!(receiver.versions.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn a_credential_brings_a_client_certificate_and_the_authorities_of_its_receiver() {
    let names = NameServer::start(60);
    let text = |name: &str| std::fs::read_to_string(file(name)).expect("a file");
    // No other certificate authority is trusted.
    let options = asking(&names).env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", "/dev/null");
    let stack =
        options.env("RINGBACK_MASTER_KEYS", "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=").start().await;
    let receiver = Receiver::asking("authority.pem").await;
    let url = receiver.url(NAME);
    let origin = url.trim_end_matches("/hook");
    let plain = job("plain", &url);
    stack.accept(&plain).await;
    assert_eq!(stack.wait_state(TOPIC, "plain", "dead", SOON).await["last"]["error"], "tls");
    for (id, certificate, state) in
        [("caller", "caller", "done"), ("stranger", "stranger", "dead"), ("again", "caller", "done")]
    {
        let credential = json!({
            "to": [origin],
            "ca": text("authority.pem"),
            "certificate": text(&format!("{certificate}.pem")),
            "key": text(&format!("{certificate}.key")),
        });
        stack.put("/v1/credentials/bank", &credential).await;
        stack.set_policy(TOPIC, &json!({"credentials": "bank"})).await;
        // A notifier knows it within a second, and has no connection left that another certificate has opened.
        let mut job = job(id, &url);
        job["delay"] = json!("1s");
        stack.accept(&job).await;
        let ended = stack.wait_state(TOPIC, id, state, SOON).await;
        assert!(state == "done" || ended["last"]["error"] == "tls-client-certificate", "{ended}");
    }
    assert_eq!(receiver.versions.lock().expect("no panic").len(), 2);
}
