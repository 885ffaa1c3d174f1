//! The attacks of hostile callers and receivers, and how one is started. Each attack runs in a process of its own, at
//! the lowest priority, until that is killed.

use std::future::pending;
use std::hint::spin_loop;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::process::Command;
use std::thread;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{LocalBoxFuture, join_all};
use futures_util::stream::FuturesUnordered;
use reqwest::Client;
use ringback_testkit::{Child, http_client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep, timeout};

/// The first argument that makes this program an attacker.
pub(crate) const VERB: &str = "attack";
const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    run: fn(Target) -> LocalBoxFuture<'static, ()>,
}

pub(crate) const ATTACKS: [Attack; 11] = [
    Attack { name: "busy-cores", run: |_| Box::pin(busy_cores()) },
    Attack { name: "silent-names", run: |target| Box::pin(silent_names(target)) },
    Attack { name: "dead-receiver", run: |target| Box::pin(dead_receiver(target)) },
    Attack { name: "endless-interim", run: |target| Box::pin(endless_interim(target)) },
    Attack { name: "failing-receiver", run: |target| Box::pin(failing_receiver(target)) },
    Attack { name: "slow-bodies", run: |target| Box::pin(slow_bodies(target)) },
    Attack { name: "partial-heads", run: |target| Box::pin(partial_heads(target)) },
    Attack { name: "many-topics", run: |target| Box::pin(many_topics(target)) },
    Attack { name: "long-lists", run: |target| Box::pin(long_lists(target)) },
    Attack { name: "huge-fields", run: |target| Box::pin(huge_fields(target)) },
    Attack { name: "waiting-reserves", run: |target| Box::pin(waiting_reserves(target)) },
];

/// The API that is attacked, and the attacker's key.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    key: String,
    client: Client,
}

impl Target {
    /// Posts JSON and reads the answer. Ignores refusals, errors and closed connections, which are part of an attack.
    async fn post(&self, path: &str, body: Vec<u8>) {
        let url = format!("http://{}{path}", self.address);
        let request = self.client.post(url).bearer_auth(&self.key);
        let answer = request.header("content-type", "application/json").body(body).send();
        if let Ok(answer) = answer.await {
            drop(answer.bytes().await);
        }
    }

    async fn submit(&self, jobs: Vec<Value>) {
        self.post("/v1/jobs/batch", Value::from(jobs).to_string().into_bytes()).await;
    }

    /// Submits 500 jobs each second, 50 at a time, and never returns.
    async fn submit_for_ever(&self, job: impl Fn(usize) -> Value) {
        let mut turns = interval(SECOND / 10);
        for round in 0.. {
            turns.tick().await;
            self.submit((0..50).map(|n| job(50 * round + n)).collect()).await;
        }
    }

    /// Opens a connection and writes bytes to it. Returns `None` if either fails.
    async fn open(&self, bytes: &[u8]) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        stream.write_all(bytes).await.ok()?;
        Some(stream)
    }
}

/// An attack that runs until this is dropped.
pub(crate) struct Running {
    _child: Child,
    // Dropped after the child, which writes its log there.
    _dir: TempDir,
}

impl Attack {
    pub(crate) fn start(&self, address: SocketAddr, key: &str) -> Running {
        let dir = tempfile::tempdir().expect("a temp directory");
        let mut command = Command::new("nice");
        let exe = std::env::current_exe().expect("this program knows its path");
        command.args(["-n", "19"]).arg(exe).args([VERB, self.name, &address.to_string(), key]);
        let _child = Child::spawn(VERB, &mut command, &dir.path().join("log"));
        Running { _child, _dir: dir }
    }
}

/// Runs an attack for ever, if the arguments name one. Otherwise returns false at once.
pub(crate) async fn serve(args: &[String]) -> bool {
    let [verb, name, address, key] = args else { return false };
    let attack = ATTACKS.iter().find(|attack| verb == VERB && attack.name == name);
    let (Some(attack), Ok(address)) = (attack, address.parse()) else { return false };
    (attack.run)(Target { address, key: key.clone(), client: http_client() }).await;
    true
}

/// Starts a listener on a free port of this machine. Returns it with its URL.
async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("a listener has an address"));
    (listener, url)
}

/// Accepts connections and serves them at the same time, for ever.
async fn each(listener: &TcpListener, serve: impl AsyncFn(TcpStream)) {
    let mut serving = FuturesUnordered::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => serving.push(serve(stream)),
            Some(()) = serving.next() => {}
        }
    }
}

/// Uses all cores and attacks nothing: measures how much is due to a machine that attacker and attacked share.
async fn busy_cores() {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    for _ in 0..cores {
        thread::spawn(|| {
            loop {
                spin_loop();
            }
        });
    }
    let () = pending().await;
}

/// Submits jobs for host names whose name server never answers, each with a name of its own.
async fn silent_names(target: Target) {
    let job = |n: usize| {
        let retry = json!({ "delays": ["10s"], "max": 3 });
        json!({ "topic": "names", "url": format!("http://n{n}.silent.example/"), "timeout": "200ms", "retry": retry })
    };
    target.submit_for_ever(job).await;
}

/// Submits jobs of a hundred topics for one port, which accepts connections and never answers.
async fn dead_receiver(target: Target) {
    let (listener, url) = listener().await;
    let accept = async {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    };
    let retry = json!({ "delays": ["1s"], "max": -1 });
    let job = |n: usize| json!({ "topic": format!("dead.{}", n % 100), "url": url, "timeout": "30s", "retry": retry });
    tokio::join!(accept, target.submit_for_ever(job));
}

/// Submits jobs for a receiver that answers each callback with endless interim responses.
async fn endless_interim(target: Target) {
    let (listener, url) = listener().await;
    let serve = async |mut stream: TcpStream| {
        let many = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        while stream.write_all(&many).await.is_ok() {}
    };
    let retry = json!({ "delays": ["1s"], "max": -1 });
    tokio::join!(
        each(&listener, serve),
        target.submit_for_ever(|_| json!({ "topic": "interim", "url": url, "retry": retry }))
    );
}

/// Submits 1,000 jobs for a receiver that fails at once. They are retried every 10 ms for ever.
async fn failing_receiver(target: Target) {
    let (listener, url) = listener().await;
    let serve = async |mut stream: TcpStream| {
        let mut read = [0; 16 * 1024];
        while stream.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {
            let answer = b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    };
    let retry = json!({ "delays": ["10ms"], "max": -1, "jitter": 0 });
    let jobs = (0..1000).map(|_| json!({ "topic": "failing", "url": url, "retry": retry })).collect();
    tokio::join!(each(&listener, serve), target.submit(jobs));
}

/// Keeps 200 chunked uploads open that bring 9 KiB a second after the first 17 KiB, which is just fast enough.
async fn slow_bodies(target: Target) {
    let head = format!(
        "POST /v1/jobs/batch HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n4400\r\n{}\r\n",
        target.address,
        target.key,
        " ".repeat(0x4400)
    );
    let part = format!("2400\r\n{}\r\n", " ".repeat(0x2400));
    let upload = async || loop {
        if let Some(mut stream) = target.open(head.as_bytes()).await {
            while stream.write_all(part.as_bytes()).await.is_ok() {
                sleep(SECOND).await;
            }
        }
        sleep(SECOND / 10).await;
    };
    join_all((0..200).map(|_| upload())).await;
}

/// Opens 4,000 connections that send only a part of a head, and keeps them open.
async fn partial_heads(target: Target) {
    let head = format!("POST /v1/jobs HTTP/1.1\r\nhost: {}\r\nx: {}", target.address, "x".repeat(30_000));
    let mut held = Vec::new();
    while held.len() < 4_000 {
        held.extend(target.open(head.as_bytes()).await);
    }
    let () = pending().await;
}

/// Submits jobs that are due in ten years, each of a topic of its own.
async fn many_topics(target: Target) {
    let job =
        |n: usize| json!({ "topic": format!("topic-{n}"), "delay": "3650d", "url": "https://a.example/" });
    target.submit_for_ever(job).await;
}

/// Submits 50,000 jobs, and lists all of them again and again from eight clients.
async fn long_lists(target: Target) {
    for round in 0..50 {
        let job = |n| json!({ "topic": "list", "id": format!("{round}-{n}"), "delay": "1d", "url": "https://a.example/" });
        target.submit((0..1000).map(job).collect()).await;
    }
    let list = async || loop {
        let mut next = Some(String::new());
        while let Some(cursor) = next {
            let url = format!("http://{}/v1/jobs?limit=1000{cursor}", target.address);
            let answer = target.client.get(url).bearer_auth(&target.key).send().await;
            let page: Value = match answer {
                Ok(answer) => answer.bytes().await.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()),
                Err(_) => None,
            }
            .unwrap_or_default();
            next = page["next"].as_str().map(|cursor| format!("&cursor={cursor}"));
        }
    };
    join_all((0..8).map(|_| list())).await;
}

/// Submits jobs again and again from four clients, with a megabyte in a field that is meant to be short.
async fn huge_fields(target: Target) {
    let body = |field: &str| {
        let value = if field == "retry" {
            json!({ "delays": vec!["1s"; 100_000] })
        } else {
            "1".repeat(900_000).into()
        };
        json!({ "topic": "huge", "url": "https://a.example/", field: value }).to_string().into_bytes()
    };
    let bodies = ["retry", "delay"].map(body);
    let submit = async || loop {
        for body in &bodies {
            target.post("/v1/jobs", body.clone()).await;
        }
    };
    join_all((0..4).map(|_| submit())).await;
}

/// Waits for jobs as 2,000 consumers with padded bodies that disconnect before they are answered, again and again.
async fn waiting_reserves(target: Target) {
    let body = format!("{{\"wait\":\"20s\"{}}}", " ".repeat(30_000));
    let wait = async |n: usize| loop {
        let path = format!("/v1/topics/wait-{}/reserve", n % 10);
        let reserve = target.post(&path, body.clone().into_bytes());
        timeout(5 * SECOND, reserve).await.ok();
    };
    join_all((0..2_000).map(wait)).await;
}
