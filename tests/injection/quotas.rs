//! The store's call that draws from a tenant's quota: the API is killed, stopped or cut off at it, and Redis answers
//! it with each error. No accepted job is lost, and the tenant gets no more than it may have.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use http::{Method, header};
use reqwest::Client;
use ringback_testkit::{
    Persistence, RedisErrors, RedisServer, Reply, Role, Stack, StackOptions, eventually, http_client,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::crash_points::{Counts, Ends, Plan, quota_points, supervise};
use crate::redis_errors::{ErrorEffect, FAULTS, outcome};
use crate::seed::seed;

const ROOT: &str = "root-key-of-the-tests-0123456789abcdef";
const CALL: &str = "grant_quota";
/// How many jobs the tenant may have: few, so that each job needs a draw of its own.
const JOBS: u64 = 60;
/// How long a sweep may take on a busy machine, and a call until it succeeds again.
const SWEEP: Duration = Duration::from_secs(60);

/// Sends a call with a key; one without a body is about the tenant `acme`. Returns `None` without a complete answer.
async fn send(client: &Client, key: &str, method: Method, url: &str, body: Option<&Value>) -> Option<Reply> {
    let request = client.request(method, url).header(header::AUTHORIZATION, format!("Bearer {key}"));
    let request = match body {
        Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(body.to_string()),
        None => request.header("ringback-tenant", "acme"),
    };
    Reply::read(request.send().await.ok()?).await.ok()
}

/// Gives the tenant a quota, and returns a key of the tenant that all APIs know.
async fn prepared(stack: &Stack) -> String {
    let (client, quota) = (http_client(), json!({"jobs": JOBS}));
    let put = send(&client, ROOT, Method::PUT, &stack.url("/v1/quotas/acme"), Some(&quota)).await;
    put.expect("an answer").expect(201);
    let ask = json!({"tenant": "acme", "scopes": ["submit", "read"]});
    let made = send(&client, ROOT, Method::POST, &stack.url("/v1/keys"), Some(&ask)).await;
    let key = made.expect("an answer").expect(201)["key"].as_str().expect("a key").to_owned();
    serve(&client, &key, &stack.api_urls()).await;
    key
}

/// Waits until all APIs accept a key.
async fn serve(client: &Client, key: &str, urls: &[String]) {
    for url in urls {
        eventually(SWEEP, "the api serves", async || {
            let reply = send(client, key, Method::GET, &format!("{url}/v1/topics"), None).await;
            match reply.map_or(0, |reply| reply.status) {
                200 => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }
}

fn job(id: &str) -> Value {
    json!({"topic": "t", "id": id, "delay": "1h"})
}

/// The number of jobs that the tenant has.
async fn stored(client: &Client, stack: &Stack) -> u64 {
    let stats = send(client, ROOT, Method::GET, &stack.url("/v1/stats"), None).await;
    stats.expect("an answer").expect(200)["states"]["delayed"].as_u64().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draws_may_be_cut_short() {
    let plan = Plan::new(&quota_points(), seed(), true);
    let redis = RedisServer::options().persistence(Persistence::Always);
    let options = StackOptions::api_only().redis(redis).count(Role::Api, 2).unchecked();
    let mut stack = plan.give(options.env("RINGBACK_ROOT_KEY", ROOT)).start().await;
    let (client, urls) = (http_client(), stack.api_urls());
    let key = prepared(&stack).await;
    let accepted = Mutex::new(BTreeSet::new());
    let submit = async |number: usize, url: &str| {
        for n in 0.. {
            let id = format!("job-{number}-{n}");
            let reply = send(&client, &key, Method::POST, &format!("{url}/v1/jobs"), Some(&job(&id))).await;
            match reply.map(|reply| reply.status) {
                Some(201) => drop(accepted.lock().expect("it is not poisoned").insert(id)),
                // The API is killed, cut off or not ready yet, when it does not know the key; or the quota is used up.
                None | Some(401 | 429 | 503) => sleep(Duration::from_millis(20)).await,
                Some(status) => panic!("{status}"),
            }
        }
    };
    let mut counts = Counts::default();
    tokio::select! {
        () = submit(0, &urls[0]) => {}
        () = submit(1, &urls[1]) => {}
        () = supervise(&mut stack, &mut counts, SWEEP, &plan, Ends::Never) => {}
    }
    // Processes that were killed last are started again too.
    let never = Plan::never();
    tokio::select! {
        () = serve(&client, &key, &urls) => {}
        () = supervise(&mut stack, &mut counts, SWEEP, &never, Ends::Never) => {}
    }
    assert!(counts.kills >= 2 && counts.stops >= 2, "{counts:?}");
    let accepted = accepted.into_inner().expect("it is not poisoned");
    assert!(!accepted.is_empty());
    for id in &accepted {
        let url = stack.url(&format!("/v1/jobs/t/{id}"));
        send(&client, ROOT, Method::GET, &url, None).await.expect("an answer").expect(200);
    }
    // Each API may have had one more job under way when the load stopped.
    let most = JOBS + urls.len() as u64;
    let stored = stored(&client, &stack).await;
    assert!((accepted.len() as u64..=most).contains(&stored), "{stored}, {} accepted", accepted.len());
}

#[tokio::test]
async fn each_error_of_redis_at_a_draw_has_its_outcome() {
    let redis = RedisServer::options().persistence(Persistence::Always).start().await;
    let proxy = RedisErrors::start(redis.port()).await;
    let options = StackOptions::api_only().store(&format!("redis://127.0.0.1:{}", proxy.port())).unchecked();
    let mut stack = options.env("RINGBACK_SHARDS", "1").env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let (client, key, mut wrong) = (http_client(), prepared(&stack).await, Vec::new());
    let jobs = stack.url("/v1/jobs");
    for (name, fault) in FAULTS {
        proxy.arm(CALL, fault);
        let id = name.replace(' ', "-");
        let reply = send(&client, &key, Method::POST, &jobs, Some(&job(&id))).await.expect("an answer");
        let was_made = proxy.left().is_empty();
        proxy.disarm();
        let (status, text) = (reply.status, String::from_utf8_lossy(&reply.body).into_owned());
        let is_right = match outcome(CALL, fault) {
            ErrorEffect::Unavailable => status == 503 && text.contains("\"detail\""),
            ErrorEffect::Served => status == 201,
            ErrorEffect::Either | ErrorEffect::Repeated => false,
        };
        if !was_made || !is_right {
            wrong.push(format!("{name}, made: {was_made}: {status} {text}"));
        }
        eventually(SWEEP, &format!("a job is accepted after {name}"), async || {
            let reply = send(&client, &key, Method::POST, &jobs, Some(&job(&id))).await;
            match reply.map_or(0, |reply| reply.status) {
                200 | 201 => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(stored(&client, &stack).await, FAULTS.len() as u64);
    let api = &mut stack.apis[0];
    assert!(api.exit_status().is_none() && !api.log().contains("panicked"), "{}", api.log());
}
