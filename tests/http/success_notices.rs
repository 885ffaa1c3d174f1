//! Success notices (`on_done`): each success has one notice, with the receiver's answer.

use ringback_testkit::{Arrival, Script};

use super::dead_letter_notices::{body, outbox_is_empty};
use crate::prelude::*;

const NOTICES: &str = "ringback.on-done";

/// A job whose success notice goes to `/done`.
fn noted(sink: &Sink, id: &str) -> Value {
    let job = with(job(sink, id), "retry", json!({"delays": ["10ms"]}));
    with(with(job, "on_done", sink.url("/done")), "context", json!({"tenant": "a7"}))
}

/// The notice of a job's success that arrived at a path, once it has.
async fn notice(sink: &Sink, path: &str, id: &str) -> Arrival {
    eventually(SOON, &format!("the notice of {id} at {path}"), async || {
        let mut came = sink.arrivals().into_iter().filter(|arrival| arrival.path == path);
        came.find(|arrival| body(arrival)["data"]["id"] == id).ok_or("none")
    })
    .await
}

#[tokio::test]
async fn the_notice_of_a_success_has_the_answer_of_the_receiver() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let long = "ü".repeat(2_000);
        sink.answer_job(
            "text",
            Script::first(1, Answer::status(500)).finally(Answer::status(201).body("{\"paid\":true}")),
        );
        sink.answer_job("empty", Answer::status(204));
        sink.answer_job("bytes", Answer::status(200).body(vec![0xff, 0xfe]));
        sink.answer_job("long", Answer::status(200).body(long.clone()));
        for id in ["text", "empty", "bytes", "long"] {
            stack.accept(&noted(&sink, id)).await;
        }
        let came = notice(&sink, "/done", "text").await;
        assert_eq!(came.header("ringback-topic"), Some(NOTICES));
        assert_eq!(came.header("ringback-context-tenant"), Some("a7"));
        let text = body(&came);
        assert_eq!(text["type"], "job.done", "{text}");
        let mut data = text["data"].clone();
        let fields = data.as_object_mut().expect("an object");
        assert_eq!(fields.remove("context"), Some(json!({"tenant": "a7"})));
        let response = json!({"status": 201, "answer": "{\"paid\":true}"});
        assert_eq!(fields.remove("response"), Some(response));
        // After a success, only the tombstone and the last failed attempt are left of a job.
        assert_eq!(fields.remove("last").expect("one attempt failed")["status"], 500);
        let (_, known) = stack.job(TOPIC, "text").await;
        assert_eq!((data["state"].as_str(), data["attempts"].as_u64()), (Some("done"), Some(2)), "{data}");
        for field in ["topic", "id", "due_at", "created_at", "attempts"] {
            assert_eq!(data[field], known[field], "{field}");
        }

        let response = async |id| body(&notice(&sink, "/done", id).await)["data"]["response"].clone();
        assert_eq!(response("empty").await, json!({"status": 204}));
        assert_eq!(response("bytes").await, json!({"status": 200, "answer_base64": "//4="}));
        assert_eq!(response("long").await["answer"], long[..1_024]);
        outbox_is_empty(&stack).await;
        let notices = sink.arrivals().iter().filter(|arrival| arrival.path == "/done").count();
        assert_eq!(notices, 4, "one notice each");
    }
}

#[tokio::test]
async fn jobs_that_are_not_done_and_those_of_nobody_who_asks_have_no_notice() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_job("dead", Answer::status(410));
        stack.accept(&noted(&sink, "dead")).await;
        stack.accept(&job(&sink, "plain")).await;
        stack.accept(&with(noted(&sink, "cancelled"), "delay", "1h")).await;
        assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200);
        stack.wait_state(TOPIC, "dead", "dead", SOON).await;
        stack.wait_state(TOPIC, "plain", "done", SOON).await;
        stack.accept(&noted(&sink, "last")).await;
        notice(&sink, "/done", "last").await;
        outbox_is_empty(&stack).await;
        let notices = sink.arrivals().iter().filter(|arrival| arrival.path == "/done").count();
        assert_eq!(notices, 1);
    }
}

#[tokio::test]
async fn the_job_s_on_done_overrides_that_of_its_topic_and_counts_as_content() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.set_policy(TOPIC, &json!({"on_done": sink.url("/topic"), "expect_body": "ok"})).await;
        sink.answer(Answer::status(200).body(" ok\n"));
        stack.accept(&noted(&sink, "own")).await;
        let bare = with(job(&sink, "bare"), "delay", "1s");
        stack.accept(&bare).await;
        assert_eq!(body(&notice(&sink, "/done", "own").await)["data"]["response"]["answer"], " ok\n");
        notice(&sink, "/topic", "bare").await;
        let again = with(bare, "on_done", sink.url("/other"));
        assert_eq!(stack.submit(&again).await.0, 409);
        let shown = stack.get(&format!("/v1/jobs/{TOPIC}/own?include=request")).await;
        assert_eq!(shown.status, 200);
    }
}

#[tokio::test]
async fn a_store_that_is_nearly_full_keeps_the_status_of_a_success_alone() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(201).body("a receipt"));
    stack.accept(&with(noted(&sink, "a"), "delay", "1s")).await;
    stack.redis().limit_memory(1_000_000).await;
    stack.wait_state(TOPIC, "a", "done", SOON).await;
    stack.redis().limit_memory(0).await;
    let came = notice(&sink, "/done", "a").await;
    assert_eq!(body(&came)["data"]["response"], json!({"status": 201}));
    outbox_is_empty(&stack).await;
}

#[tokio::test]
async fn on_done_is_shown_and_refused_where_it_means_nothing() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.accept(&with(noted(&sink, "later"), "delay", "1h")).await;
        let shown = stack.get(&format!("/v1/jobs/{TOPIC}/later?include=request")).await.json();
        assert_eq!(shown["request"]["on_done"], sink.url("/done"), "{shown}");
        assert_eq!(shown["effective"]["on_done"], json!({"from": "job", "value": sink.url("/done")}));

        let pull = json!({"topic": "pull", "id": "a", "on_done": sink.url("/done")});
        let (status, problem) = stack.submit(&pull).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("on_done")), "{problem}");
        for topic in ["ringback.on-dead", NOTICES] {
            for field in ["on_dead", "on_done"] {
                let reply = stack.put(&format!("/v1/topics/{topic}"), &json!({field: "http://h/"})).await;
                assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!(field)));
            }
        }
        for url in ["nowhere", "ftp://host/", "http://user:word@host/"] {
            let (status, problem) = stack.submit(&with(job(&sink, "b"), "on_done", url)).await;
            assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("on_done")), "{problem}");
        }
    }
}
