//! Connections, their limits and their end, over real sockets.

use std::future::pending;
use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;

async fn started() -> (SocketAddr, Shutdown, JoinHandle<()>) {
    let app = Router::new().route("/", get(async || "here"));
    serving(app.route("/slow", post(async |body: String| body))).await
}

async fn serving(app: Router) -> (SocketAddr, Shutdown, JoinHandle<()>) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), Shutdown::new(Duration::from_secs(30)));
    let tasks = tokio::runtime::Handle::current();
    let serving = tasks.spawn(serve(listener, app, Connections::fair(16), None, shutdown.clone()));
    (address, shutdown, serving)
}

async fn asked(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_connection_that_is_kept_alive_is_closed_at_the_shutdown() {
    let (address, shutdown, serving) = started().await;
    let mut stream = asked(address, "GET / HTTP/1.1\r\nhost: h\r\n\r\n").await;
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    shutdown.begin();
    serving.await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("here"), "{rest}");
}

#[tokio::test]
async fn a_silent_client_does_not_delay_the_shutdown() {
    let (address, shutdown, serving) = started().await;
    let _silent = TcpStream::connect(address).await.unwrap();
    shutdown.begin();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_head_that_does_not_fit_the_buffer_is_refused() {
    let (address, _shutdown, _serving) = started().await;
    for (length, status) in [(31 * 1024, "200"), (65 * 1024, "431")] {
        let request = format!("GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "x".repeat(length));
        let mut stream = asked(address, &request).await;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(start, format!("HTTP/1.1 {status}").as_bytes(), "{length}");
    }
}

#[tokio::test]
async fn a_connection_too_many_is_closed_and_another_address_is_served() {
    let (address, _shutdown, _serving) = started().await;
    let from = async |last: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").await.ok();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.ok().map(|_| stream)
    };
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(from(1).await.expect("it is served"));
    }
    assert!(from(1).await.is_none(), "half of 16 are open");
    assert!(from(2).await.is_some());
    idle.pop();
    let mut again = from(1).await;
    for _ in 0..100 {
        if again.is_some() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
        again = from(1).await;
    }
    assert!(again.is_some(), "one that ended leaves its place");
}

#[tokio::test]
async fn a_burst_of_connections_is_served_to_the_last() {
    let app = Router::new().route("/", get(async || "here"));
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), Shutdown::new(Duration::from_secs(30)));
    let (serving, began) = (Connections::fair_and_paced(1_000), Instant::now());
    let serving = serve(listener, app, serving, None, shutdown.clone());
    let serving = tokio::runtime::Handle::current().spawn(serving);
    let mut streams = Vec::new();
    for _ in 0..400 {
        streams.push(asked(address, "GET / HTTP/1.1\r\nhost: h\r\n\r\n").await);
    }
    for stream in &mut streams {
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
    }
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    shutdown.begin();
    serving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_within_the_head_is_closed() {
    for start in ["", "GET / HT", "PRI * HT"] {
        let (address, _shutdown, _serving) = started().await;
        let mut stream = asked(address, start).await;
        let closed = timeout(2 * HEAD_WITHIN, stream.read_to_end(&mut Vec::new())).await;
        // An error is a reset, since the client's bytes were never read.
        assert!(closed.is_ok(), "{start}");
    }
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_after_the_grace_period() {
    let (address, shutdown, serving) = started().await;
    let mut stream = asked(address, "POST /slow HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc").await;
    // A second connection is answered, so that the first is being read by now.
    let mut other = asked(address, "GET / HTTP/1.1\r\nhost: h\r\n\r\n").await;
    other.read_exact(&mut [0; 12]).await.unwrap();
    shutdown.expire();
    serving.await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn requests_and_bodies_of_connections_that_are_cut_end_with_them() {
    let (holder, mut held) = mpsc::channel(2);
    let of_body = holder.clone();
    let wait = async move || {
        holder.send(()).await.unwrap();
        pending::<()>().await;
    };
    let body = async move || {
        Body::from_stream(stream::once(async move {
            of_body.send(()).await.unwrap();
            pending::<io::Result<Bytes>>().await
        }))
    };
    let app = Router::new().route("/wait", get(wait)).route("/body", get(body));
    let (address, shutdown, serving) = serving(app).await;
    let _first = asked(address, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n").await;
    let _second = asked(address, "GET /body HTTP/1.1\r\nhost: h\r\n\r\n").await;
    assert_eq!((held.recv().await, held.recv().await), (Some(()), Some(())), "both are under way");
    shutdown.expire();
    serving.await.unwrap();
    // A sender that is left would keep the channel open.
    let ended = timeout(LAST_REQUESTS, held.recv()).await;
    assert_eq!(ended, Ok(None));
}
