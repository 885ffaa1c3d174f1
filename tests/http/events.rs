//! `GET /v1/events`: the stream of job events of real processes, with filters, gaps, slow readers, limits and shutdown.

pub(super) mod listener;

use ringback_testkit::{Proxy, RedisServer, Role, http_client};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use self::listener::Listener;
use crate::prelude::*;
use crate::sample_jobs::time;

async fn listen(stack: &Stack, query: &str) -> Listener {
    Listener::start(&stack.url(&format!("/v1/events{query}"))).await
}

#[tokio::test]
async fn a_listener_receives_the_events_of_a_job_from_its_submit_to_its_end() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let mut listener = listen(&stack, "").await;
        let job = stack.accept(&with(job(&sink, "a"), "delay", "100ms")).await;
        let submitted = listener.expect("submitted", "a").await;
        assert_eq!((&submitted["topic"], &submitted["due_at"]), (&json!(TOPIC), &job["due_at"]));
        let promoted = listener.expect("promoted", "a").await;
        let attempt = listener.expect("attempt", "a").await;
        assert_eq!((&attempt["attempt"], &attempt["outcome"]), (&json!(1), &json!("complete")));
        assert!(attempt["status"] == 200 && attempt["duration_ms"].is_u64(), "{attempt}");
        let done = listener.expect("done", "a").await;
        let times = [submitted, promoted, attempt, done].map(|event| time(&event["at"]));
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[1] >= time(&job["due_at"]), "promoted before it was due");
    }
}

#[tokio::test]
async fn events_of_failures_have_the_response_and_the_death_comes_last() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_job("fails", Answer::status(503));
        let mut listener = listen(&stack, "?kind=attempt,dead").await;
        let tiers = json!({"delays": ["50ms"], "jitter": 0});
        stack.accept(&with(job(&sink, "fails"), "retry", tiers)).await;
        let first = listener.expect("attempt", "fails").await;
        assert_eq!(
            (&first["attempt"], &first["outcome"], &first["status"]),
            (&json!(1), &json!("retry"), &json!(503))
        );
        assert!(first["duration_ms"].is_u64() && time(&first["due_at"]) >= time(&first["at"]), "{first}");
        let second = listener.expect("attempt", "fails").await;
        assert_eq!((&second["attempt"], &second["outcome"]), (&json!(2), &json!("bury")), "{second}");
        assert_eq!(second.get("due_at"), None, "{second}");
        assert_eq!(listener.expect("dead", "fails").await["reason"], "exhausted");
    }
}

#[tokio::test]
async fn cancels_and_settles_by_consumers_have_events() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let mut listener = listen(&stack, "?topic=e2e").await;
        stack.accept(&with(job(&sink, "cancelled"), "delay", "1h")).await;
        stack.cancel(TOPIC, "cancelled").await;
        listener.expect("submitted", "cancelled").await;
        listener.expect("cancelled", "cancelled").await;
        stack.accept(&json!({"topic": TOPIC, "id": "pulled"})).await;
        let job = stack.reserve_one(TOPIC, &json!({})).await;
        assert_eq!(stack.settle(&job, "finish", &json!({})).await.status, 200);
        listener.expect("submitted", "pulled").await;
        assert_eq!(listener.expect("attempt", "pulled").await["outcome"], "complete");
        listener.expect("done", "pulled").await;
    }
}

#[tokio::test]
async fn a_listener_receives_only_events_that_match_its_query() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let mut of_topic = listen(&stack, "?topic=other").await;
    let mut of_job = listen(&stack, &format!("?topic={TOPIC}&id=a")).await;
    let mut of_kind = listen(&stack, "?kind=cancelled").await;
    let later = |id: &str| with(job(&sink, id), "delay", "1h");
    for id in ["a", "b"] {
        stack.accept(&later(id)).await;
        stack.accept(&with(later(id), "topic", "other")).await;
    }
    for id in ["b", "a"] {
        stack.cancel(TOPIC, id).await;
    }
    for id in ["a", "b"] {
        assert_eq!(of_topic.expect("submitted", id).await["topic"], "other");
    }
    of_job.expect("submitted", "a").await;
    of_job.expect("cancelled", "a").await;
    of_kind.expect("cancelled", "b").await;
    of_kind.expect("cancelled", "a").await;
}

#[tokio::test]
async fn every_api_streams_all_events() {
    let (stack, sink) = (Stack::options().count(Role::Api, 2).start().await, Sink::start().await);
    let url = |n: usize| {
        let listen = stack.apis[n].setting("RINGBACK_API_LISTEN").expect("an api listens").to_owned();
        format!("http://{listen}/v1/events?kind=done")
    };
    let (mut one, mut other) = (Listener::start(&url(0)).await, Listener::start(&url(1)).await);
    for n in 0..5 {
        let id = format!("job-{n}");
        stack.accept(&job(&sink, &id)).await;
        one.expect("done", &id).await;
        other.expect("done", &id).await;
    }
}

#[tokio::test]
async fn a_subscription_that_only_swallows_is_left_and_listeners_learn_that_events_were_missed() {
    let redis = RedisServer::start().await;
    let proxy = Proxy::start(redis.port());
    let options = StackOptions::api_only().store(&format!("redis://127.0.0.1:{}", proxy.port()));
    let (stack, sink) = (options.start().await, Sink::start().await);
    let mut listener = listen(&stack, "").await;
    assert!(proxy.swallow_subscriptions() > 0);
    stack.accept(&with(job(&sink, "unheard"), "delay", "1h")).await;
    assert_eq!(listener.next().await.0, "missed");
    stack.accept(&with(job(&sink, "heard"), "delay", "1h")).await;
    listener.expect("submitted", "heard").await;
}

#[tokio::test]
async fn nothing_is_published_while_nobody_listens() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let mut redis = stack.redis().client().await;
    stack.accept(&job(&sink, "before")).await;
    stack.wait_state(TOPIC, "before", "done", SOON).await;
    let channels: Vec<String> =
        redis::cmd("PUBSUB").arg("CHANNELS").arg("*:events").query_async(&mut redis).await.expect("PUBSUB");
    assert_eq!(channels, [""; 0], "nobody subscribes before anybody listens");
    let mut listener = listen(&stack, "").await;
    stack.accept(&job(&sink, "watched")).await;
    listener.expect("submitted", "watched").await;
    drop(listener);
    eventually(SOON, "the subscription ends with the last listener", async || {
        let channels: Vec<String> = redis::cmd("PUBSUB")
            .arg("CHANNELS")
            .arg("*:events")
            .query_async(&mut redis.clone())
            .await
            .expect("PUBSUB");
        if channels.is_empty() { Ok(()) } else { Err(channels.join(" ")) }
    })
    .await;
}

/// Opens a stream of all events that the caller never reads; its kernel buffers little.
async fn deaf(stack: &Stack) -> TcpStream {
    let address = stack.url("").trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("the api listens");
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("the api reads");
    stream
}

#[tokio::test]
async fn a_listener_that_does_not_read_is_dropped_and_another_gets_everything() {
    const BATCH: usize = 1000;
    let stack = StackOptions::api_only().start().await;
    let mut stream = deaf(&stack).await;
    let mut other = listen(&stack, "?kind=submitted").await;
    let mut sent = 0;
    eventually(6 * SOON, "the listener that does not read is dropped", async || {
        let id = "x".repeat(100);
        let jobs: Vec<_> = (0..BATCH)
            .map(|n| json!({"topic": TOPIC, "id": format!("{id}-{sent}-{n}"), "delay": "1h"}))
            .collect();
        let (status, answer) = stack.batch(&jobs).await;
        assert_eq!((status, &answer["accepted"]), (200, &json!(BATCH)));
        sent += 1;
        for _ in 0..BATCH {
            assert_eq!(other.next().await.0, "submitted");
        }
        let dropped = stack.apis[0].metric("ringback_api_event_listeners_dropped_total").await;
        if dropped == Some(1.0) { Ok(()) } else { Err(format!("it is not after {sent} batches")) }
    })
    .await;
    // The slow listener reads at last: what was under way, and why the stream ends.
    let mut read = Vec::new();
    let reading = async {
        while !read.ends_with(b"\r\n0\r\n\r\n") {
            assert!(stream.read_buf(&mut read).await.expect("the api ends the answer") > 0, "it broke off");
        }
    };
    tokio::time::timeout(SOON, reading).await.expect("the stream ends");
    let text = String::from_utf8_lossy(&read);
    assert!(text.ends_with("event: dropped\ndata: {}\n\n\r\n0\r\n\r\n"), "{}", &text[text.len() - 200..]);
    let received = text.matches("event: submitted").count();
    assert!(received > 0 && received < sent * BATCH, "{received} of {}", sent * BATCH);
    stack.apis[0].wait_metric("ringback_api_event_listeners", 1.0, SOON).await;
    assert!(stack.apis[0].metric("ringback_api_events_sent_total").await >= Some((sent * BATCH) as f64));
}

#[tokio::test]
async fn after_the_store_was_away_a_listener_receives_a_gap_event() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    let mut listener = listen(&stack, "").await;
    stack.redis_mut().kill();
    let url = stack.url("/v1/events");
    eventually(SOON, "nobody else can begin to listen", async || {
        let response = http_client().get(&url).send().await.expect("the api answers");
        match (response.status().as_u16(), response.headers().contains_key("retry-after")) {
            (503, true) => Ok(()),
            (status, _) => Err(status),
        }
    })
    .await;
    stack.redis_mut().restart().await;
    assert_eq!(listener.next().await, ("missed".to_owned(), json!({})));
    let back = job(&sink, "back");
    eventually(3 * SOON, "submits are accepted again", async || match stack.submit(&back).await {
        (200 | 201, _) => Ok(()),
        (status, _) => Err(status),
    })
    .await;
    loop {
        let (kind, data) = listener.next().await;
        if kind != "missed" {
            assert_eq!((kind.as_str(), &data["id"]), ("submitted", &json!("back")));
            break;
        }
    }
    stack.ready(3 * SOON).await;
}

#[tokio::test]
async fn open_streams_end_at_once_at_the_shutdown() {
    for (options, is_up) in StackOptions::each_store().into_iter().zip([false, true]) {
        let mut stack = options.start().await;
        let mut listener = listen(&stack, "").await;
        let process = if is_up { &mut stack.ups[0] } else { &mut stack.apis[0] };
        process.term();
        let begun = tokio::time::Instant::now();
        assert_eq!(listener.try_next().await, None, "the stream ends well");
        let status = process.wait_exit(SOON).await;
        assert_eq!(status.code(), Some(0), "{}", process.log());
        // Requests that go on have five seconds.
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        stack.skip_check();
    }
}

#[tokio::test]
async fn a_listener_that_does_not_read_holds_up_no_shutdown() {
    let mut stack = StackOptions::api_only().start().await;
    let _stream = deaf(&stack).await;
    let mut other = listen(&stack, "").await;
    for batch in 0..8 {
        let job = |n: usize| json!({"topic": TOPIC, "id": format!("job-{batch}-{n}"), "delay": "1h"});
        stack.batch(&(0..1000).map(job).collect::<Vec<_>>()).await;
    }
    for _ in 0..8000 {
        other.next().await;
    }
    stack.apis[0].term();
    let status = stack.apis[0].wait_exit(SOON).await;
    assert_eq!(status.code(), Some(0), "{}", stack.apis[0].log());
    stack.skip_check();
}

#[tokio::test]
async fn more_listeners_than_are_allowed_are_refused_until_one_leaves() {
    let options = Stack::options().role_env(Role::Api, "RINGBACK_EVENT_LISTENERS", "4");
    let stack = options.count(Role::Carrier, 0).count(Role::Notifier, 0).start().await;
    let (_one, other) = (listen(&stack, "").await, listen(&stack, "").await);
    let reply = stack.get("/v1/events").await;
    assert_eq!(reply.header("retry-after"), Some("1"));
    reply.refused(503, "2 others of your tenant");
    drop(other);
    let url = stack.url("/v1/events");
    eventually(SOON, "there is room again", async || {
        match http_client().get(&url).send().await.expect("the api answers").status().as_u16() {
            200 => Ok(()),
            status => Err(status),
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_a_problem_that_names_it() {
    let stack = StackOptions::api_only().start().await;
    let long = "x".repeat(129);
    for (query, fields) in [
        ("kind=reserved".to_owned(), "kind"),
        ("kind=done,,dead".to_owned(), "kind"),
        ("id=a".to_owned(), "id"),
        (format!("topic={long}&id={long}"), "topic id"),
        ("topic=a&topic=b".to_owned(), "topic"),
        ("since=5".to_owned(), "since"),
    ] {
        let reply = stack.get(&format!("/v1/events?{query}")).await;
        assert_eq!(reply.status, 422, "{query}");
        let errors = reply.json()["errors"].as_array().expect("errors").clone();
        let named: Vec<_> = errors.iter().filter_map(|error| error["field"].as_str()).collect();
        assert_eq!(named.join(" "), fields, "{query}");
    }
    assert_eq!(stack.post_empty("/v1/events").await.status, 405);
}
