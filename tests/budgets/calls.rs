//! Counts calls to Redis in the life of a job, the commands that their scripts run, and calls of whole and idle stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::store_types::Options;
use ringback_store::{Store, settings};
use ringback_testkit::{CallWatch, RedisServer, Sink, Stack, eventually};
use serde_json::json;

use crate::life::Life;
use crate::table::Table;
use crate::{bounds, sample, turn};

/// The delay of jobs: longer than a call takes, on a slow machine too.
pub(crate) const LEAD: Duration = Duration::from_millis(500);
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// What this test itself and new connections send.
const OWN: [&str; 4] = ["client", "hello", "info", "monitor"];
/// What else clients send, and scripts never.
const OF_CLIENTS: [&str; 4] = ["config", "fcall", "function", "ping"];

/// A server, and what was asked of it.
struct Meter<'a> {
    server: &'a RedisServer,
    watch: CallWatch,
    before: BTreeMap<String, u64>,
}

/// The calls and commands that were counted.
struct CallCounts {
    clients: u64,
    scripts: u64,
    inside: u64,
}

impl<'a> Meter<'a> {
    async fn start(server: &'a RedisServer) -> Self {
        let watch = server.watch_calls().await;
        Self { server, watch, before: server.command_calls().await }
    }

    /// The calls and commands since the start, once MONITOR has shown all calls of scripts.
    async fn read(self) -> CallCounts {
        let after = self.server.command_calls().await;
        let since = |name: &String| after[name] - self.before.get(name).copied().unwrap_or(0);
        let scripts = since(&"fcall".to_owned());
        eventually(SOON, "MONITOR has shown every call", async || {
            let seen = self.watch.by_command().get("fcall").copied().unwrap_or(0);
            if seen < scripts { Err(format!("{seen} of {scripts}")) } else { Ok(()) }
        })
        .await;
        let own = |name: &str| OWN.contains(&base(name));
        let inside = after.keys().filter(|name| !own(name) && !OF_CLIENTS.contains(&base(name)));
        let clients = self.watch.by_command();
        CallCounts {
            clients: clients.iter().filter(|(name, _)| !own(name)).map(|(_, calls)| calls).sum(),
            scripts,
            inside: inside.map(since).sum(),
        }
    }
}

/// The name of a command without its subcommand: `config` for `config|get`.
fn base(name: &str) -> &str {
    name.split('|').next().unwrap_or(name)
}

/// A prepared store of one shard on a server.
pub(crate) async fn open(server: &RedisServer) -> Life {
    let options = Options { url: server.url(), shards: 1, ..settings::defaults(SOON) };
    Life::of(Store::open(options).expect("the URL is good")).await
}

/// How reserved jobs are settled.
#[derive(Clone, Copy)]
enum Settling {
    Alone,
    WithTheNextReserve,
}

/// Whether somebody watches.
#[derive(Clone, Copy)]
enum Audience {
    Nobody,
    Somebody,
}

/// Runs the lives of jobs by hand. Returns the calls of clients and the commands inside scripts, per job.
async fn life(jobs: usize, batch: usize, settling: Settling, audience: Audience) -> (f64, f64) {
    let server = RedisServer::start().await;
    let mut life = open(&server).await;
    if let Audience::Somebody = audience {
        life.store.watch(life.shard, 10 * SOON).await.expect("the store answers");
    }
    // Each job has its own due time, because jobs of the same millisecond may share commands.
    let delay = |n: usize| LEAD.as_secs_f64() + n as f64 / 1000.0;
    let new: Vec<_> = (0..jobs).map(|n| sample::parse(&sample::text(n, sample::URL, delay(n)))).collect();
    let meter = Meter::start(&server).await;
    for batch in new.chunks(batch) {
        life.submit(batch).await;
    }
    // The store's clock is this machine's.
    let last = SystemClock.now().plus(Duration::from_secs_f64(delay(jobs)));
    let clock = async || if SystemClock.now() <= last { Err("it does not yet") } else { Ok(()) };
    eventually(SOON, "the clock shows the last due time", clock).await;
    match settling {
        Settling::Alone => life.finish(jobs, batch).await,
        Settling::WithTheNextReserve => life.finish_together(jobs, batch).await,
    }
    let asked = meter.read().await;
    assert_eq!(life.store.stats().await.expect("the store answers").states.done, jobs as u64);
    (asked.clients as f64 / jobs as f64, asked.inside as f64 / jobs as f64)
}

/// The commands inside scripts per job, for submits of jobs that are due in an hour.
async fn far(jobs: usize, batch: usize) -> f64 {
    let server = RedisServer::start().await;
    let life = open(&server).await;
    let meter = Meter::start(&server).await;
    let new: Vec<_> =
        (0..jobs).map(|n| sample::parse(&sample::text(n, sample::URL, 3600.0 + n as f64 / 10.0))).collect();
    for batch in new.chunks(batch) {
        life.submit(batch).await;
    }
    meter.read().await.inside as f64 / jobs as f64
}

#[tokio::test]
async fn a_life_asks_no_more_of_redis_than_it_may() {
    let _turn = turn().await;
    let alone = |jobs, batch, audience| life(jobs, batch, Settling::Alone, audience);
    let (one, fifty, far) =
        tokio::join!(alone(100, 1, Audience::Nobody), alone(1_000, 50, Audience::Nobody), far(1_000, 50));
    let together = life(1_000, 50, Settling::WithTheNextReserve, Audience::Nobody).await;
    let (watched_one, watched_fifty) =
        tokio::join!(alone(100, 1, Audience::Somebody), alone(1_000, 50, Audience::Somebody));
    let mut table = Table::default();
    table.row(bounds::CALLS_ONE, one.0);
    table.row(bounds::COMMANDS_ONE, one.1);
    table.row(bounds::CALLS_FIFTY, fifty.0);
    table.row(bounds::COMMANDS_FIFTY, fifty.1);
    table.row(bounds::CALLS_TOGETHER, together.0);
    table.row(bounds::COMMANDS_TOGETHER, together.1);
    table.row(bounds::COMMANDS_FAR, far);
    table.row(bounds::COMMANDS_WATCHED_ONE, watched_one.1);
    table.row(bounds::COMMANDS_WATCHED_FIFTY, watched_fifty.1);
    table.judge();
}

#[tokio::test]
async fn a_stack_asks_no_more_of_redis_than_it_may() {
    const JOBS: usize = 2_000;
    let _turn = turn().await;
    let options = Stack::options().lock_ttl("5s").lease_margin("10s");
    let (stack, sink) = (options.start().await, Sink::counting().await);
    let meter = Meter::start(stack.redis()).await;
    for first in (0..JOBS).step_by(100) {
        let jobs: Vec<_> = (first..first + 100).map(|n| sample::text(n, &sink.url("/hook"), 1.0)).collect();
        let body = Some(("application/json", Bytes::from(format!("[{}]", jobs.join(",")))));
        let reply = stack.request(Method::POST, "/v1/jobs/batch", body).await;
        assert_eq!(reply.json()["accepted"], 100);
    }
    sink.wait_for(JOBS, SOON).await;
    stack.wait_count("done", JOBS as u64, SOON).await;
    let asked = meter.read().await;
    let per_job = |count: u64| count as f64 / JOBS as f64;
    let mut table = Table::default();
    table.row(bounds::STACK_CALLS, per_job(asked.clients));
    table.row(bounds::STACK_SCRIPTS, per_job(asked.scripts));
    table.row(bounds::STACK_COMMANDS, per_job(asked.inside));
    table.judge();
}

/// Starts a stack with 500 jobs of `topics` topics, due in an hour. Returns it, and a count of clients' later calls.
async fn resting(topics: usize) -> (Stack, CallWatch) {
    let stack = Stack::options().lock_ttl("5s").lease_margin("10s").start().await;
    let job = |n: usize| {
        let topic = format!("topic-{}", n % topics);
        json!({"topic": topic, "id": format!("job-{n}"), "delay": "1h", "url": "http://127.0.0.1:9/"})
    };
    let jobs: Vec<_> = (0..500).map(job).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 500);
    let listed = stack.get("/v1/topics?limit=1000").await;
    assert_eq!(listed.json()["items"].as_array().map(Vec::len), Some(topics));
    let watch = stack.redis().watch_calls().await;
    (stack, watch)
}

#[tokio::test]
async fn hundreds_of_topics_cost_nothing_while_nothing_is_due() {
    const REST: Duration = Duration::from_secs(12);
    let _turn = turn().await;
    let ((_one, of_one), (_many, of_many)) = tokio::join!(resting(1), resting(500));
    let (one, many, over) = (of_one.total(), of_many.total(), SystemClock.now().plus(REST));
    let clock = async || if SystemClock.now() <= over { Err("it is not") } else { Ok(()) };
    eventually(SOON, "the time of rest is over", clock).await;
    let (one, many) = (of_one.total() - one, of_many.total() - many);
    // Heartbeats, and a look at each shard now and then: neither knows of topics.
    assert!(one > 0 && many <= one + one / 4 + 4, "calls while idle: {many} with 500 topics, {one} with one");
    println!("calls while idle, 12 s: {many} with 500 topics, {one} with one");
}
