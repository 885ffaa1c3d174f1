//! A proxy to a redis-server that knows its protocol. It passes calls on one by one, and answers chosen calls with an
//! error, garbage or half an answer, or not at all.

mod frame;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What a call gets in place of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisFault {
    /// This line of an error. The call does not reach the server.
    Error(&'static str),
    /// Nothing, now and later: the connection swallows everything. The call reaches the server.
    Swallow,
    /// The end of the connection. The call does not reach the server.
    Close,
    /// The end of the connection. The call reaches the server.
    CloseAfter,
    /// Bytes that are not an answer, and the end of the connection. The call reaches the server.
    Garbage,
    /// Half of the answer, and the end of the connection.
    Half,
}

/// A running proxy. Dropping it closes all connections.
pub struct RedisErrors {
    port: u16,
    armed: Arc<Mutex<HashMap<String, RedisFault>>>,
    // Ends the listener and with it every connection.
    _listener: JoinSet<()>,
}

impl RedisErrors {
    /// Starts a proxy to a port of 127.0.0.1.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let armed = Arc::<Mutex<HashMap<_, _>>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, target, Arc::clone(&armed)));
        Self { port, armed, _listener: tasks }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes the next call of a name fail: a script's function, or a command such as `GET` or `FUNCTION LOAD`.
    pub fn arm(&self, call: &str, fault: RedisFault) {
        lock(&self.armed).insert(call.to_owned(), fault);
    }

    /// The names of armed calls that were not made yet.
    pub fn left(&self) -> Vec<String> {
        lock(&self.armed).keys().cloned().collect()
    }

    /// Disarms all calls.
    pub fn disarm(&self) {
        lock(&self.armed).clear();
    }
}

type Armed = Arc<Mutex<HashMap<String, RedisFault>>>;

fn lock(armed: &Mutex<HashMap<String, RedisFault>>) -> MutexGuard<'_, HashMap<String, RedisFault>> {
    armed.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, target: u16, armed: Armed) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((client, _)) = listener.accept().await {
            let armed = Arc::clone(&armed);
            connections.spawn(async move {
                // Either side may end the connection.
                let _ = converse(client, target, &armed).await;
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Passes on a client's calls one after the other, each with its answer or fault. After SUBSCRIBE it passes all bytes.
async fn converse(mut client: TcpStream, target: u16, armed: &Armed) -> io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", target)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut calls, mut answers) = (BytesMut::new(), BytesMut::new());
    loop {
        let call = read_frame(&mut client, &mut calls).await?;
        let name = frame::name(&call);
        let fault = name.as_ref().and_then(|name| lock(armed).remove(name));
        if fault.is_none() && name.is_some_and(|name| name == "SUBSCRIBE") {
            server.write_all(&call).await?;
            server.write_all(&calls).await?;
            copy_bidirectional(&mut client, &mut server).await?;
            return Ok(());
        }
        match fault {
            Some(RedisFault::Error(line)) => {
                client.write_all(format!("-{line}\r\n").as_bytes()).await?;
                continue;
            }
            Some(RedisFault::Close) => return Ok(()),
            _ => server.write_all(&call).await?,
        }
        let answer = read_frame(&mut server, &mut answers).await?;
        match fault {
            None => client.write_all(&answer).await?,
            Some(RedisFault::Garbage) => return client.write_all(b"\x01what\r\n!?\r\n").await,
            Some(RedisFault::Half) => return client.write_all(&answer[..answer.len() / 2]).await,
            Some(RedisFault::Swallow) => loop {
                calls.clear();
                if client.read_buf(&mut calls).await? == 0 {
                    return Ok(());
                }
            },
            Some(RedisFault::Error(_) | RedisFault::Close | RedisFault::CloseAfter) => return Ok(()),
        }
    }
}

async fn read_frame(from: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<BytesMut> {
    loop {
        if let Some(length) = frame::length(buffer) {
            return Ok(buffer.split_to(length));
        }
        if from.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
