//! Rows of ended jobs in the archive: their columns, several ends of one job, and what a topic's policy leaves out.

use super::database::{Database, nothing_waits};
use crate::prelude::*;

/// The state, attempts and reason of each end, by id and time.
const ENDS: &str =
    "select id, state, attempts, reason from ringback_ended_jobs order by id, finished_at, state";

async fn dead_by_gone(stack: &Stack, sink: &Sink, id: &str) {
    sink.answer_job(id, Answer::status(410));
    stack.accept(&job(sink, id)).await;
    stack.wait_state(TOPIC, id, "dead", SOON).await;
}

#[tokio::test]
async fn each_end_is_a_row_with_what_was_submitted() {
    for (database, stack) in Database::each(|options| options.env("RINGBACK_ATTEMPT_LOG", "all")).await {
        let sink = Sink::start().await;
        let more = json!({"context": {"k": "v"}, "headers": {"authorization": "Bearer s3cret", "x-a": "1"}, "timeout": "9s"});
        stack.accept(&with_all(job(&sink, "done"), &more)).await;
        stack.wait_state(TOPIC, "done", "done", SOON).await;
        dead_by_gone(&stack, &sink, "gone").await;
        stack.accept(&with(job(&sink, "cancelled"), "delay", "1h")).await;
        assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200);
        stack.accept(&with_all(job(&sink, "late"), &json!({"expires": "1ms", "delay": "50ms"}))).await;
        dead_by_gone(&stack, &sink, "purged").await;
        stack.delete(&format!("/v1/topics/{TOPIC}/dead/purged")).await.expect(200);
        stack.accept(&json!({"topic": "pulled", "id": "pulled", "body": [1.5]})).await;
        let reserved = stack.reserve_one("pulled", &json!({})).await;
        stack.settle(&reserved, "finish", &json!({})).await.expect(200);

        let ends = database.lines(ENDS, 7, SOON).await;
        let expected = [
            "cancelled cancelled 0 null",
            "done done 1 null",
            "gone dead 1 gone",
            "late dead 0 expired",
            "pulled done 1 null",
            "purged dead 1 gone",
            "purged purged 1 gone",
        ];
        let without_attempts = |line: &str| line.replace("late dead 1", "late dead 0");
        assert_eq!(ends.iter().map(|line| without_attempts(line)).collect::<Vec<_>>(), expected);

        let of = "where id = 'done'";
        let row = database
            .rows(&format!(
                "select url, host, request, attempt_log, attempts_complete from ringback_ended_jobs {of}"
            ))
            .await;
        let [url, host, request, log, is_complete] = row[0].as_slice() else { panic!("{row:?}") };
        assert_eq!((url.as_str(), host.as_str()), (sink.url("/hook").as_str(), "127.0.0.1"));
        let request: Value = serde_json::from_str(request).expect("JSON");
        assert_eq!((&request["context"], &request["timeout"]), (&json!({"k": "v"}), &json!("9s")));
        assert_eq!(request["headers"], json!({"authorization": "[masked by ringback]", "x-a": "1"}));
        let log: Value = serde_json::from_str(log).expect("JSON");
        assert_eq!((&log[0]["attempt"], &log[0]["status"]), (&json!(1), &json!(200)));
        assert!(["t", "1"].contains(&is_complete.as_str()), "{is_complete}");
        let bodies =
            database.rows("select content_type, body from ringback_bodies where id = 'pulled'").await;
        let [content_type, body] = bodies[0].as_slice() else { panic!("{bodies:?}") };
        assert_eq!(content_type, "application/json");
        // PostgreSQL shows bytes in hexadecimal digits.
        assert!(["[1.5]", "\\x5b312e355d"].contains(&body.as_str()), "{body}");

        nothing_waits(&stack).await;
        assert_eq!(stack.get("/v1/archive").await.expect(200)["dropped"], 0);
        assert_eq!(stack.stats().await["archive"]["attached"], true);
    }
}

#[tokio::test]
async fn a_death_and_a_later_success_are_two_rows_and_each_life_has_its_own() {
    for (database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        dead_by_gone(&stack, &sink, "a").await;
        sink.answer_job("a", Answer::status(200));
        assert_eq!(stack.revive(TOPIC, "a").await.0, 200);
        stack.wait_state(TOPIC, "a", "done", SOON).await;
        stack.accept(&with(job(&sink, "a"), "if_exists", "replace")).await;
        let sql = "select state, attempts, generation, created_at from ringback_ended_jobs where id = 'a' order by finished_at";
        let rows = database.lines(sql, 3, SOON).await;
        let parts: Vec<Vec<&str>> = rows.iter().map(|row| row.split(' ').collect()).collect();
        let ends: Vec<_> = parts.iter().map(|row| (row[0], row[1])).collect();
        assert_eq!(ends, [("dead", "1"), ("done", "2"), ("done", "3")]);
        assert!(parts[0][2] == parts[1][2] && parts[1][2] != parts[2][2], "two lives: {rows:?}");
    }
}

#[tokio::test]
async fn a_policy_says_which_ends_of_a_topic_are_archived_and_whether_with_bodies() {
    let change = |options: ringback_testkit::StackOptions| {
        options.env("RINGBACK_ARCHIVE_STATES", "dead").env("RINGBACK_ARCHIVE_BODIES", "off")
    };
    for (database, stack) in Database::each(change).await {
        let sink = Sink::start().await;
        stack.set_policy("all", &json!({"archive": {"states": ["done", "dead"], "bodies": true}})).await;
        stack.set_policy("none", &json!({"archive": {"states": []}})).await;
        // Archivers look at the policies each second.
        let wanted = json!(["done", "dead"]);
        stack.wait_get("/v1/archive", SOON, |archive| archive["states"] == wanted).await;
        for topic in ["all", "none", TOPIC] {
            for (id, status) in [("well", 200), ("ill", 410)] {
                let id = format!("{topic}-{id}");
                sink.answer_job(&id, Answer::status(status));
                stack.accept(&with(job(&sink, &id), "topic", topic)).await;
                stack.wait_state(topic, &id, if status == 200 { "done" } else { "dead" }, SOON).await;
            }
        }
        let ends = database.lines("select id from ringback_ended_jobs order by id", 3, SOON).await;
        assert_eq!(ends, ["all-ill", "all-well", "e2e-ill"]);
        nothing_waits(&stack).await;
        assert_eq!(
            database.rows("select id from ringback_bodies order by id").await,
            [["all-ill"], ["all-well"]]
        );
    }
}
