//! Answers that a client asks for and does not take: others are answered meanwhile.

use std::net::{IpAddr, SocketAddr};

use reqwest::Client;
use ringback_testkit::{StackOptions, eventually};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;

use crate::sample_jobs::SOON;

/// So many dead jobs with a body of 200,000 bytes fill a page, which has up to a megabyte.
const JOBS: usize = 10;
const PAGE: &str = "/v1/topics/t/dead?limit=1000&include=request";

#[tokio::test]
async fn answers_that_nobody_takes_leave_room_for_others() {
    let stack = StackOptions::api_only().start().await;
    let body = "x".repeat(200_000);
    let dead = |n| json!({"topic": "t", "id": format!("job-{n}"), "state": "dead", "reason": "gone", "url": "https://a.example/", "body": body});
    stack.import(&(0..JOBS).map(dead).collect::<Vec<_>>()).await;
    let url = stack.url(PAGE);
    let address = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL").0;
    let address: SocketAddr = address.parse().expect("an address");
    let request = format!("GET {PAGE} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut unread = Vec::new();
    for _ in 0..100 {
        let socket = TcpSocket::new_v4().expect("a socket");
        // The system keeps little for it.
        socket.set_recv_buffer_size(4096).expect("it is set");
        let mut stream = socket.connect(address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        unread.push(stream);
    }
    let list = async |last: u8| {
        let client = Client::builder().no_proxy().local_address(IpAddr::from([127, 0, 0, last]));
        let answer = client.build().expect("a client").get(&url).send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.bytes().await.expect("a whole answer").len())
    };
    // The lists that were asked for take their turns first.
    eventually(SOON, "another address is answered", async || match list(2).await {
        (200, _) => Ok(()),
        (status, length) => Err(format!("{status}: {length} bytes")),
    })
    .await;
    drop(unread);
}
