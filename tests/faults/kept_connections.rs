//! Kept connections that receivers end as the next callback comes: it is sent again at once, which is no failure.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use ringback_testkit::NameServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::raw_receiver::{Boxed, RawReceiver, acceptor, file, header, read_request};
use crate::prelude::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// How a receiver ends a kept connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// When the next request was read.
    Closes,
    Resets,
    /// When the first byte of the next request was read.
    ClosesAtFirstByte,
    /// When the first request was answered.
    ClosesAtOnce,
    /// When the next job is about to be submitted, and when it was accepted: before its request comes, at the same
    /// moment, or later.
    ClosesAtSubmit,
    ClosesAtAccept,
}

fn job(id: &str, url: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": url, "body": {"id": id}, "retry": {"preset": "none"}})
}

/// Starts a receiver whose first connection ends as `end` says, at its second request or at the `moment`. Returns it
/// and the heads of the requests that came.
async fn ending(end: End, tls: bool, moment: Arc<Notify>) -> (RawReceiver, Arc<Mutex<Vec<String>>>) {
    let came = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&came);
    let receiver = RawReceiver::start(move |stream, number| {
        let (seen, moment) = (Arc::clone(&seen), Arc::clone(&moment));
        async move {
            if end == End::Resets && number == 1 {
                stream.set_zero_linger().expect("a socket");
            }
            let mut stream: Boxed = if tls {
                let Ok(stream) = acceptor("receiver", &["http/1.1"]).accept(stream).await else { return };
                Box::pin(stream)
            } else {
                Box::pin(stream)
            };
            for nth in 1.. {
                if (number, nth) == (1, 2) {
                    match end {
                        End::ClosesAtOnce => return,
                        End::ClosesAtSubmit | End::ClosesAtAccept => return moment.notified().await,
                        End::ClosesAtFirstByte => return drop(stream.read_u8().await),
                        End::Closes | End::Resets => {}
                    }
                }
                let Some(head) = read_request(&mut stream).await else { return };
                seen.lock().expect("no panic").push(head);
                if (number, nth) == (1, 2) || stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    });
    (receiver.await, came)
}

#[tokio::test]
async fn a_callback_on_a_kept_connection_that_ends_is_sent_once_more_and_has_not_failed() {
    let (names, ca) = (NameServer::start(60), file("authority.pem"));
    names.knows("shop.example", &[Ipv4Addr::LOCALHOST.into()]);
    let options = Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string());
    let stack = options.env("RINGBACK_CA_FILE", ca.to_str().expect("a path")).start().await;
    stack.set_policy(TOPIC, &json!({"attempts": "all"})).await;
    let ends = [
        End::Closes,
        End::Resets,
        End::ClosesAtFirstByte,
        End::ClosesAtOnce,
        End::ClosesAtSubmit,
        End::ClosesAtAccept,
    ];
    for (n, end) in ends.into_iter().enumerate() {
        for tls in [false, true] {
            let moment = Arc::<Notify>::default();
            let (receiver, came) = ending(end, tls, Arc::clone(&moment)).await;
            let url = if tls { receiver.https_url("shop.example") } else { receiver.url() };
            let ids = [1, 2].map(|nth| format!("{n}-{tls}-{nth}"));
            for id in &ids {
                let is_second = *id == ids[1];
                if is_second && end == End::ClosesAtSubmit {
                    moment.notify_one();
                }
                stack.accept(&job(id, &url)).await;
                if is_second && end == End::ClosesAtAccept {
                    moment.notify_one();
                }
                stack.wait_state(TOPIC, id, "done", SOON).await;
            }
            let attempts = stack.attempts(TOPIC, &ids[1]).await;
            assert_eq!(attempts.len(), 1, "{end:?}: {attempts:?}");
            let came = came.lock().expect("no panic").clone();
            if !matches!(end, End::Closes | End::Resets) {
                continue;
            }
            assert_eq!(came.len(), 3, "{end:?}");
            for name in ["webhook-id", "ringback-attempt"] {
                assert_eq!(header(&came[1], name), header(&came[2], name), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_callback_is_sent_no_more_than_twice_and_on_a_new_connection_once() {
    let stack = Stack::start().await;
    let came = Arc::<Mutex<usize>>::default();
    let seen = Arc::clone(&came);
    // Answers the very first request, and none after it.
    let receiver = RawReceiver::start(move |mut stream, _| {
        let seen = Arc::clone(&seen);
        async move {
            while read_request(&mut stream).await.is_some() {
                let is_first = {
                    let mut seen = seen.lock().expect("no panic");
                    *seen += 1;
                    *seen == 1
                };
                if !is_first || stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    for (id, state, expected) in [("kept", "done", 1), ("twice", "dead", 3), ("once", "dead", 4)] {
        stack.accept(&job(id, &receiver.url())).await;
        let ended = stack.wait_state(TOPIC, id, state, SOON).await;
        assert_eq!(*came.lock().expect("no panic"), expected, "{id}");
        assert!(state == "done" || ended["last"]["error"] == "broken", "{ended}");
    }
}
