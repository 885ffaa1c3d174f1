//! A whole Ringback: one store and any number of each role, or all in one, as real processes, with short times.

mod audit;
mod options;

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use self::options::StoreOptions;
pub use self::options::{Role, StackOptions};
use crate::eventually::eventually;
use crate::http_client::http_client;
use crate::process::{Process, ProcessSpec};
use crate::redis::{RedisCluster, RedisServer};

/// Every process answers `/readyz` well within this, on a busy machine too.
const READY_DEADLINE: Duration = Duration::from_secs(30);

/// A running stack; when it is dropped its store is audited, and everything in it is killed, the processes before
/// the store.
pub struct Stack {
    /// The api processes.
    pub apis: Vec<Process>,
    /// The carriers.
    pub carriers: Vec<Process>,
    /// The notifiers.
    pub notifiers: Vec<Process>,
    /// The processes that have all three roles.
    pub ups: Vec<Process>,
    store: Store,
    http: reqwest::Client,
    options: StackOptions,
    is_audited: bool,
}

/// The store of a stack.
enum Store {
    Single(Box<RedisServer>),
    Cluster(RedisCluster),
    Running(String),
}

impl Store {
    fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Cluster(cluster) => cluster.url(),
            Self::Running(url) => url.clone(),
        }
    }
}

/// An answer of the API.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Bytes,
}

impl Reply {
    /// A header's value; none when it is absent or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON, `null` when it is empty.
    ///
    /// # Panics
    /// When it is something else.
    #[must_use]
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in an answer {}: {:?}", self.status, self.body))
    }
}

impl StackOptions {
    /// Starts the store and all processes, and waits until each says that it is ready.
    ///
    /// # Panics
    /// When one of them does not become ready.
    pub async fn start(self) -> Stack {
        let store = match &self.store {
            StoreOptions::Single(options) => Store::Single(Box::new(options.clone().start().await)),
            StoreOptions::Cluster(options) => Store::Cluster(RedisCluster::start_with(options.clone()).await),
            StoreOptions::Running(url) => Store::Running(url.clone()),
        };
        let url = store.url();
        let launch =
            |role, count| (0..count).map(|_| self.spec(role, &url).start()).collect::<Vec<Process>>();
        let mut stack = Stack {
            apis: launch(Role::Api, self.apis),
            carriers: launch(Role::Carrier, self.carriers),
            notifiers: launch(Role::Notifier, self.notifiers),
            ups: launch(Role::Up, self.ups),
            store,
            http: http_client(),
            options: self.clone(),
            is_audited: self.is_audited,
        };
        stack.ready(READY_DEADLINE).await;
        stack
    }
}

impl Stack {
    /// A stack with the default options.
    pub async fn start() -> Self {
        StackOptions::default().start().await
    }

    /// To start one with other settings.
    #[must_use]
    pub fn options() -> StackOptions {
        StackOptions::default()
    }

    /// Waits until every process says that it is ready.
    ///
    /// # Panics
    /// When one does not within that time.
    pub async fn ready(&mut self, within: Duration) {
        let groups = [&mut self.apis, &mut self.carriers, &mut self.notifiers, &mut self.ups];
        for process in groups.into_iter().flatten() {
            process.ready(within).await;
        }
    }

    /// Starts one more process of a role and waits until it is ready.
    pub async fn add(&mut self, role: Role) -> &mut Process {
        let mut process = self.spec(role).start();
        process.ready(READY_DEADLINE).await;
        let group = match role {
            Role::Api => &mut self.apis,
            Role::Carrier => &mut self.carriers,
            Role::Notifier => &mut self.notifiers,
            Role::Up => &mut self.ups,
        };
        group.push(process);
        group.last_mut().expect("it has just been added")
    }

    /// The settings of one more process of a role, on ports of its own, to start it by hand.
    #[must_use]
    pub fn spec(&self, role: Role) -> ProcessSpec {
        self.options.spec(role, &self.store.url())
    }

    /// The redis-server.
    ///
    /// # Panics
    /// When the stack has none of its own.
    #[must_use]
    pub fn redis(&self) -> &RedisServer {
        match &self.store {
            Store::Single(server) => server,
            Store::Cluster(_) | Store::Running(_) => panic!("this stack has no server of its own"),
        }
    }

    /// The redis-server, to kill or pause it.
    ///
    /// # Panics
    /// When the stack has none of its own.
    pub fn redis_mut(&mut self) -> &mut RedisServer {
        match &mut self.store {
            Store::Single(server) => server,
            Store::Cluster(_) | Store::Running(_) => panic!("this stack has no server of its own"),
        }
    }

    /// The cluster.
    ///
    /// # Panics
    /// When the stack has none of its own.
    pub fn cluster_mut(&mut self) -> &mut RedisCluster {
        match &mut self.store {
            Store::Single(_) | Store::Running(_) => panic!("this stack has no cluster of its own"),
            Store::Cluster(cluster) => cluster,
        }
    }

    /// The address of `RINGBACK_STORE`.
    #[must_use]
    pub fn store_url(&self) -> String {
        self.store.url()
    }

    /// The URL of a path of the first api.
    ///
    /// # Panics
    /// When the stack has none.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        let api = self.apis.first().or(self.ups.first()).expect("this stack has an api");
        format!("http://{}{path}", api.setting("RINGBACK_API_LISTEN").expect("an api knows where it listens"))
    }

    /// Any request to the first api; the body, if any, with its content type.
    ///
    /// # Panics
    /// When no answer comes.
    pub async fn request(&self, method: http::Method, path: &str, body: Option<(&str, Bytes)>) -> Reply {
        let url = self.url(path);
        let mut request = self.http.request(method.clone(), &url);
        if let Some((content_type, bytes)) = body {
            request = request.header("content-type", content_type).body(bytes);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("{method} {url}: {error:?}"));
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.bytes().await.unwrap_or_else(|error| panic!("{method} {url}: {error:?}"));
        Reply { status, headers, body }
    }

    /// Submits one job, given as the very text that is sent.
    pub async fn submit_text(&self, job: impl Into<Bytes>) -> Reply {
        self.request(http::Method::POST, "/v1/jobs", Some(("application/json", job.into()))).await
    }

    /// Submits one job: the status and the answer.
    pub async fn submit(&self, job: &Value) -> (u16, Value) {
        let reply = self.submit_text(job.to_string()).await;
        (reply.status, reply.json())
    }

    /// Submits a job that must be new, and gives it as the answer shows it.
    ///
    /// # Panics
    /// When the answer is not 201.
    pub async fn accept(&self, job: &Value) -> Value {
        let (status, answer) = self.submit(job).await;
        assert_eq!(status, 201, "{job} is answered {answer}");
        answer
    }

    /// Submits many jobs as a JSON array: the status and the answer.
    pub async fn batch(&self, jobs: &[Value]) -> (u16, Value) {
        let text = Value::from(jobs.to_vec()).to_string();
        let body = Some(("application/json", Bytes::from(text)));
        let reply = self.request(http::Method::POST, "/v1/jobs/batch", body).await;
        (reply.status, reply.json())
    }

    /// A job: the status and the answer.
    pub async fn get(&self, topic: &str, id: &str) -> (u16, Value) {
        let reply = self.request(http::Method::GET, &format!("/v1/jobs/{topic}/{id}"), None).await;
        (reply.status, reply.json())
    }

    /// Cancels a job: the status and the answer.
    pub async fn cancel(&self, topic: &str, id: &str) -> (u16, Value) {
        let reply = self.request(http::Method::DELETE, &format!("/v1/jobs/{topic}/{id}"), None).await;
        (reply.status, reply.json())
    }

    /// Gives a job another due time (`{"delay":…}` or `{"at":…}`): the status and the answer.
    pub async fn reschedule(&self, topic: &str, id: &str, when: &Value) -> (u16, Value) {
        let body = Some(("application/json", Bytes::from(when.to_string())));
        let reply = self.request(http::Method::PATCH, &format!("/v1/jobs/{topic}/{id}"), body).await;
        (reply.status, reply.json())
    }

    /// Makes a job due now: the status and the answer.
    pub async fn run(&self, topic: &str, id: &str) -> (u16, Value) {
        let reply = self.request(http::Method::POST, &format!("/v1/jobs/{topic}/{id}/run"), None).await;
        (reply.status, reply.json())
    }

    /// Lets a dead job begin again: the status and the answer.
    pub async fn revive(&self, topic: &str, id: &str) -> (u16, Value) {
        let reply = self.request(http::Method::POST, &format!("/v1/jobs/{topic}/{id}/revive"), None).await;
        (reply.status, reply.json())
    }

    /// GET /v1/stats.
    ///
    /// # Panics
    /// When the answer is not 200.
    pub async fn stats(&self) -> Value {
        let reply = self.request(http::Method::GET, "/v1/stats", None).await;
        assert_eq!(reply.status, 200, "stats: {:?}", reply.body);
        reply.json()
    }

    /// How many jobs are in a state, from the stats.
    pub async fn count_in(&self, state: &str) -> u64 {
        let stats = self.stats().await;
        stats["states"][state].as_u64().unwrap_or_else(|| panic!("no count of {state} in {stats}"))
    }

    /// Waits until a job is in a state and gives it.
    ///
    /// # Panics
    /// When it is not within that time.
    pub async fn wait_state(&self, topic: &str, id: &str, state: &str, within: Duration) -> Value {
        eventually(within, &format!("{topic}/{id} is {state}"), async || {
            let (status, job) = self.get(topic, id).await;
            if status == 200 && job["state"] == state { Ok(job) } else { Err(format!("{status} {job}")) }
        })
        .await
    }
}
