//! Large answers that a client requests and does not read: they take bounded memory, and others are answered meanwhile.

use reqwest::Client;
use tokio::sync::Mutex;

use super::limits_per_address::{ask_and_read_nothing, client, served};
use crate::prelude::*;

/// So many dead jobs with a body of 200,000 bytes fill a page, which has about a megabyte.
const JOBS: usize = 10;
const PAGE: &str = "/v1/topics/t/dead?limit=1000&include=request";
/// How long the address takes to have its share while other tests use the machine.
const FULL: Duration = Duration::from_secs(90);

#[tokio::test]
async fn answers_that_nobody_takes_are_bounded_and_leave_room_for_others() {
    let (address, _serving) = served(Duration::from_secs(300)).await;
    let url = |path: &str| format!("http://{address}{path}");
    let body = "x".repeat(200_000);
    let dead = |n| {
        json!({"topic": "t", "id": format!("job-{n}"), "state": "dead", "reason": "gone", "url": "https://a.example/", "body": body}).to_string()
    };
    let lines = (0..JOBS).map(dead).collect::<Vec<_>>().join("\n");
    let (own, other) = (client(1), client(2));
    eventually(SOON, "jobs are imported", async || {
        let import = own.post(url("/v1/import")).header("content-type", "application/x-ndjson");
        let answer =
            import.body(lines.clone()).send().await.expect("an answer").text().await.expect("a text");
        let is_done = answer.contains("\"created\":10") || answer.contains("\"existing\":10");
        if is_done { Ok(()) } else { Err(answer) }
    })
    .await;
    let list = async |client: &Client| {
        let answer = client.get(url(PAGE)).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a whole answer"))
    };

    let unread = Mutex::new(Vec::new());
    eventually(FULL, "the address has its share", async || {
        for _ in 0..10 {
            unread.lock().await.push(ask_and_read_nothing(address, 1, PAGE).await);
        }
        // Lists that wait for a turn for too long are answered 503 too.
        match list(&own).await {
            (503, text) if text.contains("are not read yet") => Ok(()),
            (status, text) => Err(format!("{status}: {} bytes", text.len())),
        }
    })
    .await;
    // Small answers are still given.
    let topic = own.get(url("/v1/topics/t")).send().await.expect("an answer");
    assert_eq!(topic.status(), 200);
    assert_eq!(list(&other).await.0, 200, "another address is answered");

    drop(unread);
    eventually(SOON, "what was held is free", async || match list(&own).await {
        (200, _) => Ok(()),
        (status, _) => Err(status),
    })
    .await;
}
