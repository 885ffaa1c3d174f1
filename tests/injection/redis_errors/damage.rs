//! Damages data on the server itself, so that roles and repairs make the calls that mend it.

use std::collections::BTreeSet;

use http::Method;
use redis::{FromRedisValue, ToRedisArgs};
use ringback_testkit::{add_to_shard_field, eventually, set_shard_field, shard_field};
use serde_json::{Value, json};

use super::calls::{Client, SOON};

impl Client<'_> {
    /// Leaves jobs without index entries, entries without jobs, a time without a schedule, and so wrong counts.
    pub(crate) async fn damage(&self, id: &str) {
        self.far_job(&format!("{id}-kept"), "3h").await;
        let base = self.base().await;
        self.ask::<(), _>("ZADD", (format!("{base}:schedule-times"), 1, "gone")).await;
        let (pool, dues) = (format!("{base}:pool"), format!("{base}:due:*"));
        let known: BTreeSet<Vec<u8>> = self.ask("KEYS", &dues).await;
        self.far_job(&format!("{id}-lost"), "40s").await;
        let now: BTreeSet<Vec<u8>> = self.ask("KEYS", &dues).await;
        for due in now.difference(&known) {
            self.ask::<(), _>("DEL", due).await;
        }
        let known: BTreeSet<Vec<u8>> = self.ask("HKEYS", &pool).await;
        self.far_job(&format!("{id}-gone"), "2h").await;
        self.far_job(&format!("{id}-near"), "50s").await;
        let now: BTreeSet<Vec<u8>> = self.ask("HKEYS", &pool).await;
        for locator in now.difference(&known) {
            self.ask::<(), _>("HDEL", (&pool, locator)).await;
        }
    }

    async fn far_job(&self, topic: &str, delay: &str) {
        let job = json!({"topic": topic, "id": "one", "url": format!("{}/hook", self.aside), "delay": delay});
        self.ok("POST", "jobs", job).await;
    }

    /// Makes the carrier look for dead jobs to evict, if there are dead jobs.
    pub(crate) async fn make_old(&self) {
        let shard = format!("{}:shard", self.base().await);
        let mut redis = self.redis.clone();
        if shard_field(&mut redis, &shard, "dead_at").await > 0 {
            set_shard_field(&mut redis, &shard, "dead_at", 1).await;
        }
    }

    /// Lowers the count of accepted jobs until the API notices a loss. Then accepts the loss, restores the count and
    /// deletes the record of the accepted loss.
    pub(crate) async fn lose_accepted(&self) {
        let shard = format!("{}:shard", self.base().await);
        let count = async |n: i64| add_to_shard_field(&mut self.redis.clone(), &shard, "accepted", n).await;
        let check = (Method::GET, format!("{}/v1/check", self.api), None);
        let far = json!({"topic": "far", "id": "known", "url": "http://127.0.0.1:9/", "delay": "1h"});
        let submit = (Method::POST, format!("{}/v1/jobs", self.api), Some(far));
        let run_id = eventually(SOON, "the loss is noticed", async || {
            // A process that has just been started knows of no jobs before its first submit.
            self.send(&submit).await;
            count(-1).await;
            self.send(&submit).await;
            let (_, check) = self.send(&check).await;
            let check: Value = serde_json::from_str(&check).unwrap_or_default();
            let Some(run_id) = check["loss"]["run_id"].as_str() else {
                count(1).await;
                return Err(check.to_string());
            };
            Ok(run_id.to_owned())
        })
        .await;
        let accepted = json!({"run_id": run_id});
        self.ok("POST", "check/accept-loss", accepted).await;
        count(1).await;
        // Without the record, a second loss in the same run of the server is noticed too.
        let installation: Vec<String> = self.ask("KEYS", "*:install").await;
        self.ask::<(), _>("HDEL", (&installation[0], "accepted_losses")).await;
    }

    /// Repairs until a repair finds nothing more. Panics after [`SOON`].
    pub(crate) async fn repaired(&self) {
        let repair = (Method::POST, format!("{}/v1/check/repair", self.api), None);
        eventually(SOON, "a repair finds nothing more", async || match self.send(&repair).await {
            (200, answer) if answer.contains("\"clean\":true") => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    /// Ends all subscriptions at the server, so that the processes look for what they may have missed.
    pub(crate) async fn end_subscriptions(&self) {
        self.ask::<(), _>("CLIENT", ("KILL", "TYPE", "pubsub")).await;
    }

    /// Makes the server forget the function library.
    pub(crate) async fn flush_functions(&self) {
        self.ask::<(), _>("FUNCTION", "FLUSH").await;
    }

    /// The prefix of the keys of the only shard.
    async fn base(&self) -> String {
        let shards: Vec<String> = self.ask("KEYS", "*:shard").await;
        shards[0].trim_end_matches(":shard").to_owned()
    }

    pub(crate) async fn ask<T: FromRedisValue, A: ToRedisArgs>(&self, command: &str, args: A) -> T {
        let mut redis = self.redis.clone();
        let answer = redis::cmd(command).arg(args).query_async(&mut redis).await;
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }
}
