//! Gauges of jobs at `/metrics` of the carriers: they agree with the statistics, count each job once however many
//! carriers there are, and are absent while the store is away.

use std::collections::BTreeMap;

use ringback_testkit::{Answer, Process, Role, Sink, Stack, StackOptions, eventually, now};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, TOPIC, job, with};

const STATES: [&str; 6] = ["delayed", "ready", "reserved", "done", "dead", "cancelled"];
const GAUGES: [&str; 4] = [
    "ringback_jobs",
    "ringback_oldest_ready_seconds",
    "ringback_topic_jobs",
    "ringback_topic_oldest_ready_seconds",
];

/// The carriers of a stack, or its one process.
fn carriers(stack: &Stack) -> impl Iterator<Item = &Process> {
    stack.carriers.iter().chain(&stack.ups)
}

/// The values of all gauges of one process, by name and labels.
async fn gauges(process: &Process) -> BTreeMap<String, f64> {
    let text = process.metrics().await;
    let lines = text.lines().filter_map(|line| line.split_once(['{', ' ']).map(|(name, _)| (name, line)));
    let own = lines.filter(|(name, _)| GAUGES.contains(name) || *name == "ringback_carrier_counted_shards");
    own.map(|(_, line)| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        (name.to_owned(), value.parse().expect("a number"))
    })
    .collect()
}

/// The sum of a gauge over all carriers; `None` while it is absent.
async fn sum(stack: &Stack, name: &str) -> Option<f64> {
    let mut sum = None;
    for process in carriers(stack) {
        let found = gauges(process).await.get(name).copied();
        sum = found.map_or(sum, |value| Some(sum.unwrap_or(0.0) + value));
    }
    sum
}

/// Waits until a gauge has a value over all carriers.
async fn wait(stack: &Stack, name: &str, wanted: impl Fn(Option<f64>) -> bool) -> Option<f64> {
    eventually(SOON, name, async || {
        let value = sum(stack, name).await;
        if wanted(value) { Ok(value) } else { Err(format!("{value:?}")) }
    })
    .await
}

fn of_state(state: &str) -> String {
    format!("ringback_jobs{{state=\"{state}\"}}")
}

fn of_topic(topic: &str, state: &str) -> String {
    format!("ringback_topic_jobs{{state=\"{state}\",topic=\"{topic}\"}}")
}

/// A job in each state, of a topic.
async fn one_in_each_state(stack: &Stack, sink: &Sink, topic: &str) {
    let own = |id: &str| with(job(sink, id), "topic", topic);
    let pull = |id: &str| json!({"topic": topic, "id": id, "retry": {"preset": "none"}});
    stack.accept(&with(own("delayed"), "delay", "1h")).await;
    stack.accept(&own("done")).await;
    sink.answer_job("dead", Answer::status(410));
    stack.accept(&own("dead")).await;
    stack.accept(&with(own("cancelled"), "delay", "1h")).await;
    assert_eq!(stack.cancel(topic, "cancelled").await.0, 200);
    stack.accept(&pull("reserved")).await;
    stack.reserve_one(topic, &json!({"ttr": "10m"})).await;
    stack.accept(&pull("ready")).await;
    for state in ["done", "dead"] {
        stack.wait_state(topic, state, state, SOON).await;
    }
}

#[tokio::test]
async fn the_gauges_agree_with_the_statistics_and_show_chosen_topics() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        wait(&stack, "ringback_carrier_counted_shards", |shards| shards == Some(4.0)).await;
        for state in STATES {
            assert_eq!(sum(&stack, &of_state(state)).await, Some(0.0), "{state}, in an empty store");
        }
        assert_eq!(sum(&stack, "ringback_oldest_ready_seconds").await, Some(0.0));
        assert_eq!(sum(&stack, &of_topic(TOPIC, "ready")).await, None, "nobody has asked for it");

        stack.set_policy(TOPIC, &json!({"metrics": true})).await;
        one_in_each_state(&stack, &sink, TOPIC).await;
        one_in_each_state(&stack, &sink, "other").await;
        for state in STATES {
            wait(&stack, &of_state(state), |jobs| jobs == Some(2.0)).await;
            assert_eq!(stack.count_in(state).await, 2, "{state}");
            wait(&stack, &of_topic(TOPIC, state), |jobs| jobs == Some(1.0)).await;
            assert_eq!(sum(&stack, &of_topic("other", state)).await, None);
        }
        let age = wait(&stack, "ringback_oldest_ready_seconds", |age| age > Some(0.0)).await;
        assert!(age < Some(600.0), "{age:?}");
        let own = format!("ringback_topic_oldest_ready_seconds{{topic=\"{TOPIC}\"}}");
        wait(&stack, &own, |age| age > Some(0.0)).await;

        for topic in [TOPIC, "other"] {
            stack.reserve_one(topic, &json!({"ttr": "10m"})).await;
        }
        wait(&stack, "ringback_oldest_ready_seconds", |age| age == Some(0.0)).await;
        stack.set_policy(TOPIC, &json!({"metrics": false})).await;
        wait(&stack, &of_topic(TOPIC, "ready"), |jobs| jobs.is_none()).await;
    }
}

#[tokio::test]
async fn no_more_topics_than_the_limit_have_gauges() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for n in 0..100 {
            stack.set_policy(&format!("topic-{n}"), &json!({"metrics": true})).await;
        }
        let refused = stack.put("/v1/topics/more", &json!({"metrics": true})).await.expect(409);
        let detail = refused["detail"].as_str().expect("a detail");
        assert!(detail.starts_with("100 topics have") && detail.contains("which is the limit"), "{detail}");
        assert_eq!(stack.get("/v1/topics/more").await.status, 404, "nothing was stored");
        stack.delete("/v1/topics/topic-1").await.expect(200);
        stack.set_policy("more", &json!({"metrics": true})).await;
        assert_eq!(stack.topic("more").await["policy"], json!({"metrics": true}));
    }
}

#[tokio::test]
async fn two_carriers_count_each_job_once_and_one_alone_counts_all() {
    let mut stack = StackOptions::default().count(Role::Carrier, 2).count(Role::Notifier, 0).start().await;
    let jobs: Vec<Value> =
        (0..40).map(|n| json!({"topic": TOPIC, "id": format!("job-{n}"), "delay": "1h"})).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 40);
    let counted = async |stack: &Stack| {
        eventually(SOON, "all shards are counted", async || {
            let shards = sum(stack, "ringback_carrier_counted_shards").await;
            let jobs = sum(stack, &of_state("delayed")).await;
            if (shards, jobs) == (Some(4.0), Some(40.0)) {
                Ok(())
            } else {
                Err(format!("{shards:?} {jobs:?}"))
            }
        })
        .await;
    };
    counted(&stack).await;
    for carrier in &stack.carriers {
        let own = gauges(carrier).await;
        assert_eq!(own["ringback_carrier_counted_shards"], 2.0, "each counts its own");
        assert!(own[&of_state("delayed")] < 40.0, "{own:?}");
    }
    stack.carriers[1].term();
    stack.carriers[1].wait_exit(SOON).await;
    stack.carriers.truncate(1);
    counted(&stack).await;
}

#[tokio::test]
async fn while_the_store_is_away_the_gauges_are_absent_and_metrics_are_answered() {
    let mut stack = StackOptions::default().count(Role::Notifier, 0).start().await;
    stack.accept(&json!({"topic": TOPIC, "id": "a"})).await;
    wait(&stack, &of_state("ready"), |jobs| jobs == Some(1.0)).await;
    stack.redis_mut().stop();
    // The last answer is shown for some seconds, and then nothing: no wrong number ever.
    let absent = async || {
        let own = tokio::time::timeout(SOON, gauges(&stack.carriers[0])).await.expect("metrics are answered");
        let shown = own.get(&of_state("ready"));
        assert!(shown.is_none_or(|jobs| *jobs == 1.0), "{own:?}");
        let left: Vec<_> = own.keys().filter(|name| *name != "ringback_carrier_counted_shards").collect();
        if left.is_empty() { Ok(own["ringback_carrier_counted_shards"]) } else { Err(format!("{left:?}")) }
    };
    assert_eq!(eventually(2 * SOON, "no gauge is left", absent).await, 0.0);
    stack.redis_mut().cont();
    wait(&stack, &of_state("ready"), |jobs| jobs == Some(1.0)).await;
}

#[tokio::test]
async fn scrapes_share_an_answer_of_the_store() {
    let stack = StackOptions::default().count(Role::Api, 1).count(Role::Notifier, 0).start().await;
    wait(&stack, "ringback_carrier_counted_shards", |shards| shards == Some(4.0)).await;
    let watch = stack.redis().watch_calls().await;
    let scrapes = async |count: usize| {
        for _ in 0..count {
            gauges(&stack.carriers[0]).await;
        }
        watch.by_command().get("fcall").copied().unwrap_or(0)
    };
    let (before, begun) = (scrapes(1).await, now());
    let calls = scrapes(200).await - before;
    // Heartbeats and passes are the rest: a few in each second.
    let seconds = now().duration_since(begun).as_secs_f64();
    let most = 40.0 + 20.0 * seconds;
    assert!((calls as f64) < most, "{calls} calls for 200 scrapes in {seconds} s");
}
