//! Flow control: limits, breakers and the order of keys, at the receiver, over several notifiers and on each store.

use std::collections::{BTreeMap, HashMap};

use ringback_testkit::{RedisServer, Role, Script, now};

use crate::prelude::*;

/// How long a backlog may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

async fn limit(stack: &Stack, sink: &Sink, limits: &Value) {
    let put = stack.put(&format!("/v1/destinations/{}", host(sink)), &json!({"limits": limits})).await;
    assert!(matches!(put.status, 200 | 201), "{}", put.json());
}

/// Host and port of a receiver.
fn host(sink: &Sink) -> String {
    sink.url("").trim_start_matches("http://").to_owned()
}

async fn submit(stack: &Stack, sink: &Sink, topics: usize, jobs: usize) {
    let jobs: Vec<_> = (0..jobs)
        .map(|n| with_all(job(sink, &format!("job-{n}")), &json!({"topic": format!("topic-{}", n % topics)})))
        .collect();
    for part in jobs.chunks(1000) {
        let (status, answer) = stack.batch(part).await;
        assert_eq!((status, &answer["refused"]), (200, &json!(0)), "{answer}");
    }
}

/// When the requests of a receiver arrived, in seconds, in order.
fn times(sink: &Sink) -> Vec<f64> {
    let times = sink.arrivals().into_iter().map(|arrival| arrival.at.as_microsecond() as f64 / 1e6);
    let mut times: Vec<_> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Asserts that in no time t more than rate × t + burst requests have arrived, but for 250 ms of the rate: on a busy machine,
/// callbacks that should have begun one after the other arrive together.
fn keeps_to(rate: f64, burst: f64, sink: &Sink) {
    let times = times(sink);
    for (i, first) in times.iter().enumerate() {
        for (j, last) in times.iter().enumerate().skip(i) {
            let (n, most) = ((j - i + 1) as f64, rate * (last - first + 0.25) + burst);
            assert!(n <= most, "{n} requests within {:.3} s, more than {most:.1}", last - first);
        }
    }
}

/// Asserts that never more than `most` requests were in flight that are answered after `delay`.
fn never_more_than(most: usize, delay: Duration, sink: &Sink) {
    let times = times(sink);
    for (i, at) in times.iter().enumerate() {
        let begun = times[..i].iter().filter(|before| at - **before < delay.as_secs_f64()).count();
        assert!(begun < most, "{} requests are in flight", begun + 1);
    }
}

#[tokio::test]
async fn a_receiver_gets_its_rate_from_one_notifier_and_from_three() {
    for notifiers in [1, 3] {
        let options = Stack::options().count(Role::Api, 1).count(Role::Notifier, notifiers);
        let (stack, sink) = (options.start().await, Sink::start().await);
        limit(&stack, &sink, &json!({"rate": "100/s", "burst": 5})).await;
        submit(&stack, &sink, 3, 500).await;
        sink.wait_for(500, LONG).await;
        keeps_to(100.0, 5.0, &sink);
        let times = times(&sink);
        let took = times[499] - times[0];
        println!("{notifiers} notifiers: 500 requests in {took:.2} s");
        assert!(took < 30.0, "the rate is not used: {took:.1} s");
    }
}

#[tokio::test]
async fn no_more_are_in_flight_than_allowed_while_a_notifier_is_killed_and_another_starts() {
    const DELAY: Duration = Duration::from_millis(40);
    let options = Stack::options().count(Role::Api, 1).count(Role::Notifier, 3).lease_margin("1s");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(200).after(DELAY));
    limit(&stack, &sink, &json!({"in_flight": 10})).await;
    submit(&stack, &sink, 40, 1200).await;
    sink.wait_for(300, LONG).await;
    stack.notifiers[0].kill();
    sink.wait_for(600, LONG).await;
    stack.add(Role::Notifier).await;
    let ids: Vec<_> = (0..1200).map(|n| format!("job-{n}")).collect();
    sink.wait_for_jobs(&ids, 1, LONG).await;
    never_more_than(10, DELAY, &sink);
    stack.wait_count("done", 1200, LONG).await;
    let shown = stack.get(&format!("/v1/destinations/{}", host(&sink))).await.expect(200);
    assert_eq!(shown["limits"]["in_flight"], 10, "{shown}");
}

#[tokio::test]
async fn limits_hold_on_a_cluster_and_on_the_embedded_store() {
    const DELAY: Duration = Duration::from_millis(20);
    for options in [Stack::options().cluster(RedisServer::options()), StackOptions::embedded()] {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(200).after(DELAY));
        limit(&stack, &sink, &json!({"rate": "50/s", "in_flight": 3})).await;
        submit(&stack, &sink, 5, 150).await;
        sink.wait_for(150, LONG).await;
        keeps_to(50.0, 1.0, &sink);
        never_more_than(3, DELAY, &sink);
        stack.wait_count("done", 150, LONG).await;
    }
}

#[tokio::test]
async fn a_limited_receiver_holds_nobody_else_up_and_a_change_holds_at_once() {
    let options = Stack::options().count(Role::Api, 1).count(Role::Notifier, 1);
    let (stack, slow, other) = (options.start().await, Sink::start().await, Sink::start().await);
    limit(&stack, &slow, &json!({"rate": "1/m"})).await;
    submit(&stack, &slow, 100, 1000).await;
    slow.wait_for(1, SOON).await;
    for n in 0..20 {
        let id = format!("other-{n}");
        stack.accept(&with_all(job(&other, &id), &json!({"topic": "other"}))).await;
        other.wait_for_job(&id, 1, SOON).await;
    }
    assert_eq!(slow.seen(), 1, "one a minute");
    let stats = stack.stats().await;
    assert_eq!(stats["states"]["ready"], 999, "what waits is not leased: {stats}");

    stack.delete(&format!("/v1/destinations/{}", host(&slow))).await.expect(200);
    slow.wait_for(1000, LONG).await;
}

#[tokio::test]
async fn a_topic_has_its_rate_over_two_receivers_until_its_policy_is_deleted() {
    let options = Stack::options().count(Role::Api, 1).count(Role::Notifier, 2);
    let (stack, sinks) = (options.start().await, [Sink::start().await, Sink::start().await]);
    let policy = json!({"limits": {"rate": "20/s", "in_flight": 5}});
    assert_eq!(stack.put("/v1/topics/slow", &policy).await.status, 201);
    for n in 0..60 {
        let job = job(&sinks[n % 2], &format!("job-{n}"));
        stack.accept(&with_all(job, &json!({"topic": "slow"}))).await;
    }
    for sink in &sinks {
        sink.wait_for(10, LONG).await;
    }
    let shown = stack.get("/v1/topics/slow").await.expect(200);
    assert_eq!(shown["limits"]["rate"], "20/s", "{shown}");
    let arrived: Vec<_> = sinks.iter().flat_map(times).collect();
    let (first, last) = arrived.iter().fold((f64::MAX, 0.0_f64), |(a, b), at| (a.min(*at), b.max(*at)));
    let most = 20.0 * (last - first + 0.25) + 1.0;
    assert!(arrived.len() as f64 <= most, "{} in {:.2} s", arrived.len(), last - first);
    stack.delete("/v1/topics/slow?force=true").await;
    let other = with_all(job(&sinks[0], "other"), &json!({"topic": "slow"}));
    stack.accept(&other).await;
    sinks[0].wait_for_job("other", 1, SOON).await;
}

#[tokio::test]
async fn a_receiver_that_is_away_is_probed_and_comes_back_gently() {
    const JOBS: usize = 600;
    let embedded = StackOptions::embedded();
    for options in [Stack::options().count(Role::Api, 1).count(Role::Notifier, 2), embedded] {
        let settings = [("RINGBACK_LANE_CONCURRENCY", "4"), ("RINGBACK_RETRY", "1s 1s 1s 1s 1s 1s 1s 1s")];
        let set = |options: StackOptions, (name, value)| options.role_env(Role::Notifier, name, value);
        let options = settings.into_iter().fold(options, set);
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(503).after(Duration::from_millis(20)));
        submit(&stack, &sink, 3, JOBS).await;
        eventually(LONG, "the breaker opens", async || {
            let last = stack.get("/v1/jobs/topic-0/job-597").await.expect(200);
            if last["waiting"]["for"] == "breaker" { Ok(()) } else { Err(last.to_string()) }
        })
        .await;
        // What was in flight ends; then there are probes alone, one after the other.
        let before = sink.seen();
        assert!(before < JOBS, "{before} attempts");
        sink.wait_for(before + 2, LONG).await;
        sink.answer(Answer::status(200));
        let at = now().as_microsecond() as f64 / 1e6;
        sink.wait_for_jobs(&["job-597".to_owned()], 1, LONG).await;
        let back: Vec<_> = times(&sink).into_iter().filter(|time| *time > at).collect();
        for second in 0..5 {
            let n = back.iter().filter(|time| **time < back[0] + f64::from(second) + 0.5).count();
            // 1, 2, 4, ... callbacks a second.
            assert!(n <= (4 << second), "{n} callbacks {second} s after the first answer");
        }
        stack.wait_count("done", JOBS as u64, LONG).await;
    }
}

#[tokio::test]
async fn a_receiver_that_answers_429_gets_nothing_until_its_time_and_others_go_on() {
    const JOBS: usize = 200;
    let embedded = StackOptions::embedded();
    for options in [Stack::options().count(Role::Api, 1).count(Role::Notifier, 2), embedded] {
        let options = options.role_env(Role::Notifier, "RINGBACK_LANE_CONCURRENCY", "4");
        let (stack, sink, other) = (options.start().await, Sink::start().await, Sink::start().await);
        let busy = Answer::status(429).header("Retry-After", "4").after(Duration::from_millis(50));
        sink.answer(busy);
        submit(&stack, &sink, 2, JOBS).await;
        eventually(LONG, "the receiver is left alone", async || {
            let last = stack.get("/v1/jobs/topic-1/job-199").await.expect(200);
            if last["waiting"]["for"] == "breaker" { Ok(()) } else { Err(last.to_string()) }
        })
        .await;
        let held = now().as_microsecond() as f64 / 1e6;
        sink.answer(Answer::status(200));
        stack.accept(&with_all(job(&other, "other"), &json!({"topic": "topic-0"}))).await;
        other.wait_for_job("other", 1, SOON).await;
        let at = other.arrivals()[0].at.as_microsecond() as f64 / 1e6;
        stack.wait_count("done", JOBS as u64 + 1, LONG).await;
        let times = times(&sink);
        // What was in flight, or reserved ahead, still goes.
        let again = times.iter().find(|time| **time > held + 0.5).expect("it is called again");
        assert!(at < *again, "the other receiver waited for this one");
        assert!(
            *again >= times[0] + 4.0,
            "it was called again {:.1} s after its first answer",
            again - times[0]
        );
        let before = times.iter().filter(|time| **time <= held + 0.5).count();
        assert!(before < JOBS, "{before} attempts were made before it was left alone");
        let state = stack.get("/v1/destinations").await.expect(200);
        assert_eq!(state["items"][0]["failing"]["breaker"], Value::Null, "{state}");
    }
}

/// The key of a job, and its place in the key.
fn place(id: &str) -> (String, usize) {
    let (key, n) = id.split_once('~').expect("a key");
    (key.to_owned(), n.parse().expect("a number"))
}

/// Asserts of each key that no request began before the one before it was answered, after `delay`, and that its jobs
/// succeeded in their order. A request whose job fails is answered so at first, as `fails` says; `dies` of one that never
/// succeeds.
fn in_order(delay: Duration, fails: fn(usize) -> bool, dies: fn(usize) -> bool, sinks: &[Sink]) {
    let mut requests: BTreeMap<String, Vec<(f64, usize)>> = BTreeMap::new();
    for arrival in sinks.iter().flat_map(Sink::arrivals) {
        let (key, n) = place(arrival.job_id());
        requests.entry(key).or_default().push((arrival.at.as_microsecond() as f64 / 1e6, n));
    }
    for (key, mut requests) in requests {
        requests.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in requests.windows(2) {
            let gap = pair[1].0 - pair[0].0;
            assert!(
                gap >= delay.as_secs_f64() * 0.9,
                "{key}: {} began {gap:.4} s after {}",
                pair[1].1,
                pair[0].1
            );
        }
        let (mut attempts, mut succeeded) = (HashMap::new(), Vec::new());
        for (_, n) in requests {
            let attempt = attempts.entry(n).or_insert(0);
            *attempt += 1;
            if !dies(n) && *attempt == 1 + usize::from(fails(n)) {
                succeeded.push(n);
            }
        }
        let all: Vec<_> = (0..succeeded.last().map_or(0, |last| last + 1)).filter(|n| !dies(*n)).collect();
        assert_eq!(succeeded, all, "{key}");
    }
}

#[tokio::test]
async fn jobs_of_a_key_succeed_in_their_order_while_some_fail_and_die_and_a_notifier_is_killed() {
    const DELAY: Duration = Duration::from_millis(10);
    const KEYS: usize = 40;
    let fails = |n: usize| n % 5 == 2;
    let dies = |n: usize| n % 13 == 8;
    let redis = Stack::options().count(Role::Api, 1).count(Role::Notifier, 3).lease_margin("1s");
    for options in [redis, StackOptions::embedded()] {
        let options = options.role_env(Role::Notifier, "RINGBACK_RETRY", "200ms 200ms");
        let (mut stack, sinks) = (options.start().await, [Sink::start().await, Sink::start().await]);
        assert_eq!(stack.put("/v1/topics/states", &json!({"order": "key"})).await.status, 201);
        let jobs: Vec<_> =
            (0..KEYS * 15).map(|i| (format!("key-{}~{}", i % KEYS, i / KEYS), i % 3)).collect();
        for (id, _) in &jobs {
            let (_, n) = place(id);
            let ok = Answer::status(200).after(DELAY);
            for sink in &sinks {
                if fails(n) {
                    sink.answer_job(
                        id,
                        Script::first(1, Answer::status(500).after(DELAY)).finally(ok.clone()),
                    );
                } else {
                    sink.answer_job(id, if dies(n) { Answer::status(410).after(DELAY) } else { ok.clone() });
                }
            }
        }
        for part in jobs.chunks(100) {
            let part: Vec<_> = part
                .iter()
                .map(|(id, to)| with_all(job(&sinks[usize::from(*to == 0)], id), &json!({"topic": "states"})))
                .collect();
            let (status, answer) = stack.batch(&part).await;
            assert_eq!((status, &answer["refused"]), (200, &json!(0)), "{answer}");
        }
        sinks[0].wait_for(100, LONG).await;
        if let Some(notifier) = stack.notifiers.first_mut() {
            notifier.kill();
            stack.add(Role::Notifier).await;
        }
        let dead = jobs.iter().filter(|(id, _)| dies(place(id).1)).count();
        stack.wait_count("dead", dead as u64, LONG).await;
        stack.wait_count("done", (jobs.len() - dead) as u64, LONG).await;
        in_order(DELAY, fails, dies, &sinks);
    }
}
