//! Receivers that answer before they have read the request, or end TLS connections without notice: the answer counts.

use std::net::Ipv4Addr;

use ringback_testkit::NameServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw_receiver::{RawReceiver, acceptor, file, read_request};
use crate::prelude::*;

fn job(id: &str, url: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": url, "body": "x".repeat(250_000), "retry": {"preset": "none"}})
}

#[tokio::test]
async fn an_answer_that_comes_before_the_body_was_read_counts() {
    let stack = Stack::start().await;
    for (name, answer, state, reason) in [
        ("ok", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", "done", Value::Null),
        ("gone", "HTTP/1.1 410 Gone\r\ncontent-length: 4\r\n\r\ngone", "dead", json!("gone")),
        ("large", "HTTP/1.1 413 Large\r\n\r\nno", "dead", json!("exhausted")),
    ] {
        let receiver = RawReceiver::start(move |mut stream, _| async move {
            // Most of the request is not read, so the end of the connection resets it.
            let _ = stream.read(&mut [0; 600]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        let receiver = receiver.await;
        let ids: Vec<_> = (0..30).map(|n| format!("{name}-{n}")).collect();
        for id in &ids {
            stack.accept(&job(id, &receiver.url())).await;
        }
        for id in &ids {
            let ended = stack.wait_state(TOPIC, id, state, SOON).await;
            assert_eq!(ended["reason"], reason, "{ended}");
            assert_eq!(ended["last"]["error"], Value::Null, "{ended}");
        }
    }
}

#[tokio::test]
async fn an_answer_over_tls_counts_though_the_connection_ends_without_notice() {
    let (names, ca) = (NameServer::start(60), file("authority.pem"));
    names.knows("shop.example", &[Ipv4Addr::LOCALHOST.into()]);
    let options = Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string());
    let stack = options.env("RINGBACK_CA_FILE", ca.to_str().expect("a path")).start().await;
    stack.set_policy(TOPIC, &json!({"expect_body": "success"})).await;
    for (id, answer, state, error) in [
        ("no-length", "HTTP/1.1 200 OK\r\n\r\nsuccess", "done", Value::Null),
        ("length", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nsuccess", "done", Value::Null),
        ("gone", "HTTP/1.1 410 Gone\r\n\r\n", "dead", Value::Null),
        ("cut-off", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsuccess", "dead", json!("body")),
    ] {
        let receiver = RawReceiver::start(move |stream, _| async move {
            let Ok(mut stream) = acceptor("receiver", &["http/1.1"]).accept(stream).await else { return };
            read_request(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.flush().await;
        });
        let receiver = receiver.await;
        let mut job = job(id, &receiver.https_url("shop.example"));
        job["body"] = json!("x");
        stack.accept(&job).await;
        let ended = stack.wait_state(TOPIC, id, state, SOON).await;
        assert_eq!(ended["last"]["error"], error, "{ended}");
    }
}
