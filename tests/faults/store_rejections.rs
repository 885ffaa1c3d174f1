//! Stores that reject a process. A permanent error (not Redis, wrong password, TLS mismatch) ends the start, and the
//! log quotes the server; a temporary one (LOADING, BUSY, CLUSTERDOWN) is retried. A Redis that begins to evict is
//! noticed. And `rediss://` with a private authority and a client certificate.

use std::path::Path;

use redis::aio::MultiplexedConnection;
use ringback_testkit::{ProcessSpec, RedisServer, Sink, Stack, eventually, free_port};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::refusals::is_accepted;
use crate::sample_jobs::{SOON, job};

/// Starts a server that answers everything with the same bytes and closes the connection. Returns its port.
async fn saying(words: &'static [u8], tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut said = [0; 4096];
            let length = stream.read(&mut said).await.unwrap_or(0);
            // PostgreSQL answers a request for TLS, and nothing else that it does not know.
            let is_silent = words == b"N" && said[..length] != [0, 0, 0, 8, 4, 210, 22, 47];
            if !is_silent {
                stream.write_all(words).await.ok();
            }
        }
    });
    port
}

fn api(store: &str) -> ProcessSpec {
    ProcessSpec::new("ringback-api")
        .env("RINGBACK_ADMIN_LISTEN", &format!("127.0.0.1:{}", free_port()))
        .env("RINGBACK_API_LISTEN", &format!("127.0.0.1:{}", free_port()))
        .env("RINGBACK_STORE", store)
}

#[tokio::test]
async fn a_server_that_is_not_redis_or_lets_nobody_in_ends_the_start_in_its_own_words() {
    let mut tasks = JoinSet::new();
    let secured = RedisServer::start().await;
    set(&mut secured.client().await, "requirepass", "right").await;
    let mut cases = vec![
        (format!("redis://127.0.0.1:{}", secured.port()), "NOAUTH"),
        (format!("redis://:wrong@127.0.0.1:{}", secured.port()), "WRONGPASS"),
        (format!("redis://nobody:wrong@127.0.0.1:{}", secured.port()), "WRONGPASS"),
        (format!("rediss://127.0.0.1:{}", secured.port()), "use redis://"),
    ];
    for (words, said) in [
        (&b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"[..], "HTTP/1.1 400 Bad Request"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "use rediss://"),
        (b"N", "PostgreSQL"),
        (b"J\0\0\0\x0a8.0.36\0", "8.0.36"),
        (b"-DENIED Redis is running in protected mode\r\n", "DENIED Redis is running in protected mode"),
    ] {
        cases.push((format!("redis://127.0.0.1:{}", saying(words, &mut tasks).await), said));
    }
    let mut started: Vec<_> = cases.into_iter().map(|(url, said)| (api(&url).start(), url, said)).collect();
    for (process, url, said) in &mut started {
        let status = process.wait_exit(SOON).await;
        let log = process.log();
        assert!(status.code() == Some(1) && log.contains(*said), "{url}, {said}: {status} {log}");
        assert!(!log.contains(":wrong@"), "{log}");
    }
}

#[tokio::test]
async fn what_passes_by_itself_is_waited_out() {
    let mut tasks = JoinSet::new();
    let mut started = Vec::new();
    for words in [
        &b"-LOADING Redis is loading the dataset in memory\r\n"[..],
        b"-BUSY Redis is busy running a script\r\n",
        b"-MASTERDOWN Link with MASTER is down\r\n",
        b"-CLUSTERDOWN The cluster is down\r\n",
        b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        b"-ERR max number of clients reached\r\n",
        b"",
    ] {
        let url = format!("redis://127.0.0.1:{}", saying(words, &mut tasks).await);
        started.push((api(&url).start(), words));
    }
    for (process, words) in &mut started {
        process.wait_log("the store is unavailable; retrying", SOON).await;
        assert_eq!(process.exit_status(), None, "{}: {}", words.escape_ascii(), process.log());
    }
}

async fn set(redis: &mut MultiplexedConnection, name: &str, value: &str) {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg(name).arg(value);
    set.exec_async(redis).await.expect("it is set");
}

#[tokio::test]
async fn a_store_that_begins_to_evict_is_noticed_within_seconds_and_takes_no_new_jobs() {
    let server = RedisServer::start().await;
    let (mut stack, sink) = (Stack::options().store(&server.url()).start().await, Sink::start().await);
    let mut redis = server.client().await;
    set(&mut redis, "maxmemory-policy", "allkeys-lru").await;
    eventually(SOON, "nobody is ready", async || {
        for process in stack.processes() {
            let (status, text) = process.readiness().await?;
            if status != 503 || !text.contains("maxmemory-policy of the store is allkeys-lru") {
                return Err(format!("{status} {text}"));
            }
        }
        Ok(())
    })
    .await;
    assert!(!is_accepted(&stack, &job(&sink, "evicted"), "").await);
    assert_eq!(stack.carriers[0].metric("ringback_store_evicts_keys").await, Some(1.0));
    assert!(stack.apis[0].log().contains("submits are refused until then"));
    set(&mut redis, "maxmemory-policy", "noeviction").await;
    stack.ready(SOON).await;
    assert!(is_accepted(&stack, &job(&sink, "kept"), "").await);
    assert_eq!(stack.carriers[0].metric("ringback_store_evicts_keys").await, Some(0.0));
    for process in stack.apis.iter_mut().chain(&mut stack.carriers) {
        assert_eq!(process.exit_status(), None);
    }
}

#[tokio::test]
async fn a_store_on_tls_is_trusted_by_an_authority_of_ones_own_and_gets_a_certificate() {
    let file =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tls").join(name).display().to_string();
    let server = RedisServer::start().await;
    let mut redis = server.client().await;
    let port = free_port().to_string();
    for (name, value) in [
        ("tls-cert-file", file("api.pem")),
        ("tls-key-file", file("api.key")),
        ("tls-ca-cert-file", file("authority.pem")),
        ("tls-auth-clients", "yes".to_owned()),
        ("tls-port", port.clone()),
    ] {
        let mut set = redis::cmd("CONFIG");
        if set.arg("SET").arg(name).arg(&value).exec_async(&mut redis).await.is_err() {
            return eprintln!("left out: this redis-server has no TLS");
        }
    }
    let url = format!("rediss://localhost:{port}");
    let (authority, certificate, key) = (file("authority.pem"), file("caller.pem"), file("caller.key"));
    let of = |set: &[(&str, &str)]| set.iter().fold(api(&url), |spec, (name, value)| spec.env(name, value));
    let ca = ("RINGBACK_STORE_CA_FILE", authority.as_str());
    let (cert, key) = (("RINGBACK_STORE_CERT", certificate.as_str()), ("RINGBACK_STORE_KEY", key.as_str()));
    of(&[ca, cert, key]).start().ready(SOON).await;
    let wrong = file("api.key");
    for (set, code, said) in [
        (&[cert, key][..], 1, "UnknownIssuer"),
        (&[ca], 1, "CertificateRequired"),
        (&[ca, cert], 64, "RINGBACK_STORE_CERT"),
        (&[ca, key], 64, "RINGBACK_STORE_KEY"),
        (&[("RINGBACK_STORE_CA_FILE", "/nowhere.pem")], 64, "RINGBACK_STORE_CA_FILE"),
        (&[("RINGBACK_STORE_CA_FILE", key.1)], 64, "no certificate"),
        (&[ca, cert, ("RINGBACK_STORE_KEY", &wrong)], 64, "does not belong"),
        (&[ca, ("RINGBACK_STORE", "redis://127.0.0.1:1")], 64, "rediss://"),
    ] {
        let mut process = of(set).start();
        let status = process.wait_exit(SOON).await;
        let log = process.log();
        assert!(status.code() == Some(code) && log.contains(said), "{set:?}: {status} {log}");
    }
}
