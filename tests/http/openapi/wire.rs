//! Sends raw HTTP requests, which no client corrects: one connection each, read to its end.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::timeout;

use super::cases::Case;

/// Whatever takes longer hangs: two seconds are promised, and a request takes its time to be written.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// A header line that only streams of events have.
const EVENTS: &[u8] = b"content-type: text/event-stream";

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The media type without its parameters.
    pub(crate) content_type: String,
    /// The names of its headers, in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// Sends a request and reads the response. The error says why there is none.
pub(crate) async fn send(address: SocketAddr, case: &Case) -> Result<Answer, String> {
    let mut head =
        format!("{} {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n", case.method, case.target);
    for (name, value) in &case.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", case.body.len());
    let exchange = async {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("no connection: {error}"))?;
        let (mut reading, mut writing) = stream.into_split();
        // A request that is refused before it was read may break the write.
        let write = async {
            let sent = writing.write_all(head.as_bytes()).await;
            if sent.is_ok() { writing.write_all(&case.body).await } else { sent }
        };
        let mut answer = Vec::new();
        let read = read(&mut reading, &mut answer);
        let (_, read) = tokio::join!(write, read);
        parse(&answer).ok_or_else(|| format!("no answer: {read:?}, {} bytes", answer.len()))
    };
    timeout(ANSWER_WITHIN, exchange)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {ANSWER_WITHIN:?}")))
}

/// Reads a response to its end. Of a stream of events, which has no end, it reads the head and the first comment.
async fn read(reading: &mut OwnedReadHalf, answer: &mut Vec<u8>) -> std::io::Result<()> {
    while reading.read_buf(answer).await? > 0 {
        if answer.ends_with(b"\n\n\r\n") && answer.windows(EVENTS.len()).any(|part| part == EVENTS) {
            answer.extend_from_slice(b"0\r\n\r\n");
            return Ok(());
        }
    }
    Ok(())
}

fn parse(raw: &[u8]) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(raw).ok()? else { return None };
    let header = |wanted: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(wanted))?;
        std::str::from_utf8(found.value).ok()
    };
    let content_type = header("content-type").unwrap_or_default().split(';').next()?.trim().to_owned();
    let body = match header("transfer-encoding") {
        Some("chunked") => unchunked(&raw[length..])?,
        _ => raw[length..].to_vec(),
    };
    let headers = response.headers.iter().map(|header| header.name.to_ascii_lowercase()).collect();
    Some(Answer { status: response.code?, content_type, headers, body })
}

/// Decodes a chunked body (RFC 9112, section 7.1); `None` if it breaks off.
fn unchunked(mut raw: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((start, size)) = httparse::parse_chunk_size(raw).ok()? else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(raw.get(start..start + size)?);
        raw = raw.get(start + size + 2..)?;
    }
}
