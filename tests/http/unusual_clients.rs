//! Unusual but correct requests of real clients: half-closed connections, heads that wait for 100 Continue, byte order
//! marks, and an nginx before the API.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use ringback_testkit::{Child, free_port};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::http::events::listener::Listener;
use crate::prelude::*;

fn address(stack: &Stack) -> SocketAddr {
    stack.apis[0].setting("RINGBACK_API_LISTEN").expect("an api").parse().expect("an address")
}

/// Reads text until the server closes the connection. Panics after [`SOON`], or if the connection is reset.
async fn all(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.expect("the connection ends").expect("no reset");
    answer
}

#[tokio::test]
async fn what_is_refused_by_its_head_gets_its_status_without_being_asked_to_continue() {
    let stack = StackOptions::api_only().start().await;
    let json = "content-type: application/json\r\n";
    for (request, headers, status) in [
        ("POST /v1/jobs", "content-type: application/json\r\ncontent-length: 99000000\r\n", "413"),
        ("POST /v1/jobs/batch", "content-type: application/json\r\ncontent-length: 99000000\r\n", "413"),
        ("POST /v1/jobs", "content-type: text/plain\r\ncontent-length: 10\r\n", "415"),
        ("POST /v1/jobs", "content-type: application/json; charset=latin1\r\ncontent-length: 10\r\n", "415"),
        ("POST /v1/jobs", "content-type: text/plain\r\ntransfer-encoding: Chunked\r\n", "415"),
        ("POST /v1/topics/t/reserve", "content-type: text/plain\r\ncontent-length: 10\r\n", "415"),
        ("POST /v1/topics/t/pause", "content-length: 99000\r\n", "413"),
        ("POST /v1/nothing", "content-length: 10\r\n", "404"),
        ("DELETE /v1/jobs", "content-length: 10\r\n", "405"),
        ("POST /v1/jobs", "origin: https://evil.example\r\ncontent-length: 10\r\n", "403"),
    ] {
        let mut stream = TcpStream::connect(address(&stack)).await.expect("a connection");
        let head = format!("{request} HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        let answer = all(stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    let job = r#"{"topic":"t","id":"continued","delay":"1h","url":"http://127.0.0.1:9/"}"#;
    let mut stream = TcpStream::connect(address(&stack)).await.expect("a connection");
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\n{json}content-length: {}\r\n\r\n",
        job.len()
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut interim = [0; 25];
    timeout(SOON, stream.read_exact(&mut interim)).await.expect("it is asked for").expect("no reset");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(job.as_bytes()).await.expect("it is sent");
    stream.shutdown().await.expect("its half is closed");
    assert!(all(stream).await.starts_with("HTTP/1.1 201"));
}

#[tokio::test]
async fn a_submit_whose_client_closes_its_sending_half_is_answered() {
    let mut stack = StackOptions::api_only().start().await;
    let request = |id: &str| {
        let job = json!({"topic": "t", "id": id, "delay": "1h", "url": "http://127.0.0.1:9/"}).to_string();
        format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{job}",
            job.len()
        )
    };
    let sent = async |id: &str, to: SocketAddr| {
        let mut stream = TcpStream::connect(to).await.expect("a connection");
        stream.write_all(request(id).as_bytes()).await.expect("it is sent");
        stream
    };
    let (api, admin) = (address(&stack), stack.apis[0].admin());
    let mut half = sent("half", api).await;
    half.shutdown().await.expect("its half is closed");
    assert!(all(half).await.starts_with("HTTP/1.1 201"));
    let mut probe = TcpStream::connect(admin).await.expect("a connection");
    probe.write_all(b"GET /readyz HTTP/1.1\r\nhost: h\r\n\r\n").await.expect("it is sent");
    probe.shutdown().await.expect("its half is closed");
    assert!(all(probe).await.starts_with("HTTP/1.1 200"));

    stack.apis[0].stop();
    let mut waits = sent("waits", api).await;
    waits.shutdown().await.expect("its half is closed");
    stack.apis[0].cont();
    assert!(all(waits).await.starts_with("HTTP/1.1 201"));
    for id in ["half", "waits"] {
        assert_eq!(stack.job("t", id).await.0, 200, "{id}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_ignored_at_the_start_of_a_body_and_named_elsewhere() {
    let stack = StackOptions::api_only().start().await;
    let job =
        |id: &str| json!({"topic": "t", "id": id, "delay": "1h", "url": "http://127.0.0.1:9/"}).to_string();
    let utf16: Vec<u8> = job("wide").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = |text: String| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    let (json, lines) = ("application/json", "application/x-ndjson");
    for (path, kind, body, status, words) in [
        ("/v1/jobs", json, marked(job("a")), 201, ""),
        ("/v1/jobs/batch", json, marked(format!("[{}]", job("b"))), 200, "created"),
        ("/v1/jobs/batch", lines, marked(format!("{}\r\n{}", job("c"), job("d"))), 200, "created"),
        ("/v1/import", lines, marked(format!("{}\r\n", job("e"))), 200, ""),
        (
            "/v1/import",
            lines,
            [job("f").into_bytes(), b"\n".to_vec(), marked(job("g"))].concat(),
            200,
            "byte order mark",
        ),
        ("/v1/jobs", json, marked(format!("\u{feff}{}", job("h"))), 400, "byte order mark"),
        ("/v1/jobs", json, job("\u{feff}i").into_bytes(), 422, "\\ufeff"),
        ("/v1/jobs", json, utf16, 400, "UTF-16"),
        ("/v1/jobs", json, format!("[{}]", job("k")).into_bytes(), 400, "/v1/jobs/batch"),
        ("/v1/topics/t/pause", json, marked("{}".to_owned()), 200, ""),
    ] {
        let reply = stack.request(reqwest::Method::POST, path, Some((kind, body.into()))).await;
        let text = reply.json().to_string();
        assert!(
            reply.status == status && text.contains(words),
            "{path} {status} {words}: {} {text}",
            reply.status
        );
    }
}

/// Starts an nginx with its defaults before the API. Returns process and port; `None`, after a message, without nginx.
#[expect(clippy::print_stdout, reason = "what is left out is said")]
fn nginx(api: SocketAddr, directory: &std::path::Path) -> Option<(Child, u16)> {
    let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        .into_iter()
        .find(|path| fs::exists(path).is_ok_and(|found| found));
    let Some(program) = program else {
        println!("skipped: there is no nginx on this machine");
        return None;
    };
    let port = free_port();
    let at = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {at}/{name};"))
        .concat();
    let text = format!(
        "daemon off; pid {at}/pid; error_log {at}/error.log; events {{}} http {{ access_log off; {temporary} \
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{api}; }} }} }}"
    );
    let file = directory.join("nginx.conf");
    fs::write(&file, text).expect("a file");
    let mut command = Command::new(program);
    command.arg("-c").arg(&file).arg("-p").arg(directory);
    Some((Child::spawn("nginx", &mut command, &directory.join("log")), port))
}

#[tokio::test]
async fn events_pass_an_nginx_with_its_defaults_at_once() {
    let stack = StackOptions::api_only().start().await;
    let directory = tempfile::tempdir().expect("a temp directory");
    let Some((_nginx, port)) = nginx(address(&stack), directory.path()) else { return };
    eventually(SOON, "nginx listens", async || TcpStream::connect(("127.0.0.1", port)).await.map(drop)).await;
    let began = Instant::now();
    let mut listener = Listener::start(&format!("http://127.0.0.1:{port}/v1/events?topic=t")).await;
    stack.accept(&json!({"topic": "t", "id": "a", "delay": "1h", "url": "http://127.0.0.1:9/"})).await;
    let (_, event): (_, Value) = listener.next().await;
    assert_eq!(event["id"], "a");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
