//! The connections of a receiver: read requests, record them, write the answers of the script.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answer::{Answer, End};
use super::recorder::Delivery;
use super::{Arrival, Detail, Shared};
use crate::time::now;

/// More headers than any job may bring.
const MAX_HEADERS: usize = 128;

/// Accepts and serves connections until the task is aborted, which ends the connections too.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                // Callers may go away: tests do that on purpose.
                let _ = converse(stream, &shared).await;
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves the requests of a connection one after the other: records each, and writes its answer after its delay. Counts
/// a hang-up if the caller closes the connection before that.
async fn converse(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BytesMut::with_capacity(8 * 1024);
    while let Some(arrival) = read_request(&mut stream, &mut input, shared.detail).await? {
        // Subscribes before the arrival is visible, because a test that sees it may release it at once.
        let mut releases = shared.releases.subscribe();
        let delivery = shared.recorder.as_ref().map(|recorder| recorder.arrived(&arrival));
        let answer = shared.arrived(arrival);
        if answer.held || !answer.after.is_zero() {
            let due = async {
                sleep(answer.after).await;
                if answer.held {
                    let _ = releases.changed().await;
                }
            };
            tokio::select! {
                () = due => {}
                // The client sends no second request before the first answer, so it has closed the connection.
                _ = stream.read_buf(&mut input) => {
                    shared.hung_up.fetch_add(1, Ordering::AcqRel);
                    delivery.iter().for_each(|delivery| delivery.hung_up());
                    return Ok(());
                }
            }
        }
        if !write_answer(&mut stream, &answer, delivery.as_ref()).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads the next request. Returns `None` when the caller has closed the connection.
async fn read_request(
    stream: &mut TcpStream,
    input: &mut BytesMut,
    detail: Detail,
) -> io::Result<Option<Arrival>> {
    let (head, length) = loop {
        if let Some(found) = parse_head(input, detail)? {
            break found;
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    };
    let at = head.at;
    while input.len() < length {
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
    let body = input.split_to(length).freeze();
    Ok(Some(Arrival { at, method: head.method, path: head.path, headers: head.headers, body }))
}

/// The head of a request.
struct Head {
    at: Timestamp,
    method: String,
    path: String,
    headers: HeaderMap,
}

/// Removes a complete head from `input`. Returns it, with the headers that `detail` needs, and the length of the body;
/// `None` while the head is incomplete.
fn parse_head(input: &mut BytesMut, detail: Detail) -> io::Result<Option<(Head, usize)>> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    let end = match request.parse(input).map_err(io::Error::other)? {
        httparse::Status::Complete(end) => end,
        httparse::Status::Partial => return Ok(None),
    };
    let at = now();
    let mut length = 0;
    let mut headers = HeaderMap::new();
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = str::from_utf8(header.value).map_err(io::Error::other)?;
            length = text.parse().map_err(io::Error::other)?;
        }
        if detail != Detail::CountById || header.name.eq_ignore_ascii_case("ringback-job-id") {
            let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(io::Error::other)?;
            headers.append(name, HeaderValue::from_bytes(header.value).map_err(io::Error::other)?);
        }
    }
    let head = Head {
        at,
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        headers,
    };
    let _ = input.split_to(end);
    Ok(Some((head, length)))
}

/// Writes an answer, and records the delivery before the last byte. Returns whether the connection stays open.
async fn write_answer(
    stream: &mut TcpStream,
    answer: &Answer,
    delivery: Option<&Delivery<'_>>,
) -> io::Result<bool> {
    let mut bytes = match &answer.end {
        End::Close => Vec::new(),
        End::Raw(bytes) => bytes.to_vec(),
        End::Response { status, headers, body } => response(*status, headers, body),
    };
    let until_last = bytes.len().saturating_sub(1);
    bytes.extend_from_slice(&answer.extra);
    let (first, last) = bytes.split_at(until_last);
    if stream.write_all(first).await.is_err() {
        delivery.iter().for_each(|delivery| delivery.hung_up());
        return Ok(false);
    }
    delivery.iter().for_each(|delivery| delivery.answers(answer));
    stream.write_all(last).await?;
    match answer.end {
        End::Close => Ok(false),
        End::Raw(_) => stream.shutdown().await.map(|()| false),
        End::Response { .. } => Ok(true),
    }
}

fn response(status: u16, headers: &[(String, String)], body: &Bytes) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} \r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    // A 204 and a 304 have no body and must not have a content-length.
    if !matches!(status, 204 | 304) {
        let _ = write!(head, "content-length: {}\r\n", body.len());
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
