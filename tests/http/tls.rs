//! API and admin port over HTTPS: TLS versions, replaced certificates, client certificates and hanging handshakes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use reqwest::{Certificate, Client, Identity};
use ringback_testkit::Role;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::cli::spec;
use crate::prelude::*;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tls").join(name)
}

/// A directory with a certificate and its key, as an installation has it.
struct Files(TempDir);

impl Files {
    fn of(name: &str) -> Self {
        let files = Self(tempfile::tempdir().expect("a directory"));
        files.replace(name);
        files
    }

    /// Replaces the certificate and the key by those with another name.
    fn replace(&self, name: &str) {
        for end in ["pem", "key"] {
            let part = self.path("part");
            std::fs::copy(file(&format!("{name}.{end}")), &part).expect("it is copied");
            std::fs::rename(part, self.path(end)).expect("it is renamed");
        }
    }

    fn path(&self, end: &str) -> PathBuf {
        self.0.path().join(format!("tls.{end}"))
    }

    fn settings(&self, options: StackOptions) -> StackOptions {
        let text = |end| self.path(end).to_str().expect("UTF-8").to_owned();
        options.env("RINGBACK_TLS_CERT", &text("pem")).env("RINGBACK_TLS_KEY", &text("key"))
    }
}

/// A client that trusts the authority of the tests, with the client certificate `certificate` if it is given.
fn client(certificate: Option<&str>) -> Client {
    let read = |name: &str| std::fs::read(file(name)).expect("a file");
    let authority = Certificate::from_pem(&read("authority.pem")).expect("a certificate");
    let builder = Client::builder().no_proxy().tls_certs_only([authority]);
    let builder = match certificate {
        None => builder,
        Some(name) => {
            let both = [read(&format!("{name}.pem")), read(&format!("{name}.key"))].concat();
            builder.identity(Identity::from_pem(&both).expect("a certificate and its key"))
        }
    };
    builder.build().expect("a client")
}

fn https(stack: &Stack, path: &str) -> String {
    stack.url(path).replace("http://", "https://")
}

/// The certificate that a port shows on a new connection with this version of TLS. Asserts that the port answers HTTP.
async fn shown(address: &str, version: &'static rustls::SupportedProtocolVersion) -> CertificateDer<'static> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(file("authority.pem")).expect("a certificate"))
        .expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]);
    let config = builder.expect("a version").with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake");
    // Without ALPN the connection uses HTTP/1.1.
    stream.write_all(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it is sent");
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
    stream.get_ref().1.peer_certificates().expect("certificates")[0].clone().into_owned()
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).expect("a certificate")
}

fn address(stack: &Stack) -> String {
    stack.url("").trim_start_matches("http://").to_owned()
}

#[tokio::test]
async fn the_api_speaks_https_over_both_versions_of_tls() {
    let files = Files::of("api");
    for options in StackOptions::each_store() {
        let mut stack = files.settings(options).start().await;
        // The check at the end would use plain HTTP.
        stack.skip_check();
        let answer = client(None).get(https(&stack, "/v1/stats")).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            assert_eq!(shown(&address(&stack), version).await, certificate("api.pem"));
        }
        // A request without TLS is not answered.
        let mut plain = TcpStream::connect(address(&stack)).await.expect("a connection");
        plain.write_all(b"GET /v1/stats HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it is sent");
        let mut all = Vec::new();
        timeout(SOON, plain.read_to_end(&mut all)).await.expect("it is closed").ok();
        assert!(!all.starts_with(b"HTTP"), "{all:?}");
    }
}

#[tokio::test]
async fn the_command_line_calls_it_with_the_authorities_of_a_file() {
    let files = Files::of("api");
    let stack = files.settings(StackOptions::api_only()).start().await;
    let run = async |trusting: bool| {
        let mut spec = spec(&https(&stack, ""), &["stats"]);
        if trusting {
            spec = spec.env("RINGBACK_SERVER_CA_FILE", file("authority.pem").to_str().expect("UTF-8"));
        }
        let mut command = spec.command();
        command.stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.expect("it ends")
    };
    let output = run(true).await;
    assert!(output.status.success(), "{output:?}");
    let output = run(false).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("certificate"), "{output:?}");
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_used_without_a_restart_and_a_wrong_one_is_not() {
    let files = Files::of("api");
    let stack = files.settings(StackOptions::api_only()).start().await;
    let now = async || shown(&address(&stack), &rustls::version::TLS13).await;
    assert_eq!(now().await, certificate("api.pem"));
    let kept = client(None);
    kept.get(https(&stack, "/v1/stats")).send().await.expect("an answer");
    let changes = async |what: &str| {
        eventually(SOON, what, async || {
            now().await;
            let log = stack.apis[0].log();
            if log.contains(what) { Ok(()) } else { Err(log) }
        })
        .await;
    };
    // If certificate and key do not match, the former pair stays in use.
    std::fs::copy(file("renewed.pem"), files.path("pem")).expect("it is copied");
    changes("connections go on with the certificate that was read before").await;
    assert_eq!(now().await, certificate("api.pem"));
    files.replace("renewed");
    changes("the certificate was read again").await;
    assert_eq!(now().await, certificate("renewed.pem"));
    std::fs::remove_file(files.path("key")).expect("it is removed");
    changes("cannot be read").await;
    assert_eq!(now().await, certificate("renewed.pem"));
    // A connection from before goes on.
    assert_eq!(kept.get(https(&stack, "/v1/stats")).send().await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn with_authorities_of_clients_only_their_certificates_are_let_in() {
    let files = Files::of("api");
    let options = files.settings(StackOptions::api_only());
    let authority = file("authority.pem").to_str().expect("UTF-8").to_owned();
    let stack = options.env("RINGBACK_TLS_CLIENT_CA", &authority).start().await;
    let call = async |certificate| client(certificate).get(https(&stack, "/v1/stats")).send().await;
    assert_eq!(call(Some("caller")).await.expect("it is let in").status(), 200);
    for certificate in [None, Some("stranger")] {
        assert!(call(certificate).await.is_err(), "{certificate:?}");
    }
    let both = files.0.path().join("both.pem");
    let read = |name: &str| std::fs::read(file(name)).expect("a file");
    std::fs::write(&both, [read("caller.pem"), read("caller.key")].concat()).expect("a file");
    let spec = spec(&https(&stack, ""), &["stats"]).env("RINGBACK_SERVER_CA_FILE", &authority);
    let mut command = spec.env("RINGBACK_CLIENT_CERT", both.to_str().expect("UTF-8")).command();
    command.stdin(Stdio::null());
    let output =
        tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.expect("it ends");
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn handshakes_that_hang_keep_nobody_out_and_are_closed() {
    let files = Files::of("api");
    let stack = files.settings(StackOptions::api_only()).start().await;
    let mut hanging = Vec::new();
    for _ in 0..200 {
        hanging.push(TcpStream::connect(address(&stack)).await.expect("a connection"));
    }
    assert_eq!(client(None).get(https(&stack, "/v1/stats")).send().await.expect("an answer").status(), 200);
    // Ten seconds, and what a busy machine takes.
    let closed = timeout(Duration::from_secs(30), hanging[0].read(&mut [0])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn the_admin_port_speaks_https_by_choice() {
    let files = Files::of("api");
    let options = files.settings(Stack::options()).env("RINGBACK_ADMIN_TLS", "on");
    let stack = options.launch().await;
    for process in stack.processes() {
        let url = format!("https://{}/readyz", process.admin());
        eventually(SOON, "it is ready", async || match client(None).get(&url).send().await {
            Ok(answer) if answer.status() == 200 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
    let refused = stack.spec(Role::Carrier).env("RINGBACK_TLS_CERT", "").command().output().expect("it ends");
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(64) && why.contains("RINGBACK_TLS_KEY"), "{why}");
}
