//! Limits of one address at an API: half of the exports and of the listeners, and the time in which it must read.
//! Clients are at several loopback addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::metrics::noop::NoopMeterProvider;
use reqwest::{Client, Response, StatusCode};
use ringback_api::Config;
use ringback_core::clock::SystemClock;
use ringback_service::http_server::{self, Connections};
use ringback_service::settings::load_from;
use ringback_service::{Context, Health, Scrapes, Shutdown, Tasks};
use ringback_store::{Memory, Store, settings};
use ringback_testkit::{Role, http_client};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::http::export_import::accept_much;
use crate::prelude::*;

/// A client at 127.0.0.`last`.
pub(crate) fn client(last: u8) -> Client {
    // Installs what TLS needs.
    drop(http_client());
    let builder = Client::builder().no_proxy().tls_certs_only([]);
    builder.local_address(IpAddr::from([127, 0, 0, last])).build().expect("a client")
}

async fn ask(client: &Client, url: &str) -> Response {
    client.get(url).send().await.expect("an answer")
}

/// The status and detail of a refusal, which must have `retry-after: 1`.
async fn problem(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["retry-after"], "1");
    let problem: Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
    (status, problem["detail"].as_str().expect("a detail").to_owned())
}

async fn expect_refusal(client: &Client, url: &str, why: &str) {
    let (status, detail) = problem(ask(client, url).await).await;
    assert!(status == 503 && detail.contains(why), "{status} {detail}");
}

/// Repeats a call until it is answered 200, and returns the answer.
async fn expect_room(client: &Client, url: &str) -> Response {
    eventually(SOON, "there is room", async || match ask(client, url).await {
        answer if answer.status() == 200 => Ok(answer),
        answer => Err(answer.status()),
    })
    .await
}

#[tokio::test]
async fn one_address_has_half_of_the_exports() {
    let stack = StackOptions::api_only().start().await;
    accept_much(&stack).await;
    let url = stack.url("/v1/export");
    let (greedy, topics) = (client(1), stack.url("/v1/export/topics"));
    let (first, second) = (ask(&greedy, &url).await, ask(&greedy, &url).await);
    assert_eq!([first.status(), second.status()], [200, 200]);
    for url in [&url, &topics] {
        expect_refusal(&greedy, url, "2 exports of your tenant, or of your address, are under way").await;
    }
    let (other, third) = (client(2), client(3));
    let mut held = vec![ask(&other, &url).await];
    expect_refusal(&other, &url, "1 exports of your tenant, or of your address, are under way").await;
    held.push(ask(&third, &url).await);
    expect_refusal(&client(4), &url, "4 exports are under way").await;
    drop(first);
    held.clear();
    expect_room(&greedy, &url).await;
}

#[tokio::test]
async fn one_address_has_half_of_the_listeners() {
    let options = Stack::options().role_env(Role::Api, "RINGBACK_EVENT_LISTENERS", "3");
    let stack = options.count(Role::Carrier, 0).count(Role::Notifier, 0).start().await;
    let (one, other, url) = (client(1), client(2), stack.url("/v1/events"));
    let mut held = vec![ask(&one, &url).await, ask(&one, &url).await];
    expect_refusal(&one, &url, "2 others of your tenant, or at your address, are listening").await;
    held.push(ask(&other, &url).await);
    assert!(held.iter().all(|listener| listener.status() == 200));
    expect_refusal(&other, &url, "3 others are listening").await;
    held.clear();
    expect_room(&one, &url).await;
}

/// Serves the API over a store in memory in this process. A client may read nothing for `stalled_for`, and the system
/// buffers little for it. Returns the address, and the tasks, which end the API when dropped.
pub(crate) async fn served(stalled_for: Duration) -> (SocketAddr, tokio::task::JoinSet<()>) {
    let (config, mistakes) = load_from(Config::SETTINGS, &[("EGRESS_ALLOW", "127.0.0.0/8")], Config::load);
    assert_eq!(mistakes, [""; 0]);
    let store = Store::in_memory(&Memory::new(SystemClock), settings::defaults(Duration::from_secs(10)));
    store.prepare().await.expect("the store is fit");
    let shutdown = Shutdown::new(Duration::ZERO);
    let context = Context {
        health: Health::new(&shutdown),
        meter: NoopMeterProvider::new().meter("test"),
        scrapes: Scrapes::default(),
        clock: Arc::new(SystemClock),
        shutdown: shutdown.clone(),
    };
    let mut tasks = Tasks::new();
    let app = ringback_api::router(&config, &store, &context, &mut tasks);
    let socket = TcpSocket::new_v4().expect("a socket");
    // Connections take it from the socket that listens.
    socket.set_send_buffer_size(4096).expect("it is set");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let listener = socket.listen(1024).expect("it listens");
    let address = listener.local_addr().expect("an address");
    let allowed = Connections::fair(1000).with_stalled_for(stalled_for);
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        let _store = store;
        tokio::select! {
            () = http_server::serve(listener, app, allowed, None, shutdown.clone()) => {}
            ended = tasks.join_all(&shutdown) => panic!("a task has ended: {ended:?}"),
        }
    });
    (address, serving)
}

/// Sends a `GET` from 127.0.0.`last`, and returns the connection without reading the answer.
pub(crate) async fn ask_and_read_nothing(address: SocketAddr, last: u8, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("it is set");
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).expect("an address");
    let mut stream = socket.connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    stream
}

#[tokio::test]
async fn exports_of_which_nothing_is_read_break_off_and_leave_their_places() {
    let (address, _serving) = served(Duration::from_secs(1)).await;
    let url = |path: &str| format!("http://{address}{path}");
    let job =
        json!({"topic": TOPIC, "delay": "1h", "url": url("/"), "body": "x".repeat(250_000)}).to_string();
    let submit = async || {
        let request = client(9).post(url("/v1/jobs")).header("content-type", "application/json");
        request.body(job.clone()).send().await.expect("an answer").status()
    };
    for _ in 0..4 {
        eventually(SOON, "a job is accepted", async || match submit().await {
            StatusCode::CREATED => Ok(()),
            status => Err(status),
        })
        .await;
    }
    let mut unread = Vec::new();
    // Uses all four places.
    for last in [1, 1, 2, 3] {
        unread.push(ask_and_read_nothing(address, last, "/v1/export").await);
    }
    eventually(SOON, "the places are taken", async || {
        match ask(&client(4), &url("/v1/export")).await.status() {
            StatusCode::SERVICE_UNAVAILABLE => Ok(()),
            status => Err(status),
        }
    })
    .await;
    let export = expect_room(&client(4), &url("/v1/export")).await;
    assert!(export.text().await.expect("it is whole").ends_with('\n'));
    let mut broken = 0;
    for mut stream in unread {
        let mut text = Vec::new();
        let ended = timeout(SOON, stream.read_to_end(&mut text)).await.expect("it ends");
        broken += usize::from(ended.is_err() || !text.ends_with(b"\r\n0\r\n\r\n"));
    }
    assert!(broken > 0, "the export of which nothing was read is not whole");
}
