//! The outbox relay of one held shard: reads the outbox of jobs that ended, submits a notice job for each that has a
//! receiver, removes the published entries and retries the rejected ones later. The id of a notice is derived from its
//! job, so a notice that is submitted twice, for example after a crash, exists once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use ringback_core::clock::Clock;
use ringback_core::crash_point;
use ringback_core::job::NewJob;
use ringback_core::limits::MAX_NOTICE_DELAY;
use ringback_core::store_types::{
    AckResult, EndedJob, Epoch, Limit, MAX_NOTICES, Outbox, OutboxAck, PendingNotice, Shard, StoreError,
    SubmitResult,
};
use ringback_service::outage::Outage;
use ringback_service::telemetry::with_causes;
use ringback_store::{SharedConfig, Store};
use ringback_wire::notice_of;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{error, info, warn};

use crate::deadline_signal::DeadlineSignal;
use crate::epoch_log::CallStart;
use crate::metrics::Metrics;
use crate::pace::MIN_SLEEP;

/// The shortest delay of a rejected notice. The delay equals the time since the job ended.
const MIN_RETRY: Duration = Duration::from_secs(1);
/// The longest delay of a rejected notice.
const MAX_RETRY: Duration = MAX_NOTICE_DELAY;

/// How long a round waits for further shards after the first answer. Notices for a slow shard count as
/// rejected and are submitted again, so that they do not delay notices for other shards.
const SLOW_SHARD: Duration = Duration::from_millis(100);

/// The relay of one shard.
pub(crate) struct OutboxRelay<'a> {
    pub(crate) store: &'a Store,
    pub(crate) metrics: &'a Metrics,
    pub(crate) policies: &'a SharedConfig,
    pub(crate) shard: Shard,
    pub(crate) epoch: &'a Epoch,
    /// Set to the time at which an entry is due.
    pub(crate) due: &'a DeadlineSignal,
    pub(crate) clock: &'a dyn Clock,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryResult {
    /// The end has no receiver or cannot be read.
    NoNotice,
    /// The store has the notice, from this call or an earlier one.
    Published,
    /// The store did not accept the notice.
    Rejected,
}

/// The result of a round.
enum Round {
    Fenced,
    /// More entries may be due.
    More,
    /// No entry is due.
    Empty,
}

impl OutboxRelay<'_> {
    /// Runs until another carrier claims the shard. May be dropped at any time.
    pub(crate) async fn run(&self) {
        let (mut rejections, mut outage) = (Rejections::default(), Outage::new());
        loop {
            self.due.sleep_until(None).await;
            loop {
                match self.round(&mut rejections).await {
                    Ok(Round::Fenced) => return,
                    Ok(round) => {
                        if outage.ends() {
                            info!(shard = self.shard.number(), "notices are published again");
                        }
                        if matches!(round, Round::Empty) {
                            break;
                        }
                        sleep(MIN_SLEEP).await;
                    }
                    Err(error) => {
                        if outage.begins() {
                            let (shard, error) = (self.shard.number(), with_causes(&error));
                            warn!(shard, error, "cannot publish notices; retrying");
                        }
                        sleep(outage.wait()).await;
                    }
                }
            }
        }
    }

    async fn round(&self, rejections: &mut Rejections) -> Result<Round, StoreError> {
        // The policy of a topic decides whether the ends of its jobs have a receiver.
        self.policies.known().await;
        // If the outbox is empty, the call below returns when the next entry is due.
        let outbox = self.store.outbox(self.shard, MAX_NOTICES).await?;
        crash_point!("carrier.after_read_outbox");
        let results = self.submit(&outbox.pending, rejections).await;
        crash_point!("carrier.after_publish_notices");
        let ack = self.ack(outbox, &results, rejections);
        // The answer of this call includes every deadline that was set before.
        self.due.clear();
        let (asked, begun) = (Instant::now(), CallStart::now(self.clock));
        let acknowledged = self.store.acknowledge(self.shard, self.epoch, &ack).await?;
        crash_point!("carrier.after_acknowledge");
        begun.used(self.shard, self.epoch, matches!(acknowledged, AckResult::Fenced));
        match acknowledged {
            AckResult::Fenced => Ok(Round::Fenced),
            AckResult::Held(Some(Duration::ZERO)) => Ok(Round::More),
            AckResult::Held(next) => {
                next.iter().for_each(|wait| self.due.set(asked + *wait));
                Ok(Round::Empty)
            }
        }
    }

    /// Submits the notices, one call per shard, all at once, and returns a result for each entry, in order. A notice
    /// counts as rejected if its call fails, or has no answer [`SLOW_SHARD`] after the first one.
    async fn submit(&self, pending: &[PendingNotice], rejections: &mut Rejections) -> Vec<EntryResult> {
        let by_shard = self.notices(pending);
        let mut results = vec![EntryResult::NoNotice; pending.len()];
        by_shard
            .values()
            .flat_map(|(indexes, _)| indexes)
            .for_each(|index| results[*index] = EntryResult::Rejected);
        let mut calls: FuturesUnordered<_> = by_shard
            .iter()
            .map(|(shard, (indexes, jobs))| async move { (indexes, self.store.submit(*shard, jobs).await) })
            .collect();
        let mut answer = calls.next().await;
        let until = Instant::now() + SLOW_SHARD;
        while let Some((indexes, answered)) = answer {
            match answered {
                Ok(answers) => {
                    let of_shard = answers.into_iter().map(|one| entry_result(one.answer, rejections));
                    indexes.iter().zip(of_shard).for_each(|(index, result)| results[*index] = result);
                }
                Err(error) => rejections.note(&error),
            }
            answer = timeout_at(until, calls.next()).await.unwrap_or_else(|_elapsed| {
                rejections.note(&"a shard is slow");
                None
            });
        }
        results
    }

    /// Returns the notices by shard, with the indexes of their entries in `pending`. Counts unreadable entries.
    fn notices(&self, pending: &[PendingNotice]) -> BTreeMap<Shard, (Vec<usize>, Vec<NewJob>)> {
        let mut by_shard: BTreeMap<Shard, (Vec<usize>, Vec<NewJob>)> = BTreeMap::new();
        for (index, entry) in pending.iter().enumerate() {
            let Some(ended) = &entry.ended else {
                self.metrics.outbox_unreadable.add(1, &[]);
                continue;
            };
            let Some(notice) = self.notice(ended) else { continue };
            let (indexes, jobs) = by_shard.entry(self.store.shard_of(&notice.key)).or_default();
            indexes.push(index);
            jobs.push(notice);
        }
        by_shard
    }

    fn notice(&self, ended: &EndedJob) -> Option<NewJob> {
        let policy = self.policies.get(&ended.job.key.topic).ok().flatten();
        notice_of(ended, policy.as_deref())
    }

    /// Returns the entries to remove, and the rejected ones with their delays. Counts and logs the results.
    fn ack(&self, outbox: Outbox, results: &[EntryResult], rejections: &mut Rejections) -> OutboxAck {
        self.count(results, rejections);
        let Outbox { pending, now } = outbox;
        let mut ack = OutboxAck::default();
        for (PendingNotice { id, ended }, result) in pending.into_iter().zip(results) {
            match result {
                EntryResult::Published | EntryResult::NoNotice => ack.done.push(id),
                EntryResult::Rejected => {
                    let age = ended.map_or(MIN_RETRY, |ended| now.since(ended.at));
                    ack.later.push((id, age.clamp(MIN_RETRY, MAX_RETRY)));
                }
            }
        }
        ack
    }

    fn count(&self, results: &[EntryResult], rejections: &mut Rejections) {
        let count = |wanted: EntryResult| results.iter().filter(|result| **result == wanted).count() as u64;
        let (shard, published, rejected) =
            (self.shard.number(), count(EntryResult::Published), count(EntryResult::Rejected));
        if published > 0 {
            self.metrics.published_notices.add(published, &[]);
        }
        if rejected > 0 {
            self.metrics.rejected_notices.add(rejected, &[]);
            if let Some(cause) = rejections.begin() {
                error!(shard, rejected, cause, "notices are rejected; retrying");
            }
        } else if published > 0 && rejections.end() {
            info!(shard, "notices are accepted again");
        }
    }
}

/// Limits the log to one line per series of rejections. A series ends when notices are published and none was
/// rejected for [`MAX_RETRY`].
#[derive(Default)]
struct Rejections {
    /// The first cause in this round.
    cause: Option<String>,
    /// When a notice was last rejected.
    last: Option<Instant>,
}

impl Rejections {
    /// Records why a notice of this round is rejected. Only the first cause of a round is kept.
    fn note(&mut self, cause: &dyn std::fmt::Display) {
        self.cause.get_or_insert_with(|| cause.to_string());
    }

    /// Records a round with rejections. Returns the cause if the round begins a series, else `None`.
    fn begin(&mut self) -> Option<String> {
        let cause = self.cause.take().unwrap_or_default();
        self.last.replace(Instant::now()).is_none().then_some(cause)
    }

    /// Ends a series whose last rejection is older than [`MAX_RETRY`]. Returns true if there was one.
    fn end(&mut self) -> bool {
        self.last.take_if(|last| last.elapsed() > MAX_RETRY).is_some()
    }
}

/// Converts the answer to a submit. A conflict counts as published: the other job is a notice of the same end,
/// submitted before the policy of its topic changed. So does a notice that was cancelled. Only a full shard rejects a
/// notice; its limit is recorded as the cause in `rejections`.
fn entry_result(answer: SubmitResult, rejections: &mut Rejections) -> EntryResult {
    match answer {
        SubmitResult::Created
        | SubmitResult::Repeated
        | SubmitResult::Replaced
        | SubmitResult::Postponed
        | SubmitResult::Conflict
        | SubmitResult::Cancelled
        | SubmitResult::Reserved { .. } => EntryResult::Published,
        SubmitResult::Full(limit) => {
            rejections.note(&match limit {
                Limit::Topics | Limit::TenantTopics => "a shard has jobs of too many topics",
                Limit::Lanes | Limit::TenantLanes => "a shard has jobs for too many origins",
                Limit::Keys => "a shard has jobs of too many keys that wait behind another one",
            });
            EntryResult::Rejected
        }
    }
}
