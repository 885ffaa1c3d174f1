//! Runs the feeds of a file, each as a task: waits for the lease of the feed, loads its rows while it has the lease,
//! and gives it back at the shutdown. Reports readiness, and starts anew after a lost lease or a loss of jobs in the
//! store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use ringback_admission::{Admission, Principal};
use ringback_core::duration::format_duration;
use ringback_core::store_types::{FeedPosition, StoreError, StoredFeed, WorkerId};
use ringback_service::dependency::Dependency;
use ringback_service::outage::Outage;
use ringback_service::{Context, Shutdown, Tasks, random};
use ringback_store::{SharedConfig, Store};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use crate::config::{Config, Feed, Outbox, Rows, Window};
use crate::lease::{Lease, Lost};
use crate::load::{LoadError, Loader};
use crate::metrics::Metrics;
use crate::outbox::{OutboxFeed, Progress};
use crate::pass::{Pass, PassError, Passed};
use crate::seen::SeenRows;
use crate::source::{Asked, Postgres, Source};
use crate::trouble::Trouble;

/// The task, and the readiness check, of the topic policies.
const POLICIES: &str = "feed's policies";
/// The pause after an error of the database, unless the feed reads it more often.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// After so long without an answer of its database a feed is not ready. It goes on waiting for the answer.
const SILENT: Duration = Duration::from_secs(5);
/// How often that is checked.
const LOOK: Duration = Duration::from_millis(500);
/// How long a process that has feeds waits before it takes another one, so that processes that have fewer come first.
const SHARE: Duration = Duration::from_millis(50);
const MAX_SHARE: Duration = Duration::from_millis(200);

/// Runs the feeds until the shutdown.
///
/// # Errors
/// When the store or a file of certificate authorities cannot be used, or a task fails.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let (clock, of) = (store.clock(Arc::clone(&context.clock)), store.clone());
    let context = context.on_store(clock, move || of.clock_ahead_seconds());
    let mut tasks = Tasks::new();
    let policies = SharedConfig::default();
    let (shared, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, &mut tasks, |known| shared.keep(of, random::generator(), known));
    let clock = Arc::clone(&context.clock);
    let admission =
        Admission::new(&store, policies.clone(), config.guard.clone(), clock, random::generator());
    let shared = Arc::new(Shared {
        store: store.clone(),
        policies,
        admission,
        metrics: Metrics::new(&context.meter, &context.scrapes, Arc::clone(&context.clock)),
        worker: WorkerId(random::generator().random()),
        held: AtomicU32::new(0),
        taking: Mutex::new(()),
        context: context.clone(),
        config,
    });
    for feed in shared.config.feeds.clone() {
        let work = Work::new(&feed, &shared.config)?;
        shared.metrics.begin(&feed.name);
        let (shared, shutdown) = (Arc::clone(&shared), context.shutdown.clone());
        let name = format!("feed {}", feed.name);
        tasks.spawn(
            name.clone(),
            FeedTask { name, feed, shared, is_calling: AtomicBool::new(false) }.run(work, shutdown),
        );
    }
    let (prepare, check) = (Store::prepared, Store::answers);
    let (is_transient, is_refusal) = (StoreError::is_transient, StoreError::is_refusal);
    let dependency = Dependency { name: "store", subject: store, prepare, check, is_transient, is_refusal };
    dependency.run(tasks, context).await
}

/// What the feeds of a process share.
struct Shared {
    store: Store,
    policies: SharedConfig,
    admission: Admission,
    metrics: Metrics,
    worker: WorkerId,
    /// How many feeds this process has.
    held: AtomicU32,
    taking: Mutex<()>,
    context: Context,
    config: Config,
}

/// The rows of a feed, and their database.
enum Work {
    Window(Window, Source),
    Outbox(Outbox, Box<Postgres>),
}

impl Work {
    fn new(feed: &Feed, config: &Config) -> anyhow::Result<Self> {
        let authorities = config.authorities.as_deref();
        Ok(match &feed.rows {
            Rows::Window(window) => Self::Window(window.clone(), Source::new(&window.source, authorities)?),
            Rows::Outbox(outbox) => {
                Self::Outbox(outbox.clone(), Box::new(Postgres::new(&outbox.url, authorities)?))
            }
        })
    }
}

struct FeedTask {
    /// The name of its readiness check.
    name: String,
    feed: Feed,
    shared: Arc<Shared>,
    /// Whether a call that loads rows is under way.
    is_calling: AtomicBool,
}

impl FeedTask {
    async fn run(self, mut work: Work, shutdown: Shutdown) {
        let Shared { store, policies, worker, metrics, config, .. } = &*self.shared;
        let lease = Lease::new(store.clone(), self.feed.name.clone(), *worker, config.lease);
        self.report(true, "waits for its turn");
        loop {
            let stored = tokio::select! {
                biased;
                // It may have been taken just now.
                () = shutdown.stopping() => return lease.give_back().await,
                stored = async {
                    policies.known().await;
                    self.take(&lease).await
                } => stored,
            };
            info!(feed = %self.feed.name, "this process loads the feed now");
            let asked = Asked::default();
            let is_stopping = tokio::select! {
                biased;
                () = shutdown.stopping() => true,
                () = lease.keep() => false,
                () = asked.note(self.work(&lease, &mut work, stored)) => false,
                () = self.watch(&asked) => false,
            };
            self.shared.held.fetch_sub(1, Ordering::Relaxed);
            metrics.lost(&self.feed.name);
            if is_stopping {
                // What was under way must not come after what the next process does.
                if self.is_calling.load(Ordering::Relaxed) {
                    sleep(config.store.call_timeout).await;
                }
                return lease.give_back().await;
            }
            warn!(feed = %self.feed.name, "the lease of the feed is lost; another process may load it");
            self.report(true, "another process may have it");
            tokio::select! {
                biased;
                () = shutdown.stopping() => return drop(lease.disturb().await),
                () = note_disturbance(&lease, config.store.call_timeout) => {}
            }
        }
    }

    /// Logs and reports when the database does not answer for 5 s. Never returns. The end of the pass, or its error,
    /// reports the next state.
    async fn watch(&self, asked: &Asked) {
        let mut is_silent = false;
        loop {
            sleep(LOOK).await;
            match asked.since() {
                Some(since) if since.elapsed() >= SILENT => {
                    if !std::mem::replace(&mut is_silent, true) {
                        warn!(feed = %self.feed.name, "the database of the feed does not answer");
                    }
                    let seconds = since.elapsed().as_secs();
                    self.report(false, &format!("its database has not answered for {seconds} s"));
                }
                _ => is_silent = false,
            }
        }
    }

    /// Waits until this process has the lease of the feed. A process that has feeds already waits up to 200 ms longer.
    async fn take(&self, lease: &Lease) -> StoredFeed {
        let Shared { taking, held, .. } = &*self.shared;
        let (mut outage, mut is_others) = (Outage::new(), false);
        loop {
            // At the start one after the other. Those of others are looked at without waiting for that.
            let turn = if is_others { None } else { Some(taking.lock().await) };
            if turn.is_some() {
                sleep((SHARE * held.load(Ordering::Relaxed)).min(MAX_SHARE)).await;
            }
            let taken = lease.take().await;
            if let Ok(Ok(_)) = taken {
                held.fetch_add(1, Ordering::Relaxed);
            }
            drop(turn);
            let wait = match taken {
                Ok(Ok(stored)) => return stored,
                Ok(Err(wait)) => {
                    is_others = true;
                    outage.ends();
                    self.report(true, "another process has it");
                    wait
                }
                // The store reports its outages itself.
                Err(_) => outage.wait(),
            };
            sleep(wait).await;
        }
    }

    /// Loads the rows of the feed, with errors and retries. Returns only if a pass finds that another process has the
    /// feed.
    async fn work(&self, lease: &Lease, work: &mut Work, stored: StoredFeed) {
        let Shared { store, admission, metrics, .. } = &*self.shared;
        let caller = Principal::of_tenant(self.feed.tenant.clone());
        let (topic, changed) = (self.feed.topic.clone(), self.feed.changed);
        let is_calling = &self.is_calling;
        let loader = Loader { store, admission, caller, topic, changed, is_calling };
        match work {
            Work::Window(window, source) => self.passes(lease, window, source, &loader, stored).await,
            Work::Outbox(outbox, database) => {
                let outbox = OutboxFeed { feed: &self.feed, outbox, loader: &loader, metrics };
                self.take_out(&outbox, database).await;
            }
        }
    }

    async fn passes(
        &self,
        lease: &Lease,
        window: &Window,
        source: &mut Source,
        loader: &Loader<'_>,
        mut stored: StoredFeed,
    ) {
        let Shared { store, metrics, context, .. } = &*self.shared;
        let (name, clock) = (&self.feed.name, &context.clock);
        let mut losses = store.losses_noticed();
        if stored.position.is_none() {
            // From here on no row is missed, however long the first pass needs.
            let first = FeedPosition { at: clock.now(), passed: None };
            if let Ok(now) = lease.renew(Some((None, first))).await {
                stored = now;
            }
        }
        let (mut seen, mut trouble, mut is_doubtful) = (SeenRows::default(), Trouble::default(), false);
        let mut is_forgotten_early = false;
        metrics.complete(name, stored.position.map_or_else(|| clock.now(), |position| position.at), 0);
        loop {
            let begun = Instant::now();
            let noticed = store.losses_noticed();
            if std::mem::replace(&mut losses, noticed) != noticed {
                warn!(feed = %name, "the store has lost jobs; loads all rows again");
                seen = SeenRows::default();
            }
            let pass = Pass {
                feed: &self.feed,
                window,
                source: &mut *source,
                loader,
                lease,
                seen: &mut seen,
                metrics,
                clock,
                keep_done: store.shortest_keep_done(),
                quota_deadline: begun + self.feed.every,
                waiting: None,
            };
            match pass.run(stored).await {
                Ok(Passed { stored: now, since, waiting }) => {
                    if now.disturbances != stored.disturbances || std::mem::take(&mut is_doubtful) {
                        info!(feed = %name, "jobs of the feed may have been changed back; loads all rows again");
                        seen = SeenRows::default();
                    }
                    stored = now;
                    metrics.complete(name, since, seen.len());
                    metrics.passed(name, begun.elapsed().as_secs_f64());
                    match waiting {
                        None => self.recovered(&mut trouble),
                        Some(waiting) => self.waits(&waiting.why, &mut trouble),
                    }
                    self.look_at_others(&mut is_forgotten_early);
                    sleep_until(begun + self.feed.every).await;
                }
                Err(PassError::Lease(Lost::Taken)) => return,
                Err(error) => {
                    // A submit without an answer may come later than the next one.
                    is_doubtful |= matches!(error, PassError::Load(LoadError::Store(_)));
                    self.failed(&error, &mut trouble).await;
                    // The position may have been set meanwhile.
                    if let Ok(now) = lease.renew(None).await {
                        stored.position = now.position;
                    }
                }
            }
        }
    }

    async fn take_out(&self, outbox: &OutboxFeed<'_>, database: &mut Postgres) {
        let Shared { metrics, context, .. } = &*self.shared;
        let (name, mut trouble) = (&self.feed.name, Trouble::default());
        loop {
            let error = outbox.run(database, |progress| match progress {
                Progress::Begins => metrics.falls_behind(name, context.clock.now()),
                Progress::Waits(why) => self.waits(&why, &mut trouble),
                Progress::CaughtUp => {
                    metrics.caught_up(name);
                    self.recovered(&mut trouble);
                }
            });
            let error = error.await;
            self.failed(&error, &mut trouble).await;
        }
    }

    fn recovered(&self, trouble: &mut Trouble) {
        if trouble.ends() {
            info!(feed = %self.feed.name, "the feed goes on");
        }
        self.report(true, "this process loads it");
    }

    /// Checks whether another process forgets jobs so early that rows would be loaded twice, and if so logs that and
    /// reports the feed as not ready. `is_known` is whether the last check found that; it is updated.
    fn look_at_others(&self, is_known: &mut bool) {
        let shortest = self.shared.store.shortest_keep_done();
        let Some(why) = self.feed.is_forgotten_early(shortest) else {
            if std::mem::take(is_known) {
                info!(feed = %self.feed.name, "all processes keep ended jobs for as long as the feed needs");
            }
            return;
        };
        let shortest = format_duration(shortest);
        let why = format!("another process of the installation has RINGBACK_KEEP_DONE={shortest}: {why}");
        if !std::mem::replace(is_known, true) {
            warn!(feed = %self.feed.name, why, "jobs of the feed may be forgotten too early, and its rows loaded again");
        }
        self.report(false, &why);
    }

    /// Reports that some rows wait, while all others are loaded.
    fn waits(&self, why: &str, trouble: &mut Trouble) {
        if trouble.begins_to_wait() {
            warn!(feed = %self.feed.name, why, "rows of the feed wait");
        }
        self.report(false, &format!("rows wait: {why}"));
    }

    async fn failed(&self, error: &PassError, trouble: &mut Trouble) {
        self.shared.metrics.failed(&self.feed.name);
        self.report(false, &error.to_string());
        if trouble.is_new(error) {
            warn!(feed = %self.feed.name, %error, "the feed cannot be loaded; trying again");
        }
        // A query that fails may be a load for the database all the same.
        let least = match error {
            PassError::Source(_) | PassError::Query(_) => MAX_PAUSE.min(self.feed.every),
            PassError::Load(_) | PassError::Lease(_) | PassError::TooLate { .. } => Duration::ZERO,
        };
        sleep(trouble.outage.wait().max(least)).await;
    }

    fn report(&self, is_ready: bool, text: &str) {
        self.shared.context.health.set(&self.name, is_ready, text);
    }
}

/// Waits, after the lease was lost, until the last call must have ended, and tells the store that this call may have
/// been too late, again and again until the store answers.
async fn note_disturbance(lease: &Lease, call_timeout: Duration) {
    let mut outage = Outage::new();
    sleep(call_timeout).await;
    while lease.disturb().await.is_err() {
        sleep(outage.wait()).await;
    }
}
