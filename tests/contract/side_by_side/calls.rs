//! Calls on jobs and topics by name, on both stores side by side: both must give the same answer.

use std::collections::BTreeSet;

use ringback_core::destination::DestinationPause;
use ringback_core::job::{Due, JobKey, TenantScope, Topic};
use ringback_core::store_types::{
    BulkStart, BulkTarget, Cancelled, DeadFilter, DestinationQuery, LaneSpan, MoveResult, PolicyPut, Token,
};

use super::super::destinations::pause_of;
use super::super::job_builders::{LONG, ms};
use super::super::policies::policy;
use super::operations::{Call, OnTopic, When};
use super::{DESTINATIONS, Pair, TIMES, counted};

fn destination_of(topic: &Topic, n: usize, is_own: bool) -> DestinationPause {
    let scope = if is_own { TenantScope::One(topic.tenant()) } else { TenantScope::All };
    pause_of(&scope, DESTINATIONS[n])
}

impl Pair {
    /// Makes a call about a topic on both stores, and compares the answers.
    pub(crate) async fn on_topic(&self, topic: &Topic, what: OnTopic) {
        let [redis, memory] = &self.stores;
        match what {
            OnTopic::Pause => {
                redis.pause(topic, None).await.expect("pause").expect("there is room");
                memory.pause(topic, None).await.expect("pause").expect("there is room");
            }
            OnTopic::Resume => {
                let known = redis.resume(topic).await.expect("resume");
                assert_eq!(known, memory.resume(topic).await.expect("resume"), "{}", self.at);
            }
            OnTopic::PauseDestination(n, is_own) => {
                let pause = destination_of(topic, n, is_own);
                for store in &self.stores {
                    store.pause_destination(&pause).await.expect("pause").expect("there is room");
                }
            }
            OnTopic::ResumeDestination(n, is_own) => {
                let pause = destination_of(topic, n, is_own);
                let was_paused = redis.resume_destination(&pause).await.expect("resume");
                let other = memory.resume_destination(&pause).await.expect("resume");
                assert_eq!(was_paused, other, "{}", self.at);
            }
            OnTopic::PutPolicy(number) => {
                let policy = policy(&format!(r#"{{"ttr":"{number}m"}}"#));
                let mut created = Vec::new();
                for store in &self.stores {
                    let put = store.put_policy(topic, &policy).await.expect("put");
                    created.push(matches!(put, PolicyPut::Created(_)));
                    assert_eq!(
                        store.policy(topic).await.expect("a policy"),
                        Some(policy.clone()),
                        "{}",
                        self.at
                    );
                }
                assert_eq!(created[0], created[1], "{}", self.at);
            }
            OnTopic::DeletePolicy => {
                let redis = redis.delete_policy(topic).await.expect("delete").is_some();
                let memory = memory.delete_policy(topic).await.expect("delete").is_some();
                assert_eq!(redis, memory, "{}", self.at);
            }
            OnTopic::Look => {
                let redis = redis.topic(topic).await.expect("topic").map(|counts| counted(&counts));
                let memory = memory.topic(topic).await.expect("topic").map(|counts| counted(&counts));
                assert_eq!(redis, memory, "{}", self.at);
                for scope in [TenantScope::All, TenantScope::One(topic.tenant())] {
                    let spans = [LaneSpan::Of(scope.clone())];
                    let query = DestinationQuery { after: None, limit: 10, failing: false };
                    let [redis, memory] =
                        self.stores.each_ref().map(|store| store.destinations(&spans, &scope, &query));
                    let page = redis.await.expect("a page");
                    assert_eq!(page, memory.await.expect("a page"), "{}", self.at);
                }
            }
        }
    }

    pub(crate) async fn call(&mut self, key: &JobKey, call: Call) {
        let token = Token(self.sequence.to_le_bytes());
        let due = match call {
            Call::Reschedule(When::At(n)) => Due::At(self.began.plus(LONG / 2 + LONG * TIMES[n])),
            Call::Reschedule(When::In(wait)) => Due::In(self.delay(wait)),
            Call::Cancel => return self.cancel(key).await,
            Call::Run | Call::Revive | Call::Purge => Due::In(ms(0)),
        };
        let mut answers = Vec::new();
        for store in &self.stores {
            let moved = match call {
                Call::Reschedule(_) => store.reschedule(key, due, token).await,
                Call::Run => store.run(key, token).await,
                Call::Revive => store.revive(key, token).await,
                Call::Cancel | Call::Purge => store.purge(key).await,
            };
            answers.push(moved.expect("an answer"));
        }
        self.moment();
        match <[MoveResult; 2]>::try_from(answers).expect("of two stores") {
            [MoveResult::Applied(redis), MoveResult::Applied(memory)]
            | [MoveResult::Refused(redis), MoveResult::Refused(memory)] => self.same(&redis, &memory),
            [redis, memory] => assert_eq!(redis, memory, "{}: {key}", self.at),
        }
    }

    /// Lists all dead jobs of a filter on both stores, then purges or revives them, and compares the results.
    pub(crate) async fn dead(&mut self, filter: &DeadFilter, purge: bool) {
        self.sequence += 1;
        let (token, mut reported) = (Token(self.sequence.to_le_bytes()), Vec::new());
        for store in &self.stores {
            let mut listed = BTreeSet::new();
            let mut from = None;
            loop {
                let page = store.dead(filter, from, 3).await.expect("a page");
                assert!(page.items.is_sorted_by_key(|dead| dead.died), "{}", self.at);
                listed
                    .extend(page.items.into_iter().map(|dead| (dead.job.key.to_string(), dead.job.failures)));
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            let begun = store.start_bulk(token, &BulkTarget::Dead(filter.clone()), 1).await.expect("begin");
            let BulkStart::Bulk(bulk) = begun else { panic!("{}: too many", self.at) };
            let mut count = 0;
            for shard in store.shards() {
                let cursors = store.dead_cursors(shard, filter, None, 500).await.expect("cursors").items;
                // The call is repeated, as after a lost answer.
                for _ in 0..2 {
                    if purge {
                        count += store.purge_many(shard, &cursors).await.expect("purge");
                    } else {
                        store.revive_many(shard, bulk.id, &cursors).await.expect("revive");
                    }
                }
            }
            let ended = store.stop_bulk(bulk.id).await.expect("stop").expect("it is known");
            reported.push((listed, count + ended.changed));
        }
        self.moment();
        assert_eq!(reported[0], reported[1], "{}", self.at);
        assert_eq!(reported[0].0.len() as u64, reported[0].1, "{}", self.at);
    }

    pub(crate) async fn cancel(&mut self, key: &JobKey) {
        let mut answers = Vec::new();
        for store in &self.stores {
            answers.push(match store.cancel(key).await.expect("cancel") {
                // Whether a brief lease has expired depends on the moment.
                Cancelled::Requested { .. } => Cancelled::Requested { in_flight_unknown: false },
                other => other,
            });
        }
        assert_eq!(answers[0], answers[1], "{}: {key}", self.at);
    }

    pub(crate) async fn get(&mut self, key: &JobKey) {
        let redis = self.stores[0].get(key).await.expect("get");
        let memory = self.stores[1].get(key).await.expect("get");
        match (redis, memory) {
            (Some(redis), Some(memory)) => self.same(&redis, &memory),
            (redis, memory) => assert_eq!(redis, memory, "{}: {key}", self.at),
        }
        self.same_attempts(key).await;
    }
}
