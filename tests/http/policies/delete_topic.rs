//! Deletes of topics: refused while a topic has jobs; `force` removes its jobs first.

use super::PATH;
use crate::prelude::*;

#[tokio::test]
async fn a_topic_with_jobs_is_not_deleted_and_one_without_is() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.set_policy(TOPIC, &json!({"timeout": "5s"})).await;
        stack.accept(&with(job(&sink, "waits"), "delay", "1h")).await;
        stack.accept(&with(job(&sink, "elsewhere"), "topic", "e2e.other")).await;
        stack.delete(PATH).await.refused(409, "force");
        let shown = stack.get(PATH).await.json();
        assert_eq!(shown["policy"], json!({"timeout": "5s"}));
        stack.cancel(TOPIC, "waits").await;
        for _ in 0..2 {
            let (status, answer) = stack.delete(PATH).await.parts();
            let gone = json!({"topic": TOPIC, "deleted": true, "cancelled": 0, "purged": 0, "requested": 0, "next": null});
            assert_eq!((status, answer), (200, gone));
        }
        assert_eq!(stack.get(PATH).await.json()["policy"], Value::Null);
    }
}

#[tokio::test]
async fn a_forced_deletion_removes_jobs_in_every_state_and_leaves_other_topics() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.set_policy(TOPIC, &json!({"retry": {"preset": "none"}})).await;
        sink.answer_job("dead", Answer::status(410));
        sink.answer_job("held", Answer::status(200).held());
        stack.accept(&job(&sink, "dead")).await;
        stack.wait_state(TOPIC, "dead", "dead", SOON).await;
        stack.accept(&job(&sink, "held")).await;
        sink.wait_for_job("held", 1, SOON).await;
        stack.accept(&with(job(&sink, "delayed"), "delay", "1h")).await;
        stack.accept(&json!({"topic": TOPIC, "id": "ready"})).await;
        stack.accept(&with(with(job(&sink, "delayed"), "topic", "other"), "delay", "1h")).await;
        let (status, answer) = stack.delete(&format!("{PATH}?force=true")).await.parts();
        let expected = json!({"topic": TOPIC, "deleted": false, "cancelled": 2, "purged": 1, "requested": 1, "next": null});
        assert_eq!((status, answer), (202, expected));
        for (id, state) in [("delayed", "cancelled"), ("ready", "cancelled"), ("held", "reserved")] {
            assert_eq!(stack.job(TOPIC, id).await.1["state"], state, "{id}");
        }
        assert_eq!(stack.job(TOPIC, "dead").await.0, 404, "a purged job is gone");
        let (status, answer) = stack.delete(&format!("{PATH}?force=true")).await.parts();
        assert_eq!(
            (status, &answer["cancelled"], &answer["requested"]),
            (202, &json!(0), &json!(1)),
            "{answer}"
        );
        assert_eq!(stack.delete(PATH).await.parts().0, 409, "one is being delivered");
        sink.release();
        let answer = eventually(SOON, "the last one has ended", async || {
            let (status, answer) = stack.delete(&format!("{PATH}?force=true")).await.parts();
            if status == 200 { Ok(answer) } else { Err(answer) }
        })
        .await;
        assert_eq!(answer["deleted"], true, "{answer}");
        assert_eq!(stack.delete(&format!("{PATH}?force=true")).await.parts().0, 200, "again does no harm");
        assert_eq!(stack.job("other", "delayed").await.1["state"], "delayed");
        assert_eq!(stack.get(PATH).await.json()["policy"], Value::Null);
    }
}

#[tokio::test]
async fn a_forced_deletion_of_many_jobs_goes_on_from_where_it_stopped() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let jobs: Vec<_> = (0..5_000)
            .map(|n| json!({"topic": if n % 10 == 0 { "other" } else { TOPIC }, "id": n.to_string(), "delay": "1h"}))
            .collect();
        for some in jobs.chunks(500) {
            assert_eq!(stack.batch(some).await.1["accepted"], 500);
        }
        let (mut query, mut cancelled) = ("?force=true".to_owned(), 0);
        loop {
            let (status, answer) = stack.delete(&format!("{PATH}{query}")).await.parts();
            cancelled += answer["cancelled"].as_u64().expect("a count");
            if status == 200 {
                break;
            }
            assert_eq!(status, 202, "{answer}");
            let next = answer["next"].as_str().expect("nothing is being delivered");
            query = format!("?force=true&cursor={next}");
        }
        assert_eq!(cancelled, 4_500);
        stack.wait_count("delayed", 500, SOON).await;
        let (status, problem) = stack.delete(&format!("{PATH}?force=true&cursor=1")).await.parts();
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("cursor")));
    }
}

#[tokio::test]
async fn a_job_reserved_by_a_consumer_keeps_its_topic_until_it_ends() {
    let stack = Stack::start().await;
    stack.set_policy(TOPIC, &json!({"ttr": "60s"})).await;
    stack.accept(&json!({"topic": TOPIC, "id": "held"})).await;
    let held = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
    let (status, answer) = stack.delete(&format!("{PATH}?force=true")).await.parts();
    assert_eq!((status, &answer["requested"]), (202, &json!(1)), "{answer}");
    assert_eq!(stack.settle(&held, "finish", &json!({})).await.status, 200);
    assert_eq!(stack.delete(PATH).await.parts().0, 200);
}
