//! Clients of HTTP/2 that read nothing of their responses, over sockets, and the time that a stream has, without.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use futures_util::stream;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::super::{Connections, serve};
use super::*;
use crate::shutdown::Shutdown;

/// Longer than anything takes here.
const SOON: Duration = Duration::from_secs(20);

/// Serves an app. Dropping the guard ends it.
async fn served(app: Router, allowed: Connections) -> (SocketAddr, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(serve(listener, app, allowed, None, Shutdown::new(Duration::ZERO)));
    (address, tasks)
}

/// A client of HTTP/2 at 127.0.0.`last` that gives each stream a window of so many bytes. It answers pings.
async fn client(server: SocketAddr, last: u8, window: u32) -> SendRequest<Body> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    let stream = TokioIo::new(socket.connect(server).await.unwrap());
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(stream).await.unwrap();
    TokioExecutor::new().execute(async move { drop(connection.await) });
    sender
}

async fn asked(client: &mut SendRequest<Body>, path: &str) -> Response<Incoming> {
    let request = Request::get(format!("http://h{path}")).body(Body::empty()).unwrap();
    client.ready().await.unwrap();
    client.send_request(request).await.unwrap()
}

async fn text(answer: Response<Incoming>) -> Result<String, axum::Error> {
    let bytes = axum::body::to_bytes(Body::new(answer.into_body()), usize::MAX).await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// Waits until so many permits are free.
async fn free(semaphore: &Semaphore, permits: u32) {
    timeout(SOON, semaphore.acquire_many(permits)).await.expect("the permits come back").unwrap().forget();
    semaphore.add_permits(permits as usize);
}

/// A response without end that holds a permit.
fn endless(permit: OwnedSemaphorePermit) -> Body {
    Body::from_stream(stream::unfold(permit, async |permit| {
        Some((Ok::<_, io::Error>(Bytes::from_static(&[b'x'; 70_000])), permit))
    }))
}

#[tokio::test]
async fn a_stream_whose_client_gives_no_window_is_reset_and_frees_what_it_holds() {
    let semaphore = Arc::new(Semaphore::new(4));
    let permits = Arc::clone(&semaphore);
    let app = Router::new()
        .route("/", get(async || "here"))
        .route("/endless", get(async move || endless(permits.acquire_owned().await.unwrap())));
    let allowed = Connections::fair(100).with_stalled_for(Duration::from_millis(100));
    let (server, _serving) = served(app, allowed).await;
    let mut deaf = client(server, 1, 0).await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(asked(&mut deaf, "/endless").await);
    }
    free(&semaphore, 4).await;
    for answer in answers {
        assert!(timeout(SOON, text(answer)).await.expect("it ends").is_err(), "it was reset");
    }
    // The connection goes on: a head needs no window.
    assert_eq!(asked(&mut deaf, "/").await.status(), StatusCode::OK);
    let mut other = client(server, 1, 1 << 20).await;
    assert_eq!(text(asked(&mut other, "/").await).await.unwrap(), "here");
}

#[tokio::test]
async fn a_response_is_under_way_until_its_client_has_given_window_for_all_of_it() {
    const LENGTH: u32 = 5 * PIECE as u32;
    let app = || Router::new().route("/", get(async || "x".repeat(LENGTH as usize)));
    // Enough for the connection to take the first byte, all but one, and all.
    for window in [1, LENGTH - 1, LENGTH] {
        let is_whole = window == LENGTH;
        let (server, _serving) = served(app(), Connections::fair(4)).await;
        let mut slow = client(server, 1, window).await;
        let held = (asked(&mut slow, "/").await, asked(&mut slow, "/").await);
        assert_eq!(held.0.headers()["content-length"], LENGTH.to_string());
        // One address has two of four places.
        let expected = if is_whole { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        assert_eq!(asked(&mut slow, "/").await.status(), expected, "{window}");

        let allowed = Connections::fair(4).with_stalled_for(Duration::from_millis(100));
        let (server, _serving) = served(app(), allowed).await;
        let mut slow = client(server, 1, window).await;
        let held = (asked(&mut slow, "/").await, asked(&mut slow, "/").await);
        let room = async { while asked(&mut slow, "/").await.status() != StatusCode::OK {} };
        timeout(SOON, room).await.expect("a place comes back");
        assert_eq!(text(held.0).await.is_ok(), is_whole, "{window}");
    }
}

#[tokio::test]
async fn a_body_of_many_pieces_arrives_whole() {
    let app = Router::new().route("/", get(async || "0123456789".repeat(5_000)));
    let (server, _serving) = served(app, Connections::fair(4)).await;
    for window in [100, 1 << 20] {
        let mut client = client(server, 1, window).await;
        let body = timeout(SOON, text(asked(&mut client, "/").await)).await.expect("it arrives").unwrap();
        assert!(body == "0123456789".repeat(5_000), "{} bytes", body.len());
    }
}

#[tokio::test]
async fn requests_over_http_2_count_like_connections() {
    let semaphore = Arc::new(Semaphore::new(100));
    let permits = Arc::clone(&semaphore);
    let app = Router::new().route("/", get(async move || endless(permits.acquire_owned().await.unwrap())));
    let (server, _serving) = served(app, Connections::fair(8)).await;
    let (mut one, mut other) = (client(server, 1, 0).await, client(server, 2, 0).await);
    let mut held = Vec::new();
    for (client, expected) in [(&mut one, 4), (&mut other, 2)] {
        for _ in 0..expected {
            let answer = asked(client, "/").await;
            assert_eq!(answer.status(), StatusCode::OK);
            held.push(answer);
        }
        let refused = asked(client, "/").await;
        assert_eq!(
            (refused.status(), &refused.headers()["retry-after"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
        );
    }
    held.clear();
    free(&semaphore, 100).await;
    assert_eq!(asked(&mut one, "/").await.status(), StatusCode::OK);
}

/// What hyper does with a body, whose client gives window for a piece after each `pause`.
async fn piped(mut pieces: Pieces, pause: Duration) {
    while poll_fn(|cx| Pin::new(&mut pieces).poll_frame(cx)).await.is_some() {
        sleep(pause).await;
    }
}

const STALLED_FOR: Duration = Duration::from_secs(300);

/// How long a stream runs over a body, and whether it reached its end.
async fn ran(body: Body, pause: Duration) -> (Duration, bool) {
    let (mut is_over, start) = (false, Instant::now());
    let stream = async {
        piped(Pieces::new(body, None), pause).await;
        is_over = true;
    };
    until_stalled(stream, STALLED_FOR).await;
    (start.elapsed(), is_over)
}

#[tokio::test(start_paused = true)]
async fn a_client_has_time_for_each_piece() {
    let body = || Body::from(vec![b'x'; 10 * PIECE]);
    let pause = STALLED_FOR - Duration::from_secs(1);
    assert_eq!(ran(body(), pause).await, (11 * pause, true));
    assert_eq!(ran(body(), STALLED_FOR + Duration::from_secs(1)).await, (STALLED_FOR, false));
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_wait_for_its_server_without_end() {
    let pause = 10 * STALLED_FOR;
    let events = || {
        Body::from_stream(stream::unfold(0, move |number| async move {
            sleep(pause).await;
            (number < 3).then(|| (Ok::<_, io::Error>(Bytes::from_static(b"an event")), number + 1))
        }))
    };
    assert!(ran(events(), Duration::ZERO).await.1);
    assert!(!ran(events(), pause).await.1);
}
