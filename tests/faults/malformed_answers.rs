//! Receivers that answer too much, nothing or no HTTP: each attempt ends, costs little, and its error says why.

use ringback_testkit::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw_receiver::RawReceiver;
use crate::prelude::*;

const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Submits a job without retries, and returns the job once it is in `state`.
async fn last(stack: &Stack, job: Value, state: &str) -> Value {
    let fields = json!({"retry": {"preset": "none"}, "timeout": "10s"});
    let job = with_all(job, &fields);
    stack.accept(&job).await;
    stack.wait_state(TOPIC, job["id"].as_str().expect("an id"), state, SOON).await
}

#[tokio::test]
async fn what_a_receiver_sends_too_much_of_ends_the_attempt_and_is_named() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let head = |headers: String| format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n");
    // 64 KiB of a body, one byte in each chunk, with 16 digits for its length.
    let chunks = "0000000000000001\r\nx\r\n".repeat(64 * 1024);
    let many_headers = (0..101).map(|n| format!("x-{n}: 1\r\n")).collect();
    for (id, answer, expected) in [
        ("interim", INTERIM.repeat(21) + OK, "interim-flood"),
        ("endless", INTERIM.repeat(40_000) + OK, "interim-flood"),
        ("long-head", head(format!("x-long: {}\r\n", "x".repeat(33 * 1024))), "head-too-large"),
        ("many-headers", head(many_headers), "head-too-large"),
        (
            "small-chunks",
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"),
            "response-too-large",
        ),
    ] {
        sink.answer_job(id, Answer::raw(answer));
        let dead = last(&stack, job(&sink, id), "dead").await;
        assert_eq!(dead["last"]["error"], expected, "{id}: {dead}");
    }
    for (id, answer) in [
        ("few-interim", INTERIM.repeat(20) + OK),
        ("large-head", head(format!("x-long: {}\r\n", "x".repeat(31 * 1024)))),
        ("100-headers", head((0..99).map(|n| format!("x-{n}: 1\r\n")).collect())),
    ] {
        sink.answer_job(id, Answer::raw(answer));
        last(&stack, job(&sink, id), "done").await;
    }
}

#[tokio::test]
async fn a_receiver_that_is_not_there_that_hangs_up_or_that_does_not_speak_tls_is_named_in_the_error() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("closes", Answer::close());
    sink.answer_job("nonsense", Answer::raw("what?\r\n\r\n"));
    sink.answer_job("half", Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
    let plain = RawReceiver::start(|mut stream, _| async move {
        // Web servers answer like this if a request is not HTTP.
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        let _ = stream.read(&mut [0; 4096]).await;
    });
    let plain = plain.await;
    let with_url = |id: &str, url: String| with(job(&sink, id), "url", url);
    for (job, expected) in [
        (with_url("refused", format!("http://127.0.0.1:{}/", free_port())), "refused"),
        (with_url("plain", plain.https_url("127.0.0.1")), "not-tls"),
        (job(&sink, "closes"), "broken"),
        (job(&sink, "nonsense"), "not-http"),
        (job(&sink, "half"), "body"),
    ] {
        let dead = last(&stack, job, "dead").await;
        assert_eq!(dead["last"]["error"], expected, "{dead}");
    }
}

#[tokio::test]
async fn what_other_clients_take_as_a_head_is_taken_and_what_is_not_http_is_named() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    for (id, answer) in [
        ("folded", "HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\nok"),
        ("space-before-colon", "HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok"),
        ("line-feeds", "HTTP/1.1 200 OK\ncontent-length: 2\n\nok"),
        ("no-reason", "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok"),
        ("old", "HTTP/1.0 200 OK\r\n\r\nok"),
        ("old-in-chunks", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        ("small-letters", "http/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        ("spaces", "HTTP/1.1   200 OK\r\ncontent-length: 2\r\n\r\nok"),
        ("new", "HTTP/2 200 \r\ncontent-length: 2\r\n\r\nok"),
        ("length-twice", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok"),
        ("odd-name", "HTTP/1.1 200 OK\r\nx(y)@z: 1\r\na b: 1\r\ncontent-length: 2\r\n\r\nok"),
        ("until-the-end", "HTTP/1.1 200 OK\r\n\r\nok"),
        ("no-empty-line", "HTTP/1.1 200 OK\r\nx: 1\r\n"),
        ("half-a-header", "HTTP/1.1 200 OK\r\nx: 1\r\ny"),
    ] {
        sink.answer_job(id, Answer::raw(answer));
        last(&stack, job(&sink, id), "done").await;
    }
    for (id, answer) in [
        ("ssh", "SSH-2.0-OpenSSH_9.2\r\n"),
        ("smtp", "220 mail.example ESMTP\r\n"),
        ("page", "<html>hello</html>"),
        ("alert", "\u{15}\u{3}\u{1}\0\u{2}\u{2}F"),
        ("other-lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"),
    ] {
        sink.answer_job(id, Answer::raw(answer));
        let dead = last(&stack, job(&sink, id), "dead").await;
        assert_eq!(dead["last"]["error"], "not-http", "{id}: {dead}");
    }
}

#[tokio::test]
async fn the_status_of_a_failure_counts_though_its_body_is_cut_off() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("gone", Answer::raw("HTTP/1.1 410 Gone\r\ncontent-length: 9\r\n\r\nhalf"));
    let dead = last(&stack, job(&sink, "gone"), "dead").await;
    assert_eq!((&dead["reason"], &dead["last"]["status"]), (&json!("gone"), &json!(410)), "{dead}");
}
