//! One kept HTTP connection of the load: sends a request in one piece and reads the whole response.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More headers than the API sends.
const MAX_HEADERS: usize = 32;

/// A connection to the server.
pub(crate) struct Connection {
    stream: TcpStream,
    input: BytesMut,
    /// The length of the last response in `input`.
    used: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    body: &'a [u8],
}

impl<'a> Response<'a> {
    /// The body as text. Bytes that are not UTF-8 become replacement characters.
    pub(crate) fn text(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.body)
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, input: BytesMut::with_capacity(16 * 1024), used: 0 })
    }

    /// Sends a request and reads the whole response, which is valid until the next call.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.input.advance(self.used);
        self.used = 0;
        self.stream.write_all(request).await?;
        let head = loop {
            self.read().await?;
            if let Some(head) = parse(&self.input)? {
                break head;
            }
        };
        let end = head.length + head.body;
        while self.input.len() < end {
            self.read().await?;
        }
        self.used = end;
        Ok(Response { status: head.status, body: &self.input[head.length..end] })
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The status of a response, the length of its head, and that of its body.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: usize,
    body: usize,
}

fn parse(input: &[u8]) -> io::Result<Option<Head>> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut slots);
    let length = match response.parse(input).map_err(io::Error::other)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let length_of_body =
        response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let body = length_of_body.and_then(|header| str::from_utf8(header.value).ok()?.parse().ok());
    let body = body.ok_or_else(|| io::Error::other("a response without a content-length"))?;
    Ok(Some(Head { status: response.code.unwrap_or_default(), length, body }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_length_of_its_body() {
        let text = b"HTTP/1.1 201 Created\r\nContent-Length: 12\r\n\r\nhello";
        let head = parse(text).expect("it is well formed");
        assert_eq!(head, Some(Head { status: 201, length: text.len() - 5, body: 12 }));
        assert_eq!(parse(&text[..30]).expect("so far it is well formed"), None);
    }

    #[test]
    fn an_answer_without_a_length_is_an_error() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
