//! Gauges that are read from the store: jobs by state, the oldest ready job and the archive outbox of the shards that
//! this carrier holds, the open breakers, and the store's use of memory. Only a scrape of `/metrics` causes a read, by one task, and its
//! answer is reused for 5 to 20 s. So scrapes cost the store a bounded share of its time, however many come.
//!
//! Each shard has one carrier, and a carrier that has lost a shard gets no answer for it. So the counts of
//! all carriers add up to those of the installation.

mod families;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::{Epoch, FailingDestination, Shard, ShardGauges};
use ringback_core::topic_policy::{MAX_TOPICS_WITH_METRICS, Metrics as TopicMetrics};
use ringback_service::telemetry::with_causes;
use ringback_service::{GaugeValues, Shutdown};
use ringback_store::{SharedConfig, Store};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use self::families::WholeStore;

/// The shortest time for which an answer of the store is reused.
const FRESH: Duration = Duration::from_secs(5);
/// The longest such time. Between the two it is [`PAUSE`] times as long as the store took to answer.
const MAX_FRESH: Duration = Duration::from_secs(20);
const PAUSE: u32 = 20;
/// How soon a shard that could not be read is read again.
const RETRY: Duration = Duration::from_secs(1);
/// How long a scrape waits for a fresh answer. If none comes, the scrape shows the last one.
const WAIT: Duration = Duration::from_secs(1);
/// The greatest age of an answer that is shown.
const MAX_AGE: Duration = Duration::from_secs(30);

/// The shards that a carrier holds, each with the epoch under which it does.
pub(crate) type HeldShards = HashMap<Shard, Epoch>;

/// Reads the gauges from the store when a scrape asks for them.
pub(crate) struct GaugeReader {
    store: Store,
    policies: SharedConfig,
    held: watch::Receiver<HeldShards>,
    asked: Arc<Notify>,
    latest: watch::Sender<Option<Reading>>,
}

/// Shows the gauges to scrapes. It holds no store, so a scrape cannot keep a store open at the shutdown.
#[derive(Clone)]
pub(crate) struct GaugeView {
    held: watch::Receiver<HeldShards>,
    asked: Arc<Notify>,
    latest: watch::Receiver<Option<Reading>>,
}

/// Returns the reader, to be run as a task, and the view that scrapes use. `held` are the shards that are read.
pub(crate) fn gauges(
    store: Store,
    policies: SharedConfig,
    held: watch::Receiver<HeldShards>,
) -> (GaugeReader, GaugeView) {
    let (asked, (latest, shown)) = (Arc::new(Notify::new()), watch::channel(None));
    let view = GaugeView { held: held.clone(), asked: Arc::clone(&asked), latest: shown };
    (GaugeReader { store, policies, held, asked, latest }, view)
}

/// An answer of the store.
struct Reading {
    /// When the store was asked.
    at: Instant,
    /// Until when the answer is reused.
    fresh_until: Instant,
    /// The shards that were asked for, with the gauges of those that have answered.
    shards: HashMap<Shard, (Epoch, Option<ShardGauges>)>,
    /// The topics in the gauges of each shard.
    topics: Vec<Topic>,
    /// What was read of the store as a whole.
    store: WholeStore,
}

impl Reading {
    /// Whether the time of reuse is not over and the store was asked for all these shards under these epochs.
    fn is_fresh(&self, held: &HeldShards) -> bool {
        let covers = |(shard, epoch)| self.shards.get(shard).is_some_and(|(asked, _)| asked == epoch);
        Instant::now() < self.fresh_until && held.iter().all(covers)
    }

    /// Returns the gauges of these shards; `None` if one has no gauges under its epoch, or after [`MAX_AGE`].
    fn of(&self, held: &HeldShards) -> Option<Vec<&ShardGauges>> {
        let gauges = held.iter().map(|(shard, epoch)| match self.shards.get(shard) {
            Some((asked, Some(gauges))) if asked == epoch => Some(gauges),
            Some(_) | None => None,
        });
        gauges.collect::<Option<Vec<_>>>().filter(|_| self.at.elapsed() < MAX_AGE)
    }
}

impl GaugeReader {
    /// Reads the store each time a scrape asks for gauges that are not fresh, until the shutdown.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        loop {
            let read = async {
                self.asked.notified().await;
                let held = self.held.borrow().clone();
                if !is_fresh(self.latest.borrow().as_ref(), &held) {
                    let reading = self.read(held).await;
                    self.latest.send_replace(Some(reading));
                }
            };
            tokio::select! {
                biased;
                () = read => {}
                () = shutdown.stopping() => return,
            }
        }
    }

    async fn read(&self, held: HeldShards) -> Reading {
        let (at, topics) = (Instant::now(), self.topics());
        let asked = held.iter().map(|(shard, epoch)| (*shard, epoch.clone())).collect();
        let mut shards: HashMap<_, _> =
            held.into_iter().map(|(shard, epoch)| (shard, (epoch, None))).collect();
        let (answers, memory, failing) = tokio::join!(
            self.store.gauges(asked, &topics),
            self.store.memory_share(),
            self.store.failing_destinations(&TenantScope::All)
        );
        let mut fresh = (PAUSE * at.elapsed()).clamp(FRESH, MAX_FRESH);
        for (shard, answer) in answers {
            let gauges = answer.unwrap_or_else(|error| {
                let error = with_causes(&error);
                tracing::debug!(shard = shard.number(), error, "the gauges of a shard cannot be read");
                fresh = RETRY;
                None
            });
            if let Some((_, slot)) = shards.get_mut(&shard) {
                *slot = gauges;
            }
        }
        let is_open = |of: &&FailingDestination| of.failures.breaker().is_open();
        let store = WholeStore {
            memory: memory.ok().filter(|share| *share > 0.0),
            open_breakers: failing.ok().map(|failing| failing.iter().filter(is_open).count()),
        };
        Reading { at, fresh_until: Instant::now() + fresh, shards, topics, store }
    }

    /// Returns the first [`MAX_TOPICS_WITH_METRICS`] topics, by name, whose policy asks for metrics; none before the
    /// policies are known.
    fn topics(&self) -> Vec<Topic> {
        let policies = self.policies.all().unwrap_or_default();
        let by_topic = policies.iter().filter(|(_, policy)| policy.metrics == TopicMetrics::ByTopic);
        let mut topics: Vec<_> = by_topic.map(|(topic, _)| topic.clone()).collect();
        topics.sort_unstable();
        topics.truncate(MAX_TOPICS_WITH_METRICS);
        topics
    }
}

impl GaugeView {
    pub(crate) async fn scrape(mut self) -> Vec<GaugeValues> {
        let held = self.held.borrow().clone();
        if !held.is_empty() && !is_fresh(self.latest.borrow().as_ref(), &held) {
            self.asked.notify_one();
            let fresh = self.latest.wait_for(|reading| is_fresh(reading.as_ref(), &held));
            // If the fresh reading comes too late, the last one is shown.
            let _ = timeout(WAIT, fresh).await;
        }
        let latest = self.latest.borrow();
        let topics = latest.as_ref().map_or(&[][..], |reading| reading.topics.as_slice());
        let gauges = latest.as_ref().and_then(|reading| reading.of(&held));
        // Shown only together with the gauges of the shards.
        let store = latest.as_ref().filter(|_| gauges.is_some()).map(|reading| reading.store);
        families::of(gauges.as_deref().unwrap_or_default(), topics, store.unwrap_or_default())
    }
}

fn is_fresh(reading: Option<&Reading>, held: &HeldShards) -> bool {
    reading.is_some_and(|reading| reading.is_fresh(held))
}
