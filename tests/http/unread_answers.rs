//! Answers that a client asks for and does not take: they are bounded, and others are answered meanwhile.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::Client;
use ringback_testkit::{StackOptions, eventually, http_client};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;

use crate::sample_jobs::SOON;

/// So many dead jobs, each with a long URL, are a page of two megabytes: more than the system takes of what nobody reads.
const JOBS: usize = 1000;
/// How long the address takes to have its share while other tests use the machine; alone it is ten seconds.
const FULL: Duration = Duration::from_secs(90);
const PAGE: &str = "/v1/topics/t/dead?limit=1000";

/// Asks for the page on ten connections, and reads nothing: the system keeps little for their sockets.
async fn ask_ten_times(address: SocketAddr) -> Vec<TcpStream> {
    let request = format!("GET {PAGE} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..10 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("it is set");
        let mut stream = socket.connect(address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        streams.push(stream);
    }
    streams
}

#[tokio::test]
async fn answers_that_nobody_takes_are_bounded_and_leave_room_for_others() {
    let stack = StackOptions::api_only().start().await;
    let dead = |n| {
        let last = json!({"at": "2026-01-01T00:00:00Z", "error": "e".repeat(128)});
        let job = json!({"topic": "t", "id": format!("job-{n:080}"), "state": "dead", "reason": "gone",
            "at": "2026-01-01T00:00:00Z", "url": format!("https://a.example/{}", "u".repeat(1_900)), "attempts": 1, "failures": 1, "last": last});
        format!("{job}\n")
    };
    let lines: String = (0..JOBS).map(dead).collect();
    let import = http_client().post(stack.url("/v1/import")).header("content-type", "application/x-ndjson");
    let imported = import.body(lines).send().await.expect("an answer");
    let summary = imported.text().await.expect("a text");
    assert!(summary.contains("\"created\":1000"), "{summary}");
    let url = stack.url(PAGE);
    let address = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL").0;
    let address: SocketAddr = address.parse().expect("an address");
    let from = |last: u8| {
        let client = Client::builder().no_proxy().local_address(IpAddr::from([127, 0, 0, last]));
        client.build().expect("a client")
    };
    let (own, other) = (from(1), from(2));
    let list = async |client: &Client| {
        let answer = client.get(&url).send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.bytes().await.expect("a whole answer").len())
    };
    let (status, length) = list(&own).await;
    assert!(status == 200 && length > 2_000_000, "{status}, {length} bytes");

    let unread = Mutex::new(Vec::new());
    eventually(FULL, "the address has its share", async || {
        unread.lock().await.extend(ask_ten_times(address).await);
        let answer = own.get(&url).send().await.expect("an answer");
        let (status, text) = (answer.status().as_u16(), answer.text().await.expect("a text"));
        // Those that wait for a turn for too long are answered 503 too.
        let is_full = status == 503 && text.contains("are not read yet");
        if is_full { Ok(()) } else { Err(format!("{status}: {} bytes", text.len())) }
    })
    .await;
    // Small answers to reads are given.
    let topic = own.get(stack.url("/v1/topics/t")).send().await.expect("an answer");
    assert_eq!(topic.status().as_u16(), 200);
    assert_eq!(list(&other).await, (200, length), "another address is answered");

    drop(unread);
    eventually(SOON, "what was held is free", async || match list(&own).await {
        (200, _) => Ok(()),
        (status, _) => Err(status),
    })
    .await;
}
