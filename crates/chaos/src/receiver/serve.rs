//! The connections of the receiver.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use ringback_testkit::history::{Arrive, Digest, Entry, Respond};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Reply, Shared};

/// More headers than any job brings.
const MAX_HEADERS: usize = 64;

/// A request, without its body.
struct Head {
    t: u64,
    path: String,
    headers: Vec<(String, String)>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                // Callers are killed on purpose.
                let _ = converse(stream, &shared).await;
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BytesMut::with_capacity(8 * 1024);
    // A request that does not arrive in full is no delivery.
    while let Some((head, body)) = read_request(&mut stream, &mut input, shared).await? {
        let d = shared.history.next();
        arrive(shared, d, &head, &body);
        let answer = shared.answer(&head.path);
        let is_left = tokio::select! {
            () = sleep(answer.after) => false,
            _ = stream.read_buf(&mut input) => true,
        };
        if is_left || answer.status == 0 {
            respond(shared, d, answer, true);
            return Ok(());
        }
        let text = response(answer);
        let (start, last) = text.split_at(text.len() - 1);
        if stream.write_all(start.as_bytes()).await.is_err() {
            respond(shared, d, answer, true);
            return Ok(());
        }
        respond(shared, d, answer, false);
        stream.write_all(last.as_bytes()).await?;
    }
    Ok(())
}

fn arrive(shared: &Shared, d: u64, head: &Head, body: &[u8]) {
    let job = format!(
        "{}/{}",
        head.header("ringback-topic").unwrap_or_default(),
        head.header("ringback-job-id").unwrap_or_default()
    );
    let due = head.header("ringback-due-at").and_then(|due| due.parse::<jiff::Timestamp>().ok());
    let is_own = |name: &str| name.starts_with("x-") || name.starts_with("ringback-context-");
    let own = head.headers.iter().filter(|(name, _)| is_own(name));
    shared.history.write(&Entry::Arrive(Arrive {
        t: head.t,
        d,
        job: &job,
        attempt: head.header("ringback-attempt").and_then(|attempt| attempt.parse().ok()).unwrap_or_default(),
        due: due.and_then(|due| u64::try_from(due.as_millisecond()).ok()),
        webhook: head.header("webhook-id"),
        stamp: head.header("webhook-timestamp").and_then(|stamp| stamp.parse().ok()),
        signed: None,
        url: &format!("{}{}", shared.base(), head.path),
        body: Digest::of(body),
        headers: Digest::of_headers(own.map(|(name, value)| (name.as_str(), value.as_str()))),
    }));
}

fn respond(shared: &Shared, d: u64, answer: Reply, cut: bool) {
    shared.history.write(&Entry::Respond(Respond {
        t: shared.history.t(),
        d,
        status: answer.status,
        cut,
        unexpected: false,
        retry_after: answer.retry_after.map(|seconds| seconds * 1_000),
    }));
}

fn response(answer: Reply) -> String {
    let after = answer.retry_after.map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    format!("HTTP/1.1 {} \r\n{after}content-length: 2\r\n\r\nok", answer.status)
}

/// Reads the next request; `None` when the caller has closed the connection.
async fn read_request(
    stream: &mut TcpStream,
    input: &mut BytesMut,
    shared: &Shared,
) -> io::Result<Option<(Head, BytesMut)>> {
    let (head, length) = loop {
        if let Some(found) = parse_head(input, shared)? {
            break found;
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    };
    while input.len() < length {
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some((head, input.split_to(length))))
}

/// Takes a complete head from `input`, with the length of its body.
fn parse_head(input: &mut BytesMut, shared: &Shared) -> io::Result<Option<(Head, usize)>> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    let end = match request.parse(input).map_err(io::Error::other)? {
        httparse::Status::Complete(end) => end,
        httparse::Status::Partial => return Ok(None),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = request.headers.iter().map(|header| (header.name.to_ascii_lowercase(), text(header.value)));
    let head = Head {
        t: shared.history.t(),
        path: request.path.unwrap_or_default().to_owned(),
        headers: headers.collect(),
    };
    let length = head.header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let _ = input.split_to(end);
    Ok(Some((head, length)))
}
