//! Telling among the random operations: both stores have the same deaths to tell, and keep those that were put
//! off.

use ringback_core::contract::{AckResult, DeadLetter, Epoch, OutboxAck, OutboxId, Shard};
use ringback_core::job::Callback;
use ringback_store::Store;

use super::super::bench::{now, until};
use super::super::jobs::{LONG, ms};
use super::{NewJob, Pair};

/// A job that says where its death is told, as some do by their names.
pub(super) fn telling(mut job: NewJob) -> NewJob {
    let is_telling = job.key.id.as_str().contains('3');
    let url = || Box::new(Callback::parse("http://up.example/dead").expect("a URL"));
    job.delivery.on_dead = is_telling.then(url);
    job
}

impl Pair {
    /// Every third death is put off for a moment, and every ninth for long.
    pub(super) async fn tell(&mut self) {
        // What was put off for a moment before is to be told by now.
        until(self.soon).await;
        for (shard, epochs) in &self.epochs {
            let redis = untold(&self.stores[0], *shard).await;
            let memory = untold(&self.stores[1], *shard).await;
            assert_eq!(redis.len(), memory.len(), "{}", self.at);
            for ((one, _), (other, _)) in redis.iter().zip(&memory) {
                self.same(&one.job, &other.job);
                let told = |death: &DeadLetter| (death.on_dead.clone(), death.context.clone(), death.trace);
                assert_eq!(told(one), told(other), "{}", self.at);
            }
            let redis = tell(&self.stores[0], *shard, &epochs[0], redis).await;
            let memory = tell(&self.stores[1], *shard, &epochs[1], memory).await;
            assert_eq!(redis, memory, "{}", self.at);
        }
        self.soon = self.soon.max(now().plus(ms(8)));
    }
}

/// In an order that does not hang on times.
async fn untold(store: &Store, shard: Shard) -> Vec<(DeadLetter, OutboxId)> {
    let deaths = store.outbox(shard, 100).await.expect("outbox").pending.into_iter();
    let mut deaths: Vec<_> =
        deaths.map(|untold| (untold.letter.expect("it can be read"), untold.id)).collect();
    deaths.sort_by_key(|(death, _)| (death.job.key.to_string(), death.job.attempts));
    deaths
}

/// Whether something is left to be told.
async fn tell(store: &Store, shard: Shard, epoch: &Epoch, deaths: Vec<(DeadLetter, OutboxId)>) -> bool {
    let mut telling = OutboxAck::default();
    for (number, (_, place)) in deaths.into_iter().enumerate() {
        match number {
            n if n % 9 == 8 => telling.later.push((place, LONG)),
            n if n % 3 == 2 => telling.later.push((place, ms(3))),
            _ => telling.done.push(place),
        }
    }
    match store.acknowledge(shard, epoch, &telling).await.expect("tell") {
        AckResult::Held(next) => next.is_some(),
        AckResult::Fenced => panic!("fenced"),
    }
}
