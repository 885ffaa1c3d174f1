//! Connections to Redis that swallow everything and that nobody closes: each process abandons them by itself and
//! connects again, also in a cluster and when a name moved to a replica.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use ringback_core::store_types::{Options, Wake};
use ringback_store::{Store, Wakes, settings};
use ringback_testkit::{Proxy, RedisCluster, RedisOptions, RedisServer};
use tokio::time::{Instant, timeout};

use super::redis_outage::{accepted_again, still_the_same_processes};
use crate::prelude::*;

/// How long it may take until everything works again: checks, time-outs and back-offs, on a busy machine too.
const RECOVERY: Duration = Duration::from_secs(60);

fn url(proxy: &Proxy) -> String {
    format!("redis://127.0.0.1:{}", proxy.port())
}

/// `count` jobs that are due in a second: their ids, and the jobs.
fn jobs(sink: &Sink, name: &str, count: usize) -> (Vec<String>, Vec<Value>) {
    let ids: Vec<_> = (0..count).map(|n| format!("{name}-{n}")).collect();
    let jobs = ids.iter().map(|id| with(job(sink, id), "delay", "1s")).collect();
    (ids, jobs)
}

/// Waits until jobs in all shards are accepted, become due and are delivered. Asserts that no process has ended.
async fn works_again(stack: &mut Stack, sink: &Sink, name: &str) {
    let (ids, jobs) = jobs(sink, name, 40);
    for job in jobs {
        accepted_again(stack, &job).await;
    }
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    stack.ready(RECOVERY).await;
    still_the_same_processes(stack);
}

#[tokio::test]
async fn connections_that_only_swallow_are_left_by_all_processes() {
    let redis = RedisServer::start().await;
    let proxy = Proxy::start(redis.port());
    let (mut stack, sink) = (Stack::options().store(&url(&proxy)).start().await, Sink::start().await);
    let (ids, before) = jobs(&sink, "before", 20);
    assert_eq!(stack.batch(&before).await.1["accepted"], 20);
    assert!(proxy.swallow() >= 6, "each process has a connection for calls and others for channels");
    assert_eq!(stack.submit(&job(&sink, "swallowed")).await.0, 503);
    works_again(&mut stack, &sink, "after").await;
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
}

#[tokio::test]
async fn a_stopped_master_whose_name_moved_to_its_replica_is_left_by_all_processes() {
    let at_once = || RedisServer::options().copies_at_once();
    let (mut master, replica) = (at_once().start().await, at_once().start().await);
    replica.follow(&master).await;
    let proxy = Proxy::start(master.port());
    let (mut stack, sink) = (Stack::options().store(&url(&proxy)).start().await, Sink::start().await);
    let (ids, before) = jobs(&sink, "before", 20);
    assert_eq!(stack.batch(&before).await.1["accepted"], 20);
    let mut client = master.client().await;
    redis::cmd("SET").arg("mark").arg(1).exec_async(&mut client).await.expect("SET");
    let replicas: u32 =
        redis::cmd("WAIT").arg(1).arg(4_000).query_async(&mut client).await.expect("WAIT answers");
    assert_eq!(replicas, 1);

    master.stop();
    replica.promote().await;
    proxy.lead_to(replica.port());
    works_again(&mut stack, &sink, "after").await;
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
}

#[tokio::test]
async fn a_subscription_alone_that_only_swallows_is_left_and_wake_ups_come_again() {
    let redis = RedisServer::start().await;
    let proxy = Proxy::start(redis.port());
    let store = Store::open(Options { url: url(&proxy), shards: 1, ..settings::defaults(SOON) });
    let store = store.expect("the URL is good");
    store.prepare().await.expect("a private store is fit");
    let mut wakes = store.wakes(StdRng::seed_from_u64(1));
    assert_eq!(next(&mut wakes).await, Wake::Subscribed);
    assert_eq!(proxy.swallow_subscriptions(), 1);
    store.heartbeat("unheard", SOON).await.expect("calls are not concerned");
    assert_eq!(next(&mut wakes).await, Wake::Subscribed);
    store.heartbeat("heard", SOON).await.expect("calls are not concerned");
    assert_eq!(next(&mut wakes).await, Wake::Carriers);
}

async fn next(wakes: &mut Wakes) -> Wake {
    timeout(SOON, wakes.next()).await.expect("a wake-up")
}

#[tokio::test]
async fn not_every_call_asks_a_redis_that_is_gone_for_a_connection() {
    let mut redis = RedisServer::start().await;
    let proxy = Proxy::start(redis.port());
    let options = StackOptions::api_only().store(&url(&proxy));
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    redis.kill();
    let (before, begun) = (proxy.accepted(), Instant::now());
    for n in 0..300 {
        assert_eq!(stack.submit(&job(&sink, &format!("refused-{n}"))).await.0, 503);
    }
    let (asked, took) = (proxy.accepted() - before, begun.elapsed());
    // At most four connections per second for calls and three for subscriptions, and some more at the start.
    let most = 20 + took.as_millis() / 100;
    assert!(asked as u128 <= most, "{asked} connections in {took:?}");
    redis.restart().await;
    accepted_again(&stack, &job(&sink, "back")).await;
    stack.ready(RECOVERY).await;
}

/// A cluster behind proxies, whose nodes announce the proxies to clients, and a stack on it.
async fn on_a_cluster() -> (RedisCluster, Vec<Proxy>, Stack, Sink) {
    let cluster = RedisCluster::start_with(RedisOptions::default()).await;
    let proxies: Vec<_> = cluster.nodes().iter().map(|node| Proxy::start(node.port())).collect();
    let ports: Vec<_> = proxies.iter().map(Proxy::port).collect();
    cluster.announce(&ports).await;
    let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let url = format!("redis-cluster://{}", hosts.join(","));
    let stack = Stack::options().store(&url).env("RINGBACK_SHARDS", "6").start().await;
    (cluster, proxies, stack, Sink::start().await)
}

#[tokio::test]
async fn a_node_of_a_cluster_that_only_swallows_is_reached_again_while_the_others_answer() {
    let (_cluster, proxies, mut stack, sink) = on_a_cluster().await;
    works_again(&mut stack, &sink, "before").await;
    for (n, proxy) in proxies.iter().enumerate() {
        assert!(proxy.swallow() > 0);
        works_again(&mut stack, &sink, &format!("after-{n}")).await;
    }
}

#[tokio::test]
async fn a_cluster_of_which_all_connections_only_swallow_is_reached_again() {
    let (_cluster, proxies, mut stack, sink) = on_a_cluster().await;
    works_again(&mut stack, &sink, "before").await;
    proxies.iter().for_each(|proxy| assert!(proxy.swallow() > 0));
    works_again(&mut stack, &sink, "after").await;
}
