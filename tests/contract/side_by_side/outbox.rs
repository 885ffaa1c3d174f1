//! The outbox of both stores, side by side: the same entries, which are acknowledged or postponed.

use ringback_core::job::Callback;
use ringback_core::store_types::{AckResult, EndedJob, Epoch, Lease, OutboxAck, OutboxId, Shard, Success};
use ringback_store::Store;

use super::{NewJob, Pair};
use crate::contract::job_builders::{LONG, ms};
use crate::contract::workbench::{now, until};

/// The lease with the answer of a success, if the job's name asks for it.
pub(crate) fn with_success(mut lease: Lease) -> Lease {
    if lease.key.id.as_str().contains('4') {
        lease.success = Some(Box::new(Success { status: 201, answer: "thank you".into() }));
    }
    lease
}

/// The job with an `on_dead` URL, if its name asks for it.
pub(crate) fn with_on_dead(mut job: NewJob) -> NewJob {
    let has_on_dead = job.key.id.as_str().contains('3');
    let url = || Box::new(Callback::parse("http://up.example/dead").expect("a URL"));
    job.delivery.on_dead = has_on_dead.then(url);
    job
}

impl Pair {
    /// Compares the entries of both stores, acknowledges most, postpones every third briefly and every ninth for long.
    pub(crate) async fn acknowledge(&mut self) {
        // Entries that were postponed briefly are due by now.
        until(self.soon).await;
        for (shard, epochs) in &self.epochs {
            let redis = pending(&self.stores[0], *shard).await;
            let memory = pending(&self.stores[1], *shard).await;
            assert_eq!(redis.len(), memory.len(), "{}", self.at);
            for ((one, _), (other, _)) in redis.iter().zip(&memory) {
                self.same(&one.job, &other.job);
                let brief =
                    |end: &EndedJob| (end.success.clone(), end.url.clone(), end.context.clone(), end.trace);
                assert_eq!(brief(one), brief(other), "{}", self.at);
            }
            let redis = acknowledge(&self.stores[0], *shard, &epochs[0], redis).await;
            let memory = acknowledge(&self.stores[1], *shard, &epochs[1], memory).await;
            assert_eq!(redis, memory, "{}", self.at);
        }
        self.soon = self.soon.max(now().plus(ms(8)));
    }
}

/// The entries of a shard, in an order that does not depend on times.
async fn pending(store: &Store, shard: Shard) -> Vec<(EndedJob, OutboxId)> {
    let deaths = store.outbox(shard, 100).await.expect("outbox").pending.into_iter();
    let mut deaths: Vec<_> =
        deaths.map(|notice| (notice.ended.expect("it can be read"), notice.id)).collect();
    deaths.sort_by_key(|(death, _)| (death.job.key.to_string(), death.job.attempts, death.success.is_some()));
    deaths
}

/// Acknowledges entries and postpones some. Returns whether an entry is left.
async fn acknowledge(store: &Store, shard: Shard, epoch: &Epoch, deaths: Vec<(EndedJob, OutboxId)>) -> bool {
    let mut ack = OutboxAck::default();
    for (number, (_, id)) in deaths.into_iter().enumerate() {
        match number {
            n if n % 9 == 8 => ack.later.push((id, LONG)),
            n if n % 3 == 2 => ack.later.push((id, ms(3))),
            _ => ack.done.push(id),
        }
    }
    match store.acknowledge(shard, epoch, &ack).await.expect("acknowledge") {
        AckResult::Held(next) => next.is_some(),
        AckResult::Fenced => panic!("fenced"),
    }
}
