//! Tests of the testkit: redis-servers and clusters, proxies, counts of Redis commands, receivers, and the errors for
//! a missing binary and for a wait in vain.

use std::path::Path;
use std::time::Duration;

use redis::AsyncTypedCommands;
use ringback_testkit::{
    Answer, Persistence, ProcessSpec, Proxy, ProxyMode, RedisCluster, RedisServer, Script, Sink, eventually,
    http_client, now,
};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_redis_server_answers_and_is_killed_on_drop() {
    let server = RedisServer::start().await;
    let pid = server.pid();
    let mut client = server.client().await;
    client.set("key", "value").await.expect("SET");
    assert_eq!(client.get("key").await.expect("GET").as_deref(), Some("value"));
    assert!(server.used_memory().await > 0);

    drop(server);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "redis-server {pid} is still there");
}

#[tokio::test]
async fn a_killed_redis_server_comes_back_with_what_it_had_synced() {
    let mut server = RedisServer::options().persistence(Persistence::Always).start().await;
    let (port, pid) = (server.port(), server.pid());
    server.client().await.set("key", "value").await.expect("SET");

    server.kill();
    server.restart().await;
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.client().await.get("key").await.expect("GET").as_deref(), Some("value"));
}

#[tokio::test]
async fn a_stopped_redis_server_answers_when_it_is_continued() {
    let mut server = RedisServer::start().await;
    let mut client = server.client().await;
    server.stop();
    let waits = tokio::time::timeout(Duration::from_millis(200), client.get("key")).await;
    assert!(waits.is_err(), "a stopped server has answered: {waits:?}");
    server.cont();
    eventually(SOON, "the server answers", async || client.get("key").await).await;
}

#[tokio::test]
async fn a_proxy_swallows_and_cuts_the_connections_that_exist_and_leads_new_ones_elsewhere() {
    let (one, other) = (RedisServer::start().await, RedisServer::start().await);
    let proxy = Proxy::start(one.port());
    let connect = async || {
        let client = redis::Client::open(("127.0.0.1", proxy.port())).expect("an address");
        client.get_multiplexed_async_connection().await.expect("a connection")
    };
    let mut first = connect().await;
    first.set("key", "value").await.expect("SET");
    assert_eq!(proxy.swallow_subscriptions(), 0);
    assert_eq!(first.get("key").await.expect("GET").as_deref(), Some("value"));
    assert_eq!(proxy.swallow(), 1);
    assert!(first.get("key").await.is_err_and(|error| error.is_timeout()));
    proxy.lead_to(other.port());
    let mut second = connect().await;
    assert_eq!(second.get("key").await.expect("GET"), None);
    proxy.cut();
    assert!(second.get("key").await.is_err_and(|error| error.is_connection_dropped()));
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn a_proxy_holds_and_swallows_in_one_direction_what_clients_of_some_addresses_send() {
    let server = RedisServer::start().await;
    let (proxy, mut direct) = (Proxy::start(server.port()), server.client().await);
    let client = redis::Client::open(("127.0.0.1", proxy.port())).expect("an address");
    let connect = async || client.get_multiplexed_async_connection().await.expect("a connection");
    let mut first = connect().await;
    proxy.fail_from(Some(&[[127, 0, 0, 2].into()]), ProxyMode::Hold);
    first.set("key", "passed").await.expect("it has another address");
    proxy.fail_from(Some(&[[127, 0, 0, 1].into()]), ProxyMode::Hold);
    assert!(first.set("key", "held").await.is_err_and(|error| error.is_timeout()));
    assert_eq!(direct.get("key").await.expect("GET").as_deref(), Some("passed"));
    let mut is = async |wanted| {
        eventually(SOON, "it arrives", async || match direct.get("key").await.expect("GET") {
            Some(value) if value == wanted => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    };
    proxy.heal();
    is("held").await;
    proxy.fail(ProxyMode::SwallowReplies);
    assert!(first.set("key", "unanswered").await.is_err_and(|error| error.is_timeout()));
    is("unanswered").await;
    proxy.heal();
    let mut second = connect().await;
    proxy.fail(ProxyMode::SwallowRequests);
    assert!(second.set("key", "swallowed").await.is_err_and(|error| error.is_timeout()));
    is("unanswered").await;
    // If the later bytes were passed on, the next reply would be taken for the lost one.
    proxy.fail(ProxyMode::Hold);
    proxy.heal();
    assert!(second.set("key", "late").await.is_err_and(|error| error.is_timeout()));
    is("unanswered").await;
}

#[tokio::test]
async fn redis_options_reach_the_server() {
    let options = RedisServer::options().maxmemory("64mb").maxmemory_policy("allkeys-lru");
    let server = options.arg("--maxclients", "64").start().await;
    let mut client = server.client().await;
    for (name, wanted) in
        [("maxmemory", "67108864"), ("maxmemory-policy", "allkeys-lru"), ("maxclients", "64")]
    {
        let mut config = redis::cmd("CONFIG");
        let (_, value): (String, String) =
            config.arg("GET").arg(name).query_async(&mut client).await.expect("CONFIG GET");
        assert_eq!(value, wanted, "{name}");
    }
}

#[tokio::test]
async fn a_redis_server_starts_with_the_settings_under_deploy() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/redis.conf");
    let server =
        RedisServer::options().arg("--include", file.to_str().expect("a path in UTF-8")).start().await;
    let mut client = server.client().await;
    let mut config = redis::cmd("CONFIG");
    let (_, value): (String, String) =
        config.arg("GET").arg("appendfsync").query_async(&mut client).await.expect("CONFIG GET");
    assert_eq!(value, "always");
}

#[tokio::test]
async fn calls_of_clients_are_counted_without_those_of_scripts() {
    let server = RedisServer::start().await;
    let mut client = server.client().await;
    let watch = server.watch_calls().await;
    let script = "for i = 1, 100 do redis.call('SET', KEYS[1], i) end return 1";
    let mut pipe = redis::pipe();
    pipe.cmd("EVAL").arg(script).arg(1).arg("key").cmd("GET").arg("key").cmd("GET").arg("key");
    pipe.query_async::<()>(&mut client).await.expect("the pipeline");

    eventually(SOON, "three calls are counted", async || match watch.total() {
        3 => Ok(()),
        other => Err(format!("{other}: {:?}", watch.by_command())),
    })
    .await;
    assert_eq!(watch.by_command()["get"], 2);
    assert_eq!(server.command_calls().await["set"], 100);
}

#[tokio::test]
async fn a_cluster_of_three_masters_serves_every_slot() {
    let cluster = RedisCluster::start().await;
    assert!(cluster.url().starts_with("redis-cluster://127.0.0.1:"), "{}", cluster.url());
    let mut client = cluster.client().await;
    for tag in 0..50 {
        client.set(format!("{{{tag}}}:key"), tag).await.expect("SET");
    }
    let mut filled = 0;
    for node in cluster.nodes() {
        let keys: usize = redis::cmd("DBSIZE").query_async(&mut node.client().await).await.expect("DBSIZE");
        assert!(keys > 0, "a master got nothing");
        filled += keys;
    }
    assert_eq!(filled, 50);
}

#[tokio::test]
async fn a_receiver_notes_what_arrives_and_answers_by_script() {
    let sink = Sink::start().await;
    sink.answer_path(
        "/hook",
        Script::first(2, Answer::status(503).header("retry-after", "1")).finally(Answer::status(204)),
    );
    sink.answer_job("special", Answer::status(410).body("gone"));
    let client = http_client();
    let before = now();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answer =
            client.post(sink.url("/hook?a=1")).body("{ \"a\" : 1.0e5 }").send().await.expect("an answer");
        assert!(!answer.headers().contains_key("retry-after"));
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 200], "the path is matched as a whole");
    for wanted in [503, 503, 204, 204] {
        let answer = client.post(sink.url("/hook")).send().await.expect("an answer");
        assert_eq!(answer.status(), wanted);
    }
    let answer =
        client.post(sink.url("/hook")).header("ringback-job-id", "special").send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.text().await.expect("a body").as_str()), (410, "gone"));

    let arrivals = sink.wait_for(8, SOON).await;
    assert_eq!(arrivals[0].body, "{ \"a\" : 1.0e5 }");
    assert_eq!((arrivals[0].method.as_str(), arrivals[0].path.as_str()), ("POST", "/hook?a=1"));
    assert!(arrivals.iter().all(|arrival| arrival.at >= before && arrival.at <= now()));
    assert_eq!(sink.arrivals_of("special").len(), 1);
}

#[tokio::test]
async fn a_receiver_can_hold_delay_hang_up_and_talk_nonsense() {
    let sink = Sink::start().await;
    let client = http_client();
    sink.answer_path("/held", Answer::status(200).held());
    sink.answer_path("/close", Answer::close());
    sink.answer_path("/raw", Answer::raw("nonsense\r\n\r\n"));
    sink.answer_path("/late", Answer::status(201).after(Duration::from_millis(100)));

    let release = async {
        sink.wait_for(1, SOON).await;
        sink.release();
    };
    let (answer, ()) = tokio::join!(client.post(sink.url("/held")).send(), release);
    assert_eq!(answer.expect("an answer after the release").status(), 200);
    assert!(client.post(sink.url("/close")).send().await.is_err());
    assert!(client.post(sink.url("/raw")).send().await.is_err());

    let begin = now();
    assert_eq!(client.post(sink.url("/late")).send().await.expect("an answer").status(), 201);
    assert!(now().duration_since(begin) >= Duration::from_millis(100).try_into().expect("a short time"));

    let impatient = client.post(sink.url("/held")).timeout(Duration::from_millis(100)).send().await;
    assert!(impatient.is_err());
    eventually(SOON, "the receiver sees the caller go", async || match sink.hung_up() {
        1 => Ok(()),
        other => Err(other.to_string()),
    })
    .await;
}

#[tokio::test]
async fn a_counting_receiver_keeps_counts_only() {
    let sink = Sink::counting().await;
    let client = http_client();
    for id in ["a", "b", "a"] {
        let request = client.post(sink.url("/")).header("ringback-job-id", id).body("x");
        assert_eq!(request.send().await.expect("an answer").status(), 200);
    }
    sink.wait_for_jobs(&["a", "b"], 1, SOON).await;
    assert_eq!(sink.counts()["a"], 2);
    assert!(sink.arrivals().is_empty());
}

#[tokio::test]
#[should_panic(expected = "build them first: cargo build --bins")]
async fn the_error_for_a_missing_binary_names_what_to_build() {
    let _process = ProcessSpec::new("ringback-no-such-binary").start();
}

#[tokio::test]
#[should_panic(expected = "after 30ms still waiting for this: the moon is full; last: it is half")]
async fn a_wait_in_vain_reports_the_last_reason() {
    eventually(Duration::from_millis(30), "the moon is full", async || Err::<(), _>("it is half")).await;
}
