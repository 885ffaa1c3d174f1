//! Secret header values are masked wherever they are shown, kept when a policy is put as it was shown, and the mask is
//! refused as a value of a job.

use ringback_testkit::Role;

use crate::prelude::*;

const MASK: &str = "[masked by ringback]";
const PATH: &str = "/v1/topics/e2e";

/// The detail of a problem about the field `headers`.
fn refused(problem: &Value) -> String {
    assert_eq!(problem["errors"][0]["field"], "headers", "{problem}");
    problem["errors"][0]["detail"].as_str().expect("a detail").to_owned()
}

#[tokio::test]
async fn a_policy_put_as_it_was_shown_keeps_its_secrets() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let policy = json!({"headers": {"X-Api-Key": "hunter2", "Authorization": "Bearer \"1\"", "x-a": "1"}, "headers_to": ["*"]});
        let shown =
            json!({"headers": {"X-Api-Key": MASK, "Authorization": MASK, "x-a": "1"}, "headers_to": ["*"]});
        assert_eq!(stack.set_policy(TOPIC, &policy).await.json()["policy"], shown, "in the answer");
        for path in [PATH, "/v1/topics"] {
            let body = stack.get(path).await.body;
            assert!(!String::from_utf8_lossy(&body).contains("hunter2"), "{path}");
        }
        assert_eq!(stack.topic(TOPIC).await["policy"], shown);
        assert_eq!(stack.get("/v1/topics").await.expect(200)["items"][0]["policy"], shown);

        let mut changed = shown.clone();
        (changed["headers"]["x-a"], changed["timeout"]) = (json!("2"), json!("5s"));
        let reply = stack.put(PATH, &changed).await;
        assert_eq!((reply.status, &reply.json()["policy"]), (200, &changed));
        let arrival = eventually(SOON, "the changed policy applies", async || {
            let id = format!("job-{}", sink.seen());
            stack.accept(&job(&sink, &id)).await;
            let arrival = sink.wait_for_job(&id, 1, SOON).await.remove(0);
            if arrival.header("x-a") == Some("2") { Ok(arrival) } else { Err("the old headers") }
        })
        .await;
        assert_eq!(arrival.header("x-api-key"), Some("hunter2"), "its value is delivered");
        assert_eq!(arrival.header("authorization"), Some("Bearer \"1\""));

        let other = json!({"headers": {"x-api-key": MASK, "x-token": MASK}, "headers_to": ["*"]});
        let detail = refused(&stack.put(PATH, &other).await.expect(422));
        assert!(
            detail.starts_with("x-token is [masked by ringback], which keeps a stored value"),
            "{detail}"
        );
        assert_eq!(stack.topic(TOPIC).await["policy"], changed, "a refused policy changes nothing");
        refused(&stack.put("/v1/topics/new", &other).await.expect(422));
        // A header that is left out is gone, and with it its value.
        stack.set_policy(TOPIC, &json!({"headers": {"x-api-key": MASK}, "headers_to": ["*"]})).await;
        let gone = json!({"headers": {"authorization": MASK}, "headers_to": ["*"]});
        refused(&stack.put(PATH, &gone).await.expect(422));
    }
}

#[tokio::test]
async fn the_mask_is_refused_as_a_value_of_a_job() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let job = json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": "http://127.0.0.1:9/",
            "headers": {"x-a": MASK, "X-Signature": MASK}});
        let (status, problem) = stack.submit(&job).await;
        assert_eq!(status, 422);
        assert!(
            refused(&problem).starts_with("x-signature is [masked by ringback], which is shown in place of"),
            "{problem}"
        );
        let (_, batch) = stack.batch(std::slice::from_ref(&job)).await;
        refused(&batch["results"][0]["problem"]);
        let import = stack.import_lines(job.to_string()).await.expect(200);
        assert_eq!((&import["refused"], &import["problems"][0]["status"]), (&json!(1), &json!(422)));
        refused(&import["problems"][0]["problem"]);
        assert_eq!(stack.job(TOPIC, "a").await.0, 404);
        stack.accept(&with(job, "headers", json!({"x-a": MASK}))).await;
    }
}

#[tokio::test]
async fn exports_and_consumers_have_the_values_and_notices_have_no_headers() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let secret = json!({"x-api-key": "hunter2"});
        stack.accept(&json!({"topic": "pull", "id": "a", "headers": secret})).await;
        let line = stack.get("/v1/export").await;
        assert_eq!(line.json()["headers"], secret);
        let pulled = stack.reserve_one("pull", &json!({"wait": "10s"})).await;
        assert_eq!(pulled["headers"], secret);
        assert_eq!(stack.settle(&pulled, "bury", &json!({})).await.status, 200);
        assert_eq!(stack.job("pull", "a").await.1["state"], "dead");

        let dies = json!({"topic": TOPIC, "id": "dies", "url": "http://127.0.0.1:1/", "headers": secret,
            "on_dead": sink.url("/dead"), "retry": {"preset": "none"}});
        stack.accept(&dies).await;
        let notice = sink.wait_for(1, SOON).await.remove(0);
        assert_eq!(notice.path, "/dead");
        assert!(!String::from_utf8_lossy(&notice.body).contains("hunter2"), "{notice:?}");
        assert_eq!(notice.header("x-api-key"), None);
    }
}

#[tokio::test]
async fn no_log_has_a_secret() {
    let (stack, sink) =
        (StackOptions::default().env("RINGBACK_LOG", "trace").start().await, Sink::start().await);
    stack.set_policy(TOPIC, &json!({"headers": {"authorization": "hunter2"}, "headers_to": ["*"]})).await;
    stack.accept(&with(job(&sink, "a"), "headers", json!({"x-token": "hunter3"}))).await;
    stack.wait_state(TOPIC, "a", "done", SOON).await;
    assert_eq!(sink.arrivals()[0].header("x-token"), Some("hunter3"));
    stack.get("/v1/jobs/e2e/a?include=request").await;
    for (role, process) in [(Role::Api, &stack.apis[0]), (Role::Notifier, &stack.notifiers[0])] {
        let log = process.log();
        assert!(log.contains("policies"), "{role:?} logs something: {log}");
        assert!(!log.contains("hunter"), "{role:?}: {log}");
    }
}

#[tokio::test]
async fn whatever_sounds_like_a_secret_is_masked_wherever_it_is_shown() {
    let names = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-jwt",
        "x-session-id",
        "x-credential",
        "x-pass",
        "x-passphrase",
        "x-bearer",
        "x-csrf",
        "x-xsrf",
        "x-api-key",
        "x-token",
        "x-signature",
        "client-secret",
    ];
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let headers: Value = names.iter().map(|name| ((*name).to_owned(), json!("hunter2"))).collect();
        let answer = stack.set_policy(TOPIC, &json!({"headers": headers, "headers_to": ["*"]})).await;
        let job = json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": "http://127.0.0.1:9/", "headers": headers});
        stack.accept(&job).await;
        let schedule =
            json!({"every": "7d", "job": {"topic": TOPIC, "url": "http://127.0.0.1:9/", "headers": headers}});
        let mut shown = vec![answer, stack.put("/v1/schedules/s", &schedule).await];
        for path in [
            "/v1/jobs/e2e/a?include=request",
            "/v1/jobs?include=request",
            "/v1/topics",
            PATH,
            "/v1/schedules",
            "/v1/schedules/s",
        ] {
            shown.push(stack.get(path).await);
        }
        for reply in shown {
            let text = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(reply.status < 300 && text.contains(MASK) && !text.contains("hunter2"), "{text}");
        }
    }
}
