//! The store is replaced by an older copy and has lost jobs of a feed: the feed submits them again.

use ringback_testkit::{Persistence, RedisServer};

use super::business::{Business, TOPIC, feeding, wait_rows, within};
use crate::prelude::*;

const LONG: Duration = Duration::from_secs(600);
/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);

#[tokio::test]
async fn rows_whose_jobs_an_older_copy_of_the_store_does_not_have_are_submitted_again() {
    for persistence in [Persistence::Always, Persistence::EverySec] {
        let business = Business::in_postgres().await;
        let sink = Sink::start().await;
        let redis = RedisServer::options().persistence(persistence);
        let mut stack = feeding(&business.orders(), 1).redis(redis).start().await;
        business.insert(&sink, &[("kept", within(LONG))]).await;
        wait_rows(&stack, "submitted", 1).await;
        let copy = stack.redis().copy_data();
        business.insert(&sink, &[("lost-1", within(LONG)), ("lost-2", within(LONG))]).await;
        wait_rows(&stack, "submitted", 3).await;
        wait_rows(&stack, "unchanged", 3).await;

        stack.redis_mut().restart_with(&copy).await;
        if persistence == Persistence::Always {
            let loss = eventually(RECOVERY, "the loss is noticed", async || {
                // The API answers 503 until it has connected again.
                let reply = stack.get("/v1/check").await;
                match (reply.status, reply.json()["loss"]["run_id"].as_str()) {
                    (200, Some(run_id)) => Ok(run_id.to_owned()),
                    _ => Err(format!("{} {:?}", reply.status, reply.body)),
                }
            })
            .await;
            stack.post("/v1/check/accept-loss", &json!({"run_id": loss})).await.expect(200);
        }
        for id in ["kept", "lost-1", "lost-2"] {
            eventually(RECOVERY, &format!("{id} is there again"), async || {
                match stack.job(TOPIC, id).await {
                    (200, _) => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        }
        stack.ready(SOON).await;
    }
}
