//! What one address may hold of an API, and for how long: clients at several loopback addresses, and clients of HTTP/2
//! that read nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Version;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::metrics::noop::NoopMeterProvider;
use reqwest::{Client, ClientBuilder, Response};
use ringback_api::Config;
use ringback_core::clock::SystemClock;
use ringback_service::http_server::{self, Connections};
use ringback_service::settings::load_from;
use ringback_service::{Context, Health, Scrapes, Shutdown, Tasks};
use ringback_store::{Memory, Store, settings};
use ringback_testkit::{Role, Stack, StackOptions, eventually, http_client};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::http::export_import::accept_much;
use crate::sample_jobs::{SOON, TOPIC};

/// A client at 127.0.0.`last`.
pub(crate) fn client(last: u8) -> Client {
    at(last).build().expect("a client")
}

fn at(last: u8) -> ClientBuilder {
    // Installs what TLS needs.
    drop(http_client());
    Client::builder().no_proxy().tls_certs_only([]).local_address(IpAddr::from([127, 0, 0, last]))
}

/// A client of HTTP/2 whose streams have a window of so many bytes. It answers pings.
fn http2(last: u8, window: u32) -> Client {
    at(last).http2_prior_knowledge().http2_initial_stream_window_size(window).build().expect("a client")
}

async fn ask(client: &Client, url: &str) -> Response {
    client.get(url).send().await.expect("an answer")
}

/// The status of an answer, and why.
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

/// Waits until a call is answered 200.
async fn expect_room(client: &Client, url: &str) -> Response {
    eventually(SOON, "there is room", async || match ask(client, url).await {
        answer if answer.status() == 200 => Ok(answer),
        answer => Err(answer.status()),
    })
    .await
}

#[tokio::test]
async fn one_address_has_half_of_the_exports_also_over_one_connection_of_http_2() {
    let stack = StackOptions::api_only().start().await;
    accept_much(&stack).await;
    let url = stack.url("/v1/export");
    let (greedy, topics) = (http2(1, 1000), stack.url("/v1/export/topics"));
    let (first, second) = (ask(&greedy, &url).await, ask(&greedy, &url).await);
    assert_eq!([first.status(), second.status()], [200, 200]);
    assert_eq!(first.version(), Version::HTTP_2);
    for url in [&url, &topics] {
        expect_refusal(&greedy, url, "2 exports of your tenant, or of your address, are under way").await;
        expect_refusal(&client(1), url, "2 exports of your tenant, or of your address, are under way").await;
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

/// The routes of an API over a store in memory, served in this process on a port of its own, where a client may read
/// nothing for a short time. Returns its address; dropping the tasks ends it.
async fn served() -> (SocketAddr, tokio::task::JoinSet<()>) {
    let (mut config, mistakes) =
        load_from(Config::SETTINGS, &[("EGRESS_ALLOW", "127.0.0.0/8")], Config::load);
    assert_eq!(mistakes, [""; 0]);
    config.event_listeners = 4;
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
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let allowed = Connections::fair(100).with_stalled_for(Duration::from_millis(200));
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

#[tokio::test]
async fn readers_that_give_no_window_leave_exports_and_event_streams() {
    let (address, _serving) = served().await;
    let url = |path: &str| format!("http://{address}{path}");
    let job = json!({"topic": TOPIC, "delay": "1h", "url": format!("http://{address}/"), "body": "x".repeat(100_000)});
    let submit = async || {
        client(9)
            .post(url("/v1/jobs"))
            .header("content-type", "application/json")
            .body(job.to_string())
            .send()
            .await
    };
    eventually(SOON, "a job is accepted", async || {
        match submit().await.expect("an answer").status().as_u16() {
            201 => Ok(()),
            status => Err(status),
        }
    })
    .await;
    let paths = ["/v1/export", "/v1/events"].map(url);
    let mut held = BTreeMap::new();
    // All four places of each.
    for (last, times) in [(1, 2), (2, 1), (3, 1)] {
        let deaf = http2(last, 0);
        for path in &paths {
            for _ in 0..times {
                let answer = expect_room(&deaf, path).await;
                held.entry(path).or_insert_with(Vec::new).push(answer);
            }
        }
    }
    for answer in held.into_values().flatten() {
        let text = tokio::time::timeout(SOON, answer.text()).await.expect("it ends");
        assert!(text.is_err(), "it breaks off");
    }
    // A client that reads gets as many again.
    let reader = http2(1, 1 << 20);
    let exports = expect_room(&reader, &paths[0]).await;
    assert!(exports.text().await.expect("it is whole").ends_with('\n'));
    let listeners = [expect_room(&reader, &paths[1]).await, expect_room(&reader, &paths[1]).await];
    assert!(listeners.iter().all(|listener| listener.status() == 200));
}
