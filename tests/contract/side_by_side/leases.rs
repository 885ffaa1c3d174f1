//! Deliveries on both stores, side by side: reserves, exchanges, settles and renewals.

use std::collections::{BTreeMap, BTreeSet};

use ringback_core::lane::Lane;
use ringback_core::store_types::{Lateness, Lease, Reserve, Reserved, SettleResult, Shard, Waiting};

use super::operations::Open;
use super::outbox::with_success;
use super::{ORIGINS, Pair, RandomOutcome, TENANTS, TOPICS, Times};
use crate::contract::job_builders::{BRIEFEST, LONG, bury, ms, release, retry};
use crate::contract::workbench::now;
use crate::prelude::*;

/// The most reserves that take all jobs that are ready.
const PARTS: usize = 1000;

/// The same outcomes for each store.
type Items = BTreeMap<Shard, [Vec<(Lease, Outcome)>; 2]>;

impl Pair {
    /// The next reserve, with closed lanes, origins and tenants. Unless its leases are brief, they outlast the run.
    fn ask(&mut self, lanes: Open, brief: bool) -> Reserve<'static> {
        self.sequence += 1;
        let names = TOPICS.iter().flat_map(|topic| ORIGINS.map(|origin| format!("{topic} {origin}")));
        let lane_limits: Vec<_> =
            names.zip(lanes.lanes).filter(|(_, open)| !open).map(|(lane, _)| (lane, 0)).collect();
        let groups = ORIGINS.into_iter().zip(lanes.origins);
        let groups = groups.chain(TENANTS.into_iter().zip(lanes.tenants)).filter(|(_, open)| !open);
        Reserve {
            caller: "notifier",
            sequence: self.sequence,
            // More jobs than there can be, so that both stores reserve the same, whatever their order.
            limit: 500,
            lane_limit: 500,
            lane_limits,
            admitted: Vec::new(),
            origin_limit: 500,
            tenant_limit: 500,
            group_limits: groups.map(|(group, _)| (group.to_owned(), 0)).collect(),
            bits: self.sequence.to_be_bytes(),
            waiting: Waiting::No,
            margin: if brief { Duration::ZERO } else { LONG },
        }
    }

    pub(crate) async fn reserve(&mut self, shard: usize, lanes: Open, brief: bool, times: Times) {
        let ask = self.ask(lanes, brief);
        let shard = self.stores[0].shards().nth(shard).expect("one of the shards");
        for _ in 0..if matches!(times, Times::Twice) { 2 } else { 1 } {
            let redis = self.stores[0].reserve(shard, &ask).await.expect("reserve");
            let memory = self.stores[1].reserve(shard, &ask).await.expect("reserve");
            self.reserved(redis, memory);
        }
    }

    /// Reserves a few jobs at a time until all are reserved, and compares them. Their order depends on the store.
    pub(crate) async fn reserve_in_parts(
        &mut self,
        shard: usize,
        lanes: Open,
        brief: bool,
        limit: usize,
        lane_limit: usize,
    ) {
        let shard = self.stores[0].shards().nth(shard).expect("one of the shards");
        let mut taken = [Vec::new(), Vec::new()];
        for (index, taken) in taken.iter_mut().enumerate() {
            for part in 0.. {
                assert!(part < PARTS, "{}: it does not end", self.at);
                let ask = Reserve { limit, lane_limit, ..self.ask(lanes, brief) };
                let reserved = self.stores[index].reserve(shard, &ask).await.expect("reserve");
                let lanes: Vec<_> = reserved.leases.iter().map(lane_of).collect();
                let most = lanes.iter().map(|lane| lanes.iter().filter(|other| *other == lane).count()).max();
                assert!(lanes.len() <= limit && most.unwrap_or(0) <= lane_limit, "{}: {lanes:?}", self.at);
                // On Redis, an entry of a job that has moved on uses up the limit of its lane, which then counts as
                // full.
                let is_closed = |lane: &String| ask.lane_limits.iter().any(|(name, _)| name == lane);
                let is_more = reserved.more || !reserved.full.iter().all(is_closed);
                if reserved.leases.is_empty() && !is_more {
                    break;
                }
                taken.extend(reserved.leases);
            }
        }
        self.expired_by = now().plus(BRIEFEST[1] + ms(4));
        let [redis, memory] = taken;
        self.pair_up(redis, memory);
    }

    fn reserved(&mut self, redis: Reserved, memory: Reserved) {
        self.expired_by = now().plus(BRIEFEST[1] + ms(4));
        assert_eq!(redis.more, memory.more, "{}", self.at);
        let full: BTreeSet<_> = redis.full.iter().collect();
        // A lane of which only stale entries are left shows on Redis until it is asked.
        assert!(memory.full.iter().all(|lane| full.contains(lane)), "{}: {memory:?}", self.at);
        let of_redis = &redis.throttled;
        let is_throttled = |group| of_redis.contains(group);
        assert!(memory.throttled.iter().all(is_throttled), "{}: {memory:?}, {of_redis:?}", self.at);
        self.pair_up(redis.leases, memory.leases);
    }

    /// Settles outcomes on both stores and compares the answers: those of one shard together with a reserve of it,
    /// others alone. A repetition has only the reserve.
    pub(crate) async fn exchange(
        &mut self,
        outcomes: &[(usize, RandomOutcome)],
        shard: usize,
        lanes: Open,
        brief: bool,
        times: Times,
    ) {
        let ask = self.ask(lanes, brief);
        let shard = self.stores[0].shards().nth(shard).expect("one of the shards");
        let mut items = self.items(outcomes);
        let [redis, memory] = items.remove(&shard).unwrap_or_default();
        let redis = self.stores[0].exchange(shard, redis, &ask).await.expect("exchange");
        let memory = self.stores[1].exchange(shard, memory, &ask).await.expect("exchange");
        self.moment();
        assert_eq!(redis.0, memory.0, "{}", self.at);
        self.reserved(redis.1, memory.1);
        if matches!(times, Times::Twice) {
            let [redis, memory] = [Vec::new(), Vec::new()];
            let redis = self.stores[0].exchange(shard, redis, &ask).await.expect("exchange");
            let memory = self.stores[1].exchange(shard, memory, &ask).await.expect("exchange");
            self.reserved(redis.1, memory.1);
        }
        self.settle_items(items).await;
    }

    fn pair_up(&mut self, redis: Vec<Lease>, memory: Vec<Lease>) {
        let names = |leases: &[Lease]| leases.iter().map(|l| l.key.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(names(&redis), names(&memory), "{}", self.at);
        let mut others: BTreeMap<_, _> =
            memory.into_iter().map(|lease| (lease.key.to_string(), lease)).collect();
        for one in redis {
            let other = others.remove(&one.key.to_string()).expect("the names are the same");
            assert_eq!(
                (one.attempt, one.failures, &one.delivery, one.locator()),
                (other.attempt, other.failures, &other.delivery, other.locator()),
                "{}: {}",
                self.at,
                one.key
            );
            self.hands.push([one, other]);
        }
    }

    /// Settles some of the leases so far, also stale ones and second copies.
    pub(crate) async fn settle(&mut self, outcomes: &[(usize, RandomOutcome)]) {
        let items = self.items(outcomes);
        self.settle_items(items).await;
    }

    /// Removes some of the leases so far and pairs them with outcomes, by shard.
    fn items(&mut self, outcomes: &[(usize, RandomOutcome)]) -> Items {
        let mut items = Items::new();
        for (hand, random) in outcomes {
            if self.hands.is_empty() {
                break;
            }
            let [redis, memory] = self.hands.swap_remove(hand % self.hands.len()).map(with_success);
            let outcome = match random {
                RandomOutcome::Complete => Outcome::Complete,
                RandomOutcome::Retry(wait) => retry(self.delay(*wait)),
                RandomOutcome::Bury => bury(),
                RandomOutcome::Release(wait) => release(self.delay(*wait)),
                RandomOutcome::Return => Outcome::Return,
            };
            let of_shard = items.entry(redis.shard()).or_default();
            of_shard[0].push((redis, outcome.clone()));
            of_shard[1].push((memory, outcome));
        }
        items
    }

    async fn settle_items(&mut self, items: Items) {
        for (shard, [redis, memory]) in items {
            let names: Vec<_> = redis.iter().map(|(l, o)| format!("{}: {o:?}", l.key)).collect();
            let redis: Vec<SettleResult> = self.stores[0].settle(shard, redis).await.expect("settle");
            let memory = self.stores[1].settle(shard, memory).await.expect("settle");
            self.moment();
            assert_eq!(redis, memory, "{}: {names:?}", self.at);
        }
    }

    pub(crate) async fn add_lateness(&mut self, shard: usize, late: u8) {
        let mut lateness = Lateness::default();
        lateness.record(ms(u64::from(late)));
        for store in &self.stores {
            let shard = store.shards().nth(shard).expect("one of the shards");
            store.add_lateness(shard, &lateness).await.expect("add_lateness");
        }
    }

    pub(crate) async fn renew(&mut self, hand: usize) {
        let hands = self.hands.len();
        if let Some([redis, memory]) = self.hands.get_mut(hand.checked_rem(hands).unwrap_or(0)) {
            let one = self.stores[0].renew(redis, LONG).await.expect("renew");
            let other = self.stores[1].renew(memory, LONG).await.expect("renew");
            assert_eq!(one, other, "{}: {}", self.at, redis.key);
        }
    }
}

fn lane_of(lease: &Lease) -> String {
    Lane::new(&lease.key.topic, lease.delivery.callback.origin()).name()
}
