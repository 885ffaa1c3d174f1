//! Settling a notifier's leases, alone or together with a reserve in one call (an exchange). Outcomes are sent in groups
//! of one receipt, so that jobs that were reserved together share arguments, and with each job's tombstone, so that the
//! script does not read the record again.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, Value};
use ringback_core::clock::millis_up;
use ringback_core::lane::{GrantedBatch, LaneId, SettleHint};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::store_types::{Lease, Reserve, Reserved, SettleResult, Shard, StoreError, Success};
use tokio::time::Instant;

use super::reserve::push_reserve;
use crate::record::{self, doubles, head, six};
use crate::redis_store::RedisStore;
use crate::reply::{self, take};
use crate::script;

/// What the jobs of a group share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    /// Whether they are complete, with the payload in the record, no tags, no answer to publish and no notice.
    is_plain: bool,
    receipt: [u8; 16],
    lane: LaneId,
}

/// What one call settles: jobs by their numbers. No job comes twice.
type Groups = BTreeMap<Group, Vec<usize>>;

impl RedisStore {
    pub async fn settle(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
    ) -> Result<Vec<SettleResult>, StoreError> {
        let mut rounds = Rounds::new(items);
        while !rounds.left.is_empty() {
            let mut groups = Groups::new();
            let call =
                self.call(&script::SETTLE, shard).with(|cmd| groups = rounds.push_next(cmd, self.keep()));
            rounds.answered(groups, call.run().await?)?;
        }
        Ok(rounds.answers)
    }

    /// Settles leases, then reserves jobs, in one call; in several if `items` has two leases of one job.
    pub async fn exchange(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        ask: &Reserve<'_>,
    ) -> Result<(Vec<SettleResult>, Reserved), StoreError> {
        let (asked, key) = (Instant::now(), self.lane_key()?);
        let (mut rounds, mut groups) = (Rounds::new(items), Groups::new());
        let call = self.call(&script::EXCHANGE, shard).with(|cmd| {
            let count = push_reserve(cmd, ask, key);
            groups = rounds.push_next(cmd, self.keep());
            cmd.arg(count);
        });
        if !rounds.left.is_empty() {
            return Ok((self.settle(shard, items).await?, self.reserve(shard, ask).await?));
        }
        let (settled, reserved): (Value, Value) = call.run().await?;
        rounds.answered(groups, settled)?;
        Ok((rounds.answers, self.reserved(shard, reserved, asked).await?))
    }
}

/// The calls that a settle needs. One call settles a job only once, so two leases of one job need two calls.
struct Rounds<'a> {
    items: &'a [(Lease, Outcome)],
    /// The jobs still to be settled, by their numbers.
    left: Vec<usize>,
    answers: Vec<SettleResult>,
}

impl<'a> Rounds<'a> {
    fn new(items: &'a [(Lease, Outcome)]) -> Self {
        let answers = vec![SettleResult::Stale; items.len()];
        Self { items, left: (0..items.len()).collect(), answers }
    }

    /// Adds the arguments of settle.lua for the next call, takes its jobs off those that are left, and returns them.
    fn push_next(&mut self, cmd: &mut Cmd, keep: (u64, u64)) -> Groups {
        let (mut met, items) = (HashSet::new(), self.items);
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.left).into_iter().partition(|n| met.insert(items[*n].0.locator()));
        self.left = later;
        let lanes: HashSet<_> = now.iter().map(|n| items[*n].0.grant.hint.lane).collect();
        let (whole, over) = batches_over(items, &now);
        let (keep, cap) = (keep.0 as f64, keep.1 as f64);
        cmd.arg(doubles([keep, cap, lanes.len() as f64, whole.len() as f64, over.len() as f64]));
        for lane in &lanes {
            cmd.arg(&lane.0);
        }
        cmd.arg(whole).arg(over);
        let mut groups = Groups::new();
        for n in now {
            let (lease, outcome) = &items[n];
            let is_plain = matches!(outcome, Outcome::Complete)
                && !lease.grant.hint.is_external
                && !lease.grant.hint.has_tags
                && lease.response.is_none()
                && lease.success.is_none();
            let (receipt, lane) = (record::pack_lease(lease.grant.receipt.lease), lease.grant.hint.lane);
            groups.entry(Group { is_plain, receipt, lane }).or_default().push(n);
        }
        for (group, numbers) in &groups {
            let args = if group.is_plain { 2 } else { 3 };
            let mut head = head(group.lane, args, numbers.len());
            head.extend(group.receipt);
            cmd.arg(head);
            for n in numbers {
                let (lease, outcome) = &items[*n];
                cmd.arg(&lease.locator().0).arg(record::tombstone(lease).bytes());
                if !group.is_plain {
                    let mut packed = pack_outcome(outcome, &lease.grant.hint, lease.response);
                    if let (Outcome::Complete, Some(success)) = (outcome, &lease.success) {
                        packed.extend(Success::pack(Some(success)));
                    }
                    cmd.arg(packed);
                }
            }
        }
        groups
    }

    fn answered(&mut self, groups: Groups, answer: Value) -> Result<(), StoreError> {
        let answers = take::list(answer)?;
        let count: usize = groups.values().map(Vec::len).sum();
        if !answers.is_empty() && answers.len() != count {
            return Err(StoreError::Unreadable("the answers of a settle"));
        }
        for (index, n) in groups.into_values().flatten().enumerate() {
            let settled = match answers.get(index) {
                Some(answer) => reply::settled(take::int(answer)?)?,
                None => SettleResult::Applied,
            };
            self.answers[n] = settled;
            // A replay was counted before.
            if settled == SettleResult::Applied {
                self.items[n].0.grant.hint.batch.unsettled.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Returns the names of the batches in which a call settles all jobs that are left: first those that it settles as a
/// whole, then those of which other jobs were settled before. After a lost answer the count of a batch is wrong; then
/// the store examines the batch when its leases run out.
fn batches_over(items: &[(Lease, Outcome)], numbers: &[usize]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut counts: BTreeMap<u64, (&Lease, usize)> = BTreeMap::new();
    for n in numbers {
        let lease = &items[*n].0;
        counts.entry(lease.grant.receipt.lease.number).or_insert((lease, 0)).1 += 1;
    }
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for (number, (lease, here)) in counts {
        let GrantedBatch { size, unsettled } = &*lease.grant.hint.batch;
        if unsettled.load(Ordering::Relaxed) == here {
            let mut name = number.to_be_bytes().to_vec();
            // A batch of one job has its locator in its name.
            if *size == 1 {
                name.extend(lease.locator().0);
            }
            if *size == here { &mut whole } else { &mut rest }.push(name);
        }
    }
    (whole, rest)
}

/// Packs an outcome for `prelude/outcomes.lua`. `response` is the status of a successful attempt and its duration in ms;
/// without it the status is 0 and the duration the longest possible.
pub(crate) fn pack_outcome(outcome: &Outcome, hint: &SettleHint, response: Option<(u16, u32)>) -> Vec<u8> {
    // Without a response the duration is not known.
    let (status, took) = response.unwrap_or((0, u32::MAX));
    let duration = Duration::from_millis(took.into());
    let seen = LastAttempt { status: Some(status), duration, ..LastAttempt::default() };
    let nothing = LastAttempt::default();
    let (kind, delay, last, reason) = match outcome {
        Outcome::Complete => (1, Duration::ZERO, &seen, ""),
        Outcome::Retry { after, last } => (2, *after, last, ""),
        Outcome::Bury { reason, last } => (3, Duration::ZERO, last, reason.as_ref()),
        Outcome::Release { after } => (4, *after, &nothing, ""),
        Outcome::Return => (5, Duration::ZERO, &nothing, ""),
    };
    let mut packed = Vec::with_capacity(32);
    packed.push(kind);
    packed.push(u8::from(hint.is_external) | u8::from(hint.has_tags) << 1);
    packed.extend_from_slice(&six(millis_up(delay)));
    record::push_last(&mut packed, last, reason);
    packed
}
