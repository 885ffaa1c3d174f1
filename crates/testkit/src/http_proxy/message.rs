//! Messages of HTTP/1.1 with a `content-length`, and connections that read and write them.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What ends a head.
const END: &[u8] = b"\r\n\r\n";

/// A request or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpMessage {
    /// The request line or the status line.
    pub first_line: String,
    /// Names in lower case, and values, without the length of the body.
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpMessage {
    /// An answer without a body.
    pub fn answer(status: u16) -> Self {
        Self { first_line: format!("HTTP/1.1 {status} "), headers: Vec::new(), body: Vec::new() }
    }

    pub fn status(&self) -> u16 {
        let status = self.first_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{} is not a status line", self.first_line))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub fn remove(&mut self, name: &str) {
        self.headers.retain(|(known, _)| known != name);
    }

    /// Parses a head. Returns the message without body and `content-length`, and the value of that header, 0 without
    /// one.
    fn parse(head: &[u8]) -> (Self, usize) {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let first_line = lines.next().unwrap_or_default().to_owned();
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        let mut message = Self { first_line, headers: headers.collect(), body: Vec::new() };
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        message.remove("content-length");
        (message, length.unwrap_or_default())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.first_line);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", self.body.len());
        [head.as_bytes(), &self.body].concat()
    }
}

/// One side of a proxy.
pub(super) struct Peer {
    stream: TcpStream,
    /// What was read and not used yet.
    rest: Vec<u8>,
}

impl Peer {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, rest: Vec::new() })
    }

    /// Reads the next message with its body. Fails at the end of the connection.
    pub(super) async fn read(&mut self) -> io::Result<HttpMessage> {
        let end = loop {
            if let Some(end) = self.rest.windows(END.len()).position(|bytes| bytes == END) {
                break end;
            }
            self.read_more().await?;
        };
        let (mut message, length) = HttpMessage::parse(&self.rest[..end]);
        let end = end + END.len() + length;
        while self.rest.len() < end {
            self.read_more().await?;
        }
        let rest = self.rest.split_off(end);
        message.body = std::mem::replace(&mut self.rest, rest).split_off(end - length);
        Ok(message)
    }

    /// Reads some bytes. Fails at the end of the connection.
    pub(super) async fn read_more(&mut self) -> io::Result<()> {
        // With this room, bytes that are sent together are read together.
        self.rest.reserve(8 * 1024);
        match self.stream.read_buf(&mut self.rest).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Writes a message, then the bytes `extra`.
    pub(super) async fn write(&mut self, message: &HttpMessage, extra: &[u8]) -> io::Result<()> {
        self.stream.write_all(&[&message.to_bytes(), extra].concat()).await
    }

    /// Removes and returns the bytes that were read after the last message.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }
}
