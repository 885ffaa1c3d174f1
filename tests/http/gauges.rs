//! Gauges of jobs at `/metrics` of the carriers: they agree with the statistics, count each job once with any number
//! of carriers, and are absent while the store is away.

use std::collections::BTreeMap;

use ringback_testkit::{Answer, Process, Role, Sink, Stack, StackOptions, eventually, now};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, TOPIC, between, job, with};

const STATES: [&str; 6] = ["delayed", "ready", "reserved", "done", "dead", "cancelled"];
/// The metrics of jobs that carriers show. Their names do not begin with the role.
pub(super) const GAUGES: [&str; 8] = [
    "ringback_jobs",
    "ringback_missing_jobs",
    "ringback_tombstones_evicted_early",
    "ringback_store_memory_ratio",
    "ringback_open_breakers",
    "ringback_oldest_ready_seconds",
    "ringback_topic_jobs",
    "ringback_topic_oldest_ready_seconds",
];

fn carriers(stack: &Stack) -> impl Iterator<Item = &Process> {
    stack.carriers.iter().chain(&stack.ups)
}

/// The gauges of [`GAUGES`] and `ringback_carrier_counted_shards` of a process, by name and labels.
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

/// The sum of a gauge over all carriers; `None` if no carrier shows it.
async fn sum(stack: &Stack, name: &str) -> Option<f64> {
    let mut sum = None;
    for process in carriers(stack) {
        let found = gauges(process).await.get(name).copied();
        sum = found.map_or(sum, |value| Some(sum.unwrap_or(0.0) + value));
    }
    sum
}

/// Waits until the sum of a gauge over all carriers is as `wanted`, and returns it.
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

/// Asserts that gauges agree with the statistics and that topics have their own only while their policies ask for them.
async fn agree_with_the_statistics(options: StackOptions) {
    let (stack, sink) = (options.start().await, Sink::start().await);
    stack.set_policy(TOPIC, &json!({"metrics": true})).await;
    one_in_each_state(&stack, &sink, TOPIC).await;
    one_in_each_state(&stack, &sink, "other").await;
    wait(&stack, &of_topic(TOPIC, "ready"), |jobs| jobs == Some(1.0)).await;
    for state in STATES {
        wait(&stack, &of_state(state), |jobs| jobs == Some(2.0)).await;
        assert_eq!(stack.count_in(state).await, 2, "{state}");
        assert_eq!(sum(&stack, &of_topic(TOPIC, state)).await, Some(1.0), "{state}");
        assert_eq!(sum(&stack, &of_topic("other", state)).await, None, "nobody has asked for it");
    }
    let of_topic_ready = format!("ringback_topic_oldest_ready_seconds{{topic=\"{TOPIC}\"}}");
    for name in ["ringback_oldest_ready_seconds", &of_topic_ready] {
        let age = sum(&stack, name).await;
        assert!(age > Some(0.0) && age < Some(600.0), "{name}: {age:?}");
    }

    assert_eq!(sum(&stack, "ringback_tombstones_evicted_early").await, Some(0.0));
    assert_eq!(sum(&stack, "ringback_store_memory_ratio").await, None, "there is no limit");

    for topic in [TOPIC, "other"] {
        stack.reserve_one(topic, &json!({"ttr": "10m"})).await;
    }
    stack.set_policy(TOPIC, &json!({"metrics": false})).await;
    wait(&stack, &of_topic(TOPIC, "ready"), |jobs| jobs.is_none()).await;
    wait(&stack, "ringback_oldest_ready_seconds", |age| age == Some(0.0)).await;
    assert_eq!(sum(&stack, &of_state("ready")).await, Some(0.0));
    assert_eq!(sum(&stack, &of_state("reserved")).await, Some(4.0));
}

#[tokio::test]
async fn the_gauges_agree_with_the_statistics_and_show_chosen_topics() {
    // An answer of the store is shown for seconds: both stores are waited for together.
    let [redis, embedded] = StackOptions::each_store();
    tokio::join!(agree_with_the_statistics(redis), agree_with_the_statistics(embedded));
}

#[tokio::test]
async fn the_memory_of_redis_is_shown_as_a_part_of_its_limit() {
    let stack = StackOptions::default().start().await;
    let used = stack.redis().used_memory().await;
    stack.redis().limit_memory(4 * used).await;
    let share = wait(&stack, "ringback_store_memory_ratio", |share| share.is_some()).await;
    assert!(share > Some(0.1) && share < Some(0.8), "{share:?}");
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
    // The carrier that started first has all shards until the other is known.
    eventually(SOON, "each carrier counts its own shards", async || {
        for carrier in &stack.carriers {
            let own = gauges(carrier).await;
            let is_half = own.get("ringback_carrier_counted_shards") == Some(&2.0);
            if !is_half || own[&of_state("delayed")] >= 40.0 {
                return Err(format!("{own:?}"));
            }
        }
        Ok(())
    })
    .await;
    counted(&stack).await;
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
    // The last answer is shown for some seconds, and then none; never a wrong number.
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
    const SHARDS: u64 = 4;
    let stack = StackOptions::default().count(Role::Notifier, 0).start().await;
    let watch = stack.redis().watch_calls().await;
    let calls = || -> u64 {
        let functions = watch.by_function();
        functions.iter().filter(|(name, _)| name.ends_with("_gauges")).map(|(_, calls)| calls).sum()
    };
    wait(&stack, "ringback_carrier_counted_shards", |shards| shards == Some(SHARDS as f64)).await;
    let own = gauges(&stack.carriers[0]).await;
    for state in STATES {
        assert_eq!(own[&of_state(state)], 0.0, "{state}, in an empty store");
    }
    assert_eq!(own["ringback_oldest_ready_seconds"], 0.0);
    let before = eventually(SOON, "the calls are seen", async || match calls() {
        few @ ..SHARDS => Err(few),
        calls => Ok(calls),
    })
    .await;

    let begun = now();
    for _ in 0..100 {
        gauges(&stack.carriers[0]).await;
    }
    // Each answer is used for five seconds, and the first of these scrapes may need a new one.
    let answers = 1 + between(begun, now()).as_secs() / 5 + 1;
    let calls = calls() - before;
    assert!(calls <= SHARDS * answers, "{calls} calls for 100 scrapes, which need {answers} answers");
}
