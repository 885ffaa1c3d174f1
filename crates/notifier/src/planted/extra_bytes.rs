//! A client that keeps a connection whose response had extra bytes, and takes them for the next response.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{LocalAnswer, Receiver};

/// Connections that are idle, by host and port.
type Idle = Mutex<HashMap<String, Vec<Connection>>>;

#[derive(Default)]
pub(super) struct KeepingClient(Arc<Idle>);

struct Connection {
    stream: TcpStream,
    /// What was read and not used yet.
    read: Vec<u8>,
}

impl Receiver for KeepingClient {
    fn receive(&self, request: Request<Bytes>) -> LocalAnswer {
        let idle = Arc::clone(&self.0);
        Box::pin(async move {
            let host = request.uri().authority()?.to_string();
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&host).and_then(Vec::pop);
            let mut connection = match kept {
                Some(connection) => connection,
                None => Connection { stream: TcpStream::connect(&host).await.ok()?, read: Vec::new() },
            };
            let answer = connection.exchange(&host, &request).await?;
            idle.lock().unwrap_or_else(PoisonError::into_inner).entry(host).or_default().push(connection);
            Some(answer)
        })
    }
}

impl Connection {
    async fn exchange(&mut self, host: &str, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let path = request.uri().path_and_query()?;
        let mut head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\n").into_bytes();
        for (name, value) in
            request.headers().iter().filter(|(name, _)| *name != http::header::CONTENT_LENGTH)
        {
            head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        write!(head, "content-length: {}\r\n\r\n", request.body().len()).ok()?;
        head.extend_from_slice(request.body());
        self.stream.write_all(&head).await.ok()?;
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8_lossy(&self.read[..end]).to_lowercase();
        let mut response = Response::builder().status(head.split(' ').nth(1)?.parse::<u16>().ok()?);
        for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
            response = response.header(name, value);
        }
        let length: usize = response.headers_ref()?.get("content-length")?.to_str().ok()?.parse().ok()?;
        while self.read.len() < end + length {
            self.read_more().await?;
        }
        let rest = self.read.split_off(end + length);
        let body = Bytes::from(std::mem::replace(&mut self.read, rest).split_off(end));
        response.body(body).ok()
    }

    async fn read_more(&mut self) -> Option<()> {
        let count = self.stream.read_buf(&mut self.read).await.ok()?;
        (count > 0).then_some(())
    }
}
