//! The connections of the benchmarks' receiver: parses requests, answers them and records them on the board.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf as _, BytesMut};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::board::{Arrival, Board, Channel};
use ringback_testkit::now;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// More headers than a job of the benchmarks brings.
const MAX_HEADERS: usize = 64;

/// Accepts connections on all listeners until it is dropped, which ends the connections too.
pub(crate) async fn all(listeners: Vec<TcpListener>, board: &Arc<Mutex<Board>>) {
    let mut running = JoinSet::new();
    for listener in listeners {
        let board = Arc::clone(board);
        running.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    let board = Arc::clone(&board);
                    // An error only means that the caller has gone.
                    connections.spawn(async move { converse(stream, &board).await.is_ok() });
                }
                while connections.try_join_next().is_some() {}
            }
        });
    }
    while running.join_next().await.is_some() {}
}

async fn converse(mut stream: TcpStream, board: &Mutex<Board>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BytesMut::with_capacity(16 * 1024);
    loop {
        let (arrival, length) = loop {
            if let Some(found) = parse(&input)? {
                break found;
            }
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        };
        while input.len() < length {
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        }
        input.advance(length);
        if arrival.channel == Channel::Hang {
            // The caller gives up sooner or later.
            while stream.read_buf(&mut input).await? > 0 {}
            return Ok(());
        }
        board.lock().unwrap_or_else(PoisonError::into_inner).record(&arrival, Instant::now());
        stream.write_all(ANSWER).await?;
    }
}

/// Parses a request. Returns its arrival and its length with the body; `None` while the head is incomplete.
fn parse(input: &[u8]) -> io::Result<Option<(Arrival, usize)>> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    let head = match request.parse(input).map_err(io::Error::other)? {
        httparse::Status::Complete(head) => head,
        httparse::Status::Partial => return Ok(None),
    };
    let at = now();
    let channel = Channel::of(request.path.unwrap_or_default());
    let mut arrival = Arrival { at, due: None, number: None, channel };
    let (mut body, mut fired) = (0, None);
    for header in request.headers.iter() {
        let Ok(value) = str::from_utf8(header.value) else { continue };
        if header.name.eq_ignore_ascii_case("content-length") {
            body = value.parse().map_err(io::Error::other)?;
        } else if header.name.eq_ignore_ascii_case("ringback-job-id") {
            // The id of a firing ends with its time. The job itself is due when it is submitted.
            let (name, time) = value.split_once('~').map_or((value, None), |(name, time)| (name, Some(time)));
            fired = time.and_then(time_of_firing);
            arrival.number = name.rsplit('-').next().and_then(|digits| digits.parse().ok());
        } else if header.name.eq_ignore_ascii_case("ringback-due-at") {
            arrival.due = value.parse().ok();
        }
    }
    arrival.due = fired.or(arrival.due);
    Ok(Some((arrival, head + body)))
}

/// The time in the id of a firing, such as `20261126T080000.123Z`; `None` if the text is no such time.
fn time_of_firing(text: &str) -> Option<Timestamp> {
    DateTime::strptime("%Y%m%dT%H%M%S%.fZ", text).ok()?.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_job_and_when_it_was_due() {
        let text =
            b"POST /beside HTTP/1.1\r\nContent-Length: 2\r\nringback-job-id: order-0000000000000042\r\n\
            ringback-due-at: 2026-11-20T11:13:47.779Z\r\n\r\n";
        let (arrival, length) = parse(text).expect("it is well formed").expect("it is complete");
        assert_eq!((arrival.number, arrival.channel, length), (Some(42), Channel::Beside, text.len() + 2));
        assert_eq!(arrival.due.map(|due| due.to_string()).as_deref(), Some("2026-11-20T11:13:47.779Z"));
        assert!(arrival.at > arrival.due.expect("it was due"));
    }

    #[test]
    fn a_firing_was_due_at_the_time_in_its_id() {
        for (id, at) in [
            ("20261120T111347.779Z", "2026-11-20T11:13:47.779Z"),
            ("20261120T111347Z", "2026-11-20T11:13:47Z"),
        ] {
            let text = format!(
                "POST /main HTTP/1.1\r\nringback-job-id: schedule-00000042~{id}\r\n\
                ringback-due-at: 2026-11-20T11:13:48.000Z\r\ncontent-length: 0\r\n\r\n"
            );
            let (arrival, _) = parse(text.as_bytes()).expect("it is well formed").expect("it is complete");
            assert_eq!(
                (arrival.number, arrival.due.map(|due| due.to_string())),
                (Some(42), Some(at.to_owned()))
            );
        }
    }
}
