//! Planted secrets: an installation on Redis and on the embedded store runs at log level `trace` through success,
//! failure, refusals and, with Redis, a restart of the store. No log, metric, event, trace, list, error, export or
//! stored file may show one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use ringback_testkit::{Persistence, RedisServer, Reply, http_client};
use tokio::time::timeout;

use crate::prelude::*;

const ROOT: &str = "canary-root-0123456789-0123456789-0123456789";
const MASTER: &str = "canary-master-key-of-32-bytes-01";
const SIGNING: &str = "canary-signing-secret-0123456789";
const HEADER: &str = "canary-header-of-the-policy";
const PASSWORD: &str = "canary-redis-password";
/// A network that the operator denies.
const DENIED: &str = "http://10.9.8.7/";
const RECOVERY: Duration = Duration::from_secs(60);

/// The secrets, each in all its spellings.
struct Canaries(Vec<(&'static str, String)>);

impl Canaries {
    fn new(key: &str) -> Self {
        let base64 = |text: &str| STANDARD.encode(text);
        let all = [
            ("the root key", ROOT.to_owned()),
            ("the caller's key", key.to_owned()),
            ("the master key", MASTER.to_owned()),
            ("the master key", base64(MASTER)),
            ("the signing secret", SIGNING.to_owned()),
            ("the signing secret", base64(SIGNING)),
            ("the secret header", HEADER.to_owned()),
            ("the secret header", base64(HEADER)),
            ("the password of Redis", PASSWORD.to_owned()),
        ];
        Self(all.into())
    }

    /// Panics if one of the secrets is in `bytes`, or if `bytes` is empty.
    fn are_not_in(&self, what: &str, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "{what} is empty");
        for (name, canary) in &self.0 {
            let at = bytes.windows(canary.len()).position(|part| part == canary.as_bytes());
            let Some(at) = at else { continue };
            let around = &bytes[at.saturating_sub(200)..bytes.len().min(at + 200)];
            panic!("{what} shows {name}: …{}…", String::from_utf8_lossy(around));
        }
    }
}

/// Calls with one key.
struct Caller<'a> {
    stack: &'a Stack,
    key: &'a str,
}

impl Caller<'_> {
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let body = body.map(|body| ("application/json", body.to_string().into()));
        self.send(method, path, &[("authorization", &format!("Bearer {}", self.key))], body).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, Bytes)>,
    ) -> Reply {
        let mut request = http_client().request(method, self.stack.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some((kind, body)) = body {
            request = request.header("content-type", kind).body(body);
        }
        Reply::read(request.send().await.expect("an answer")).await.expect("a whole answer")
    }

    async fn state(&self, id: &str, state: &str) {
        eventually(RECOVERY, &format!("{id} is {state}"), async || {
            let shown = self.call(Method::GET, &format!("/v1/jobs/{TOPIC}/{id}"), None).await;
            if shown.status == 200 && shown.json()["state"] == state {
                return Ok(());
            }
            Err(String::from_utf8_lossy(&shown.body).into_owned())
        })
        .await;
    }
}

/// Starts a stack that has all the secrets in its settings, on the store at a URL.
async fn start(store: &str, collector: &Sink) -> Stack {
    let options =
        if store.starts_with("embedded:") { Stack::options().in_one_process() } else { Stack::options() };
    options
        .store(store)
        .env("RINGBACK_LOG", "trace")
        .env("RINGBACK_ROOT_KEY", ROOT)
        .env("RINGBACK_MASTER_KEYS", &format!("k1:{}", STANDARD.encode(MASTER)))
        .env("RINGBACK_SIGNING_SECRET", &format!("whsec_{}", STANDARD.encode(SIGNING)))
        .env("RINGBACK_EGRESS_DENY", "10.0.0.0/8")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url(""))
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .unchecked()
        .start()
        .await
}

/// Makes a key with all scopes that a key can have.
async fn key(stack: &Stack) -> String {
    let root = Caller { stack, key: ROOT };
    let ask = json!({"scopes": ["submit", "consume", "read", "manage", "import"]});
    let made = root.call(Method::POST, "/v1/keys", Some(&ask)).await.expect(201);
    made["key"].as_str().expect("a key").to_owned()
}

/// Sets a policy and a signing secret, and submits jobs that are delivered, failed and refused.
async fn drive(caller: &Caller<'_>, sink: &Sink) {
    let policy = json!({"headers": {"authorization": format!("Bearer {HEADER}")}, "headers_to": ["*"],
        "retry": {"delays": ["50ms"], "jitter": 0}, "attempts": "all"});
    caller.call(Method::PUT, &format!("/v1/topics/{TOPIC}"), Some(&policy)).await.expect(201);
    let secret = json!({"secret": format!("whsec_{}", STANDARD.encode(SIGNING))});
    caller.call(Method::POST, &format!("/v1/topics/{TOPIC}/secrets"), Some(&secret)).await.expect(201);
    let submit = async |job: &Value| caller.call(Method::POST, "/v1/jobs", Some(job)).await;

    sink.answer_job("fails", Answer::status(500));
    // A notifier knows a policy within a second.
    for id in ["works", "fails"] {
        submit(&with(job(sink, id), "delay", "1s")).await.expect(201);
    }
    let arrival = sink.wait_for_job("works", 1, RECOVERY).await.remove(0);
    assert_eq!(arrival.header("authorization"), Some(format!("Bearer {HEADER}").as_str()), "it is in use");
    assert!(arrival.header("webhook-signature").is_some(), "the secret is in use");
    // The guard refuses what it knows at once; a redirect is a failure.
    submit(&with(job(sink, "denied"), "url", DENIED)).await.expect(422);
    caller.state("works", "done").await;
    caller.state("fails", "dead").await;
}

/// Sends the secrets where they do not belong, and asserts that each is refused. Returns the answers.
async fn misplace(caller: &Caller<'_>, sink: &Sink) -> Vec<(String, Reply)> {
    let signing = format!("whsec_{}", STANDARD.encode(SIGNING));
    let mut answers = Vec::new();
    for secret in [caller.key, ROOT, &signing, HEADER, PASSWORD, MASTER] {
        // A secret in place of a key.
        for authorization in [format!("Basic {secret}"), secret.to_owned(), format!("Bearer {secret}x")] {
            let headers = [("authorization", authorization.as_str())];
            let answer = caller.send(Method::GET, "/v1/stats", &headers, None).await;
            assert_eq!(answer.status, 401, "{authorization}");
            answers.push(("a wrong key".to_owned(), answer));
        }
        let answer = caller.send(Method::GET, "/v1/stats", &[("x-api-key", secret)], None).await;
        answers.push(("a key in another header".to_owned(), answer));
        let path = format!("/v1/stats?key={secret}");
        answers.push(("a key in the query".to_owned(), caller.send(Method::GET, &path, &[], None).await));
        answers.push(("a key in the query".to_owned(), caller.call(Method::GET, &path, None).await));

        // A secret in documents.
        let topic = format!("/v1/topics/{TOPIC}");
        for (place, method, path, body) in [
            ("a policy as text", Method::PUT, topic.clone(), json!(secret)),
            ("a field of a policy", Method::PUT, topic.clone(), json!({"signing_secret": secret})),
            ("a secret of a policy", Method::PUT, topic.clone(), json!({"secrets": [secret]})),
            (
                "a header of a job",
                Method::POST,
                "/v1/jobs".to_owned(),
                with(job(sink, "header"), "headers", json!({"authorization": [secret]})),
            ),
            (
                "the headers of a job",
                Method::POST,
                "/v1/jobs".to_owned(),
                with(job(sink, "headers"), "headers", json!(secret)),
            ),
            (
                "a field of a job",
                Method::POST,
                "/v1/jobs".to_owned(),
                with(job(sink, "field"), "authorization", secret),
            ),
            ("a batch", Method::POST, "/v1/jobs/batch".to_owned(), json!([secret])),
            ("a secret", Method::POST, format!("{topic}/secrets"), json!({"secret": format!("{secret}\n")})),
            ("a key to make", Method::POST, "/v1/keys".to_owned(), json!({"key": secret})),
        ] {
            let answer = caller.call(method, &path, Some(&body)).await;
            // A batch is refused item by item.
            let is_refused = (400..500).contains(&answer.status) || place == "a batch";
            assert!(is_refused, "{place}: {}", answer.status);
            answers.push((place.to_owned(), answer));
        }
        let authorization = format!("Bearer {}", caller.key);
        let headers = [("authorization", authorization.as_str())];
        for kind in ["application/json", "text/plain", "application/x-ndjson"] {
            let cut = Some((kind, Bytes::from(format!(r#"{{"headers":{{"authorization":"{secret}"#))));
            answers.push((
                format!("no JSON, {kind}"),
                caller.send(Method::POST, "/v1/jobs", &headers, cut.clone()).await,
            ));
            answers.push((
                format!("no line, {kind}"),
                caller.send(Method::POST, "/v1/import", &headers, cut).await,
            ));
        }
    }
    answers
}

/// The answers to all that a key with the scope `read` can see.
async fn seen(reader: &Caller<'_>) -> Vec<(String, Reply)> {
    let topic = format!("/v1/topics/{TOPIC}");
    let job = |id: &str| format!("/v1/jobs/{TOPIC}/{id}");
    let mut answers = Vec::new();
    for path in [
        "/v1/jobs".to_owned(),
        "/v1/jobs?include=request".to_owned(),
        format!("{}?include=request", job("works")),
        format!("{}?include=request", job("fails")),
        format!("{}/attempts", job("fails")),
        "/v1/topics".to_owned(),
        topic.clone(),
        format!("{topic}/secrets"),
        format!("{topic}/dead?include=request"),
        "/v1/bulk".to_owned(),
        "/v1/stats".to_owned(),
        "/v1/keys".to_owned(),
        "/v1/check".to_owned(),
        "/v1/export".to_owned(),
        "/v1/export/topics".to_owned(),
        "/openapi.json".to_owned(),
    ] {
        let answer = reader.call(Method::GET, &path, None).await;
        assert!(answer.status < 500, "{path}: {}", answer.status);
        answers.push((path, answer));
    }
    answers
}

/// Drives a stack on a store with the secrets, and asserts that nothing shows one. Restarts the server, if one is
/// given, while the stack runs. Returns the ended stack, whose files are still to be searched.
async fn shows_none(store: &str, server: Option<&mut RedisServer>) -> (Stack, Canaries) {
    let (sink, collector) = (Sink::start().await, Sink::start().await);
    let mut stack = start(store, &collector).await;
    let key = key(&stack).await;
    let canaries = Canaries::new(&key);
    let caller = Caller { stack: &stack, key: &key };
    let ask = json!({"scopes": ["read"]});
    let root = Caller { stack: &stack, key: ROOT };
    let made = root.call(Method::POST, "/v1/keys", Some(&ask)).await.expect(201);
    let reader = Caller { stack: &stack, key: made["key"].as_str().expect("a key") };

    let events = http_client().get(stack.url("/v1/events")).bearer_auth(reader.key);
    let mut events = events.send().await.expect("a stream");
    assert_eq!(events.status(), 200);
    drive(&caller, &sink).await;
    let mut answers = misplace(&caller, &sink).await;
    let mut streamed = Vec::new();
    while !String::from_utf8_lossy(&streamed).contains("event: dead") {
        let chunk = timeout(SOON, events.chunk()).await.expect("an event").expect("a chunk");
        streamed.extend_from_slice(&chunk.expect("the stream goes on"));
    }
    canaries.are_not_in("the stream of events", &streamed);
    drop(events);

    if let Some(server) = server {
        server.restart().await;
        let after = job(&sink, "after");
        eventually(RECOVERY, "submits are accepted again", async || {
            let answer = caller.call(Method::POST, "/v1/jobs", Some(&after)).await;
            if answer.status < 300 { Ok(()) } else { Err(String::from_utf8_lossy(&answer.body).into_owned()) }
        })
        .await;
        caller.state("after", "done").await;
    }
    answers.extend(seen(&reader).await);
    for (place, answer) in &answers {
        canaries.are_not_in(&format!("the answer to {place}"), format!("{:?}\n", answer.headers).as_bytes());
        canaries.are_not_in(&format!("the answer to {place}"), &[b" ", &answer.body[..]].concat());
    }
    for path in ["/v1/export", "/v1/export/topics"] {
        let lines = caller.call(Method::GET, path, None).await;
        assert_eq!(lines.status, 200);
        canaries.are_not_in(path, &lines.body);
    }
    eventually(SOON, "spans are exported", async || {
        if collector.arrivals().is_empty() { Err("none") } else { Ok(()) }
    })
    .await;
    for export in collector.arrivals() {
        canaries.are_not_in("a trace", &export.body);
    }
    for process in stack.processes() {
        canaries.are_not_in("the metrics", process.metrics().await.as_bytes());
    }
    for process in stack.processes_mut() {
        process.term();
        process.wait_exit(SOON).await;
        let log = process.log();
        assert!(log.contains("DEBUG"), "{log}");
        canaries.are_not_in("a log", log.as_bytes());
    }
    (stack, canaries)
}

#[tokio::test]
async fn no_secret_is_shown_or_stored_in_the_clear_on_redis() {
    // A user with all rights: `--user ringback on >password ~* &* +@all sanitize-payload`.
    let password = format!(">{PASSWORD}");
    let options = RedisServer::options().persistence(Persistence::Always).arg("--user", "ringback");
    let options = options.arg("on", &password).arg("~*", "&*").arg("+@all", "sanitize-payload");
    let mut server = options.start().await;
    let url = format!("redis://ringback:{PASSWORD}@127.0.0.1:{}", server.port());
    let (_stack, canaries) = shows_none(&url, Some(&mut server)).await;
    let (file, _) = server.append_only_file();
    canaries.are_not_in("the append-only file", &std::fs::read(file).expect("it can be read"));
}

#[tokio::test]
async fn no_secret_is_shown_or_stored_in_the_clear_on_the_embedded_store() {
    let (stack, canaries) = shows_none("embedded:./data", None).await;
    let mut files = 0;
    for entry in std::fs::read_dir(stack.ups[0].directory().join("data")).expect("its directory") {
        let path = entry.expect("an entry").path();
        let bytes = if path.is_file() { std::fs::read(&path).expect("it can be read") } else { Vec::new() };
        if !bytes.is_empty() {
            canaries.are_not_in(&path.display().to_string(), &bytes);
            files += 1;
        }
    }
    assert!(files > 0, "no file was searched");
}
