//! A receiver that allocates nothing per request, so that only the allocations of the notifier are counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const LARGEST: usize = 4096;

/// Answers 200 to everything, until it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<AtomicUsize>,
    _listener: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let seen = Arc::<AtomicUsize>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&seen)));
        Self { address, seen, _listener: tasks }
    }

    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Acquire)
    }
}

async fn accept(listener: TcpListener, seen: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream, Arc::clone(&seen)));
    }
}

/// Answers the requests of one connection, of which each comes only after the answer to the one before.
async fn converse(mut stream: TcpStream, seen: Arc<AtomicUsize>) {
    let mut input = [0; LARGEST];
    let mut length = 0;
    while let Ok(more @ 1..) = stream.read(&mut input[length..]).await {
        length += more;
        if is_whole(&input[..length]) {
            length = 0;
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                return;
            }
            seen.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Whether a request has arrived with its whole body, by `content-length`.
fn is_whole(request: &[u8]) -> bool {
    const LENGTH: &[u8] = b"\r\ncontent-length: ";
    let after = |mark: &[u8]| request.windows(mark.len()).position(|w| w == mark).map(|at| at + mark.len());
    let (Some(body), Some(number)) = (after(b"\r\n\r\n"), after(LENGTH)) else { return false };
    let digits = request[number..].iter().take_while(|b| b.is_ascii_digit());
    let length = digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    request.len() >= body + length
}
