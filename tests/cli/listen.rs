//! `ringback listen`: what it prints of requests, also hostile ones, how it answers them, and how it starts and ends.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::Client;
use ringback_testkit::{Process, ProcessSpec, free_port, http_client};
use tokio::task::JoinSet;

use super::ringback;
use crate::prelude::*;

/// A running receiver.
struct Receiver {
    process: Process,
    port: u16,
}

impl Receiver {
    async fn start(words: &[&str]) -> Self {
        let port = free_port();
        let listen =
            ProcessSpec::new("ringback").arg("listen").arg("--listen").arg(&format!("127.0.0.1:{port}"));
        let process = words.iter().fold(listen, |spec, word| spec.arg(word)).start();
        let receiver = Self { process, port };
        receiver.prints("press Ctrl-C to stop").await;
        receiver
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    async fn prints(&self, text: &str) {
        self.process.wait_log(text, SOON).await;
    }

    /// The requests that the listener has printed as JSON, once there are at least `count`.
    async fn requests(&self, count: usize) -> Vec<Value> {
        eventually(SOON, &format!("it prints {count} requests"), async || {
            let log = self.process.log();
            let found: Vec<_> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            if found.len() >= count { Ok(found) } else { Err(log) }
        })
        .await
    }
}

async fn post(client: &Client, url: &str, body: impl Into<reqwest::Body>) -> u16 {
    client.post(url).body(body).send().await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn it_receives_the_attempts_of_jobs_and_answers_each_job_in_turn() {
    for options in StackOptions::each_store() {
        let stack: Stack = options.start().await;
        let receiver = Receiver::start(&["--json", "--status", "500,503,200", "--body", "success"]).await;
        for id in ["a", "b"] {
            let url = receiver.url("/hook?x=1");
            stack.accept(&json!({"topic": TOPIC, "id": id, "url": url, "body": {"n": 1}})).await;
        }
        for id in ["a", "b"] {
            let done = stack.wait_state(TOPIC, id, "done", SOON).await;
            assert_eq!((&done["attempts"], &done["failures"]), (&json!(3), &json!(2)), "{done}");
        }
        let requests = receiver.requests(6).await;
        for id in ["a", "b"] {
            let of_job = requests.iter().filter(|request| request["headers"]["ringback-job-id"] == id);
            let answered: Vec<_> = of_job
                .map(|request| (request["headers"]["ringback-attempt"].clone(), request["status"].clone()))
                .collect();
            let expected = [(json!("1"), json!(500)), (json!("2"), json!(503)), (json!("3"), json!(200))];
            assert_eq!(answered, expected);
        }
        let first = &requests[0];
        assert_eq!((&first["method"], &first["path"]), (&json!("POST"), &json!("/hook?x=1")), "{first}");
        assert_eq!(first["body"], r#"{"n":1}"#);
    }
}

#[tokio::test]
async fn it_answers_as_it_was_asked_to() {
    let words = ["--status", "429", "--header", "retry-after: 7", "--header", "x-a:1", "--body", "later"];
    let receiver = Receiver::start(&[&words[..], &["--delay", "50ms"]].concat()).await;
    let client = http_client();
    let answer = client.delete(receiver.url("/any/path")).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    assert_eq!(answer.headers()["x-a"], "1");
    assert_eq!(answer.text().await.expect("a body"), "later");
    receiver.prints("DELETE /any/path -> 429  ").await;
}

#[tokio::test]
async fn a_hostile_request_cannot_write_to_the_terminal() {
    for format in [&[][..], &["--json"]] {
        let receiver = Receiver::start(format).await;
        let client = http_client();
        let value = reqwest::header::HeaderValue::from_bytes(b"\xc2\x9b2J\tx").expect("a value");
        let hostile = "\u{1b}]0;owned\u{7}\u{9b}31m\r\u{8}\u{202e}";
        let sent = client.post(receiver.url("/hook")).header("x-evil", value).body(hostile).send().await;
        assert_eq!(sent.expect("an answer").status(), 200);
        assert_eq!(post(&client, &receiver.url("/binary"), vec![0xff, 0x1b, 0]).await, 200);
        receiver.prints("/xsA").await;
        let log = receiver.process.log();
        let unsafe_characters: Vec<_> =
            log.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
        assert!(unsafe_characters.is_empty(), "{unsafe_characters:?} in {log:?}");
        assert!(log.contains("]0;owned"), "{log}");
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let receiver = Receiver::start(&["--json"]).await;
    let client = http_client();
    let url = receiver.url("/");
    assert_eq!(post(&client, &url, vec![b'x'; 512 * 1024]).await, 200);
    assert_eq!(post(&client, &url, vec![b'x'; 512 * 1024 + 1]).await, 413);
    let requests = receiver.requests(2).await;
    assert_eq!(requests[0]["body"].as_str().map(str::len), Some(512 * 1024));
    assert_eq!((&requests[1]["body"], &requests[1]["status"]), (&Value::Null, &json!(413)));
    assert!(requests[1]["body_missing"].as_str().is_some_and(|why| why.contains("512 KiB")));
}

#[tokio::test]
async fn a_body_that_ends_early_is_printed_as_incomplete() {
    let receiver = Receiver::start(&["--json"]).await;
    for (count, length) in [(1, "content-length: 10"), (2, "transfer-encoding: chunked")] {
        let mut client = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
        let request = format!("POST / HTTP/1.1\r\nhost: h\r\n{length}\r\n\r\n5\r\nhel");
        client.write_all(request.as_bytes()).expect("it reads");
        client.shutdown(Shutdown::Write).expect("it is connected");
        let requests = receiver.requests(count).await;
        let shown = &requests[count - 1];
        assert_eq!(
            (&shown["body_missing"], &shown["status"]),
            (&json!("the body is incomplete"), &json!(400))
        );
    }
}

#[tokio::test]
async fn a_request_whose_sender_is_gone_before_it_is_whole_is_printed_without_an_answer() {
    let receiver = Receiver::start(&["--json"]).await;
    for (count, length) in [(1, "content-length: 10"), (2, "transfer-encoding: chunked")] {
        let mut client = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
        // An interim answer that nobody reads makes the end of the connection a reset.
        let expect = "expect: 100-continue";
        let request = format!("POST /gone HTTP/1.1\r\nhost: h\r\n{expect}\r\n{length}\r\n\r\n5\r\nhel");
        client.write_all(request.as_bytes()).expect("it reads");
        let mut answer = [0; 1];
        client.peek(&mut answer).expect("an interim answer");
        drop(client);
        let shown = &receiver.requests(count).await[count - 1];
        let why = "the connection ended before the request was whole";
        assert_eq!((&shown["body_missing"], &shown["status"]), (&json!(why), &Value::Null), "{shown}");
        assert_eq!((&shown["method"], &shown["path"]), (&json!("POST"), &json!("/gone")), "{shown}");
    }
}

#[tokio::test]
async fn connections_that_stay_open_do_not_keep_others_out() {
    let receiver = Receiver::start(&[]).await;
    // Each client keeps its connection.
    let mut clients = Vec::new();
    for _ in 0..300 {
        let client = http_client();
        assert_eq!(post(&client, &receiver.url("/"), "").await, 200);
        clients.push(client);
    }
}

#[tokio::test]
async fn it_ends_on_a_signal_with_0() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut receiver = Receiver::start(&["--delay", "1h"]).await;
        let client = http_client();
        let url = receiver.url("/waits");
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { client.get(url).send().await.is_ok() });
        receiver.prints("GET /waits -> 200").await;
        let pid = i32::try_from(receiver.process.pid()).expect("a pid fits");
        kill(Pid::from_raw(pid), signal).expect("it runs");
        assert_eq!(receiver.process.wait_exit(SOON).await.code(), Some(0), "{}", receiver.process.log());
        assert_eq!(waiting.join_all().await, [false], "nothing is answered");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_2_and_wrong_values_are_64() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let run = ringback("http://h", &["listen", "--listen", &address]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
    let expected =
        format!("error: cannot listen on {address}; choose another address with --listen: Address already");
    assert!(run.err.starts_with(&expected), "{run:?}");
    for wrong in [
        &["listen", "--status", "99"][..],
        &["listen", "--status", "200,,500"],
        &["listen", "--status", ""],
        &["listen", "--listen", "somewhere"],
        &["listen", "--header", "content-length: 1"],
        &["listen", "--delay", "2h"],
        &["listen", "8080"],
    ] {
        let run = ringback("http://h", wrong).await;
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{wrong:?}: {run:?}");
    }
}
