//! Receivers that speak HTTP/2: refused and reset streams, limits on streams, and answers before the body was read.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use h2::Reason;
use h2::server::{self, SendResponse};
use http::{Request, Response};
use ringback_testkit::NameServer;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::raw_receiver::{RawReceiver, acceptor, file};
use crate::prelude::*;

const NAME: &str = "shop.example";

/// How many callbacks are made at once.
const TOGETHER: usize = 24;
/// Where callbacks wait for each other: none goes on before all are there.
static ALL_THERE: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(TOGETHER));

/// What a receiver has seen.
#[derive(Default)]
struct ReceiverLog {
    /// Calls by job, and what else must be the same in all of them.
    calls: HashMap<String, Vec<(String, String)>>,
    most_streams: usize,
    connections: usize,
}

type Shared = Arc<Mutex<ReceiverLog>>;
type Answering = SendResponse<bytes::Bytes>;

/// Starts a receiver over TLS that allows `streams` streams on a connection. `answer` handles the nth call of a job,
/// and returns the stream if it is to be answered with 200. Returns the receiver and what it has seen.
async fn receiver<F>(
    streams: u32,
    answer: impl Fn(usize, Request<h2::RecvStream>, Answering) -> F + Copy + Send + Sync + 'static,
) -> (RawReceiver, Shared)
where
    F: Future<Output = Option<Answering>> + Send + 'static,
{
    let seen = Shared::default();
    let shared = Arc::clone(&seen);
    let receiver = RawReceiver::start(move |stream, _| {
        let seen = Arc::clone(&shared);
        async move {
            let Ok(stream) = acceptor("receiver", &["h2"]).accept(stream).await else { return };
            let handshake = server::Builder::new().max_concurrent_streams(streams).handshake(stream);
            let Ok(mut connection) = handshake.await else { return };
            seen.lock().expect("no panic").connections += 1;
            let (mut calls, active) = (JoinSet::new(), Arc::<AtomicUsize>::default());
            while let Some(Ok((request, respond))) = connection.accept().await {
                let now = active.fetch_add(1, Ordering::SeqCst) + 1;
                let header = |name: &str| request.headers()[name].to_str().expect("a text").to_owned();
                let nth = {
                    let mut seen = seen.lock().expect("no panic");
                    let calls = seen.calls.entry(header("ringback-job-id")).or_default();
                    calls.push((header("webhook-id"), header("ringback-attempt")));
                    calls.len()
                };
                let (answer, active) = (answer(nth, request, respond), Arc::clone(&active));
                calls.spawn(async move {
                    let answer = answer.await;
                    active.fetch_sub(1, Ordering::SeqCst);
                    if let Some(mut respond) = answer {
                        // The send fails if the stream has ended.
                        let _ = respond.send_response(Response::new(()), true);
                    }
                });
                let mut seen = seen.lock().expect("no panic");
                seen.most_streams = seen.most_streams.max(now);
            }
        }
    });
    (receiver.await, seen)
}

fn options(names: &NameServer) -> StackOptions {
    names.knows(NAME, &[Ipv4Addr::LOCALHOST.into()]);
    let options = Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string());
    options.env("RINGBACK_CA_FILE", file("authority.pem").to_str().expect("a path"))
}

fn job(id: &str, receiver: &RawReceiver) -> Value {
    json!({"topic": TOPIC, "id": id, "url": receiver.https_url(NAME), "body": "x", "retry": {"preset": "none"}})
}

async fn reset(mut respond: Answering, reason: Reason) -> Option<Answering> {
    respond.send_reset(reason);
    None
}

#[tokio::test]
async fn a_stream_that_is_refused_is_sent_again_a_few_times_as_the_same_attempt() {
    let names = NameServer::start(60);
    let stack = options(&names).env("RINGBACK_ATTEMPT_LOG", "all").start().await;
    let refusing = receiver(100, |nth, _request, mut respond| async move {
        if nth > 3 {
            return Some(respond);
        }
        respond.send_reset(Reason::REFUSED_STREAM);
        None
    });
    let (receiver, seen) = refusing.await;
    let ids: Vec<_> = (0..5).map(|n| format!("refused-{n}")).collect();
    for id in &ids {
        stack.accept(&job(id, &receiver)).await;
    }
    for id in &ids {
        stack.wait_state(TOPIC, id, "done", SOON).await;
        assert_eq!(stack.attempts(TOPIC, id).await.len(), 1);
        let calls = seen.lock().expect("no panic").calls[id].clone();
        assert!(calls.len() == 4 && calls.iter().all(|call| *call == calls[0]), "{calls:?}");
    }
}

#[tokio::test]
async fn a_receiver_that_refuses_every_stream_has_failed_and_one_that_resets_them_is_asked_once() {
    let names = NameServer::start(60);
    let stack = options(&names).start().await;
    for (id, reason, error, calls) in [
        ("refuses", Reason::REFUSED_STREAM, "unprocessed", 5),
        ("resets", Reason::INTERNAL_ERROR, "broken", 1),
    ] {
        let (receiver, seen) = match reason {
            Reason::REFUSED_STREAM => {
                receiver(100, |_, _, respond| reset(respond, Reason::REFUSED_STREAM)).await
            }
            _ => receiver(100, |_, _, respond| reset(respond, Reason::INTERNAL_ERROR)).await,
        };
        stack.accept(&job(id, &receiver)).await;
        let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
        assert_eq!(dead["last"]["error"], error, "{dead}");
        assert_eq!(seen.lock().expect("no panic").calls[id].len(), calls);
    }
}

#[tokio::test]
async fn no_connection_has_more_streams_than_the_receiver_allows_and_no_callback_waits_for_another() {
    let names = NameServer::start(60);
    let stack = options(&names).start().await;
    for streams in [1, 3] {
        // A callback that waited for the end of another one would keep all of them waiting, until they have failed.
        let slow = receiver(streams, |_, _request, respond| async move {
            ALL_THERE.wait().await;
            Some(respond)
        });
        let (receiver, seen) = slow.await;
        let ids: Vec<_> = (0..TOGETHER).map(|n| format!("{streams}-{n}")).collect();
        let jobs: Vec<_> = ids.iter().map(|id| job(id, &receiver)).collect();
        assert_eq!(stack.batch(&jobs).await.1["accepted"], TOGETHER);
        for id in &ids {
            stack.wait_state(TOPIC, id, "done", SOON).await;
        }
        let seen = seen.lock().expect("no panic");
        assert!(seen.most_streams <= streams as usize, "{} streams", seen.most_streams);
        assert!(seen.connections <= TOGETHER, "{} connections", seen.connections);
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_the_body_was_read_counts_over_http2_too() {
    let names = NameServer::start(60);
    let stack = options(&names).start().await;
    let early = receiver(100, |_, request, mut respond| async move {
        let mut gone = Response::new(());
        *gone.status_mut() = http::StatusCode::GONE;
        let _ = respond.send_response(gone, true);
        // The library resets the stream with NO_ERROR then, once the response is sent (RFC 9113, section 8.1).
        drop(request);
        None
    });
    let (receiver, _seen) = early.await;
    let ids: Vec<_> = (0..20).map(|n| format!("early-{n}")).collect();
    for id in &ids {
        let mut job = job(id, &receiver);
        job["body"] = json!("x".repeat(250_000));
        stack.accept(&job).await;
    }
    for id in &ids {
        let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
        assert_eq!(dead["reason"], "gone", "{dead}");
    }
}
