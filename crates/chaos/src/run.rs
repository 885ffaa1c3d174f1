//! One run, from the start of its processes to the last line of its history.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringback_testkit::history::{Entry, History, Policy, Start};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::clients::{Api, Clients, DEFAULT_POLICY, SHORT_POLICY, TIMEOUT};
use crate::faults::Faults;
use crate::installation::Installation;
use crate::options::Options;
use crate::receiver::Receiver;
use crate::store_kind::StoreKind;
use crate::watch::Watch;
use crate::{clock, ending, world};

/// How long after its due time or the end of a fault a job is delivered at the latest, in µs: a lock (0.6 s), a lease
/// (1.8 s) and a tick, on a machine that is busy with much else.
const LIVE: u64 = 15_000_000;

/// Makes a run on a store: starts it, makes load and faults, drains and dumps. Returns the path of the history.
pub(crate) async fn make(store: StoreKind, options: &Options) -> PathBuf {
    let directory = options.keep.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&directory).expect("the directory of histories can be made");
    let name = format!("chaos-{store}-{}-{}.jsonl", options.seed, std::process::id());
    let path = directory.join(name);
    let history = History::create(&path).expect("the history can be created");
    begin(&history, store, options);

    let installation = Installation::start(store, history.clone()).await;
    let receiver = Arc::new(Receiver::start(options.seed, &history).await);
    let mut watchers = JoinSet::new();
    watchers.spawn(clock::read(Arc::clone(&installation)));
    watchers.spawn(Arc::clone(&installation).watch());

    let until = Instant::now() + Duration::from_secs(options.seconds);
    let api = Api::new(installation.apis());
    let base = world::receiver(&receiver.base());
    let clients = Clients::new(api, history.clone(), base, until, options.rate);
    let watch = Watch::begin(&installation, &clients).await;
    let (mut load, consumers) = (clients.start(options.seed), clients.start_consumers(options.seed));
    let faults = Faults {
        installation: Arc::clone(&installation),
        receiver: Arc::clone(&receiver),
        clients: Arc::clone(&clients),
        kinds: options.kinds_on(store),
        until,
    };
    faults.run(options.seed).await;
    sleep_until(until).await;
    while let Some(ended) = load.join_next().await {
        ended.expect("a client does not panic");
    }
    ending::drain(&clients.api).await;
    drop(consumers);
    watch.end(&clients.api).await;
    ending::dump(&installation, &clients.api, clients.known()).await;
    history.flush();
    path
}

fn begin(history: &History, store: StoreKind, options: &Options) {
    let (seed, seconds) = (options.seed, options.seconds);
    history.write(&Entry::Start(Start {
        t: 0,
        wall: history.wall(),
        name: format!("chaos on {store}, seed {seed}, {seconds} s").into(),
        epsilon: 2_000,
        live: Some(LIVE),
        timeout: TIMEOUT,
        policy: DEFAULT_POLICY,
        loss: 0,
    }));
    let policy = |p, delays: &[u64], jitter| {
        let max = u32::try_from(delays.len()).expect("they are few") + 1;
        history.write(&Entry::Policy(Policy { p, delays: delays.to_vec(), max, jitter }));
    };
    policy(DEFAULT_POLICY, &[100, 200, 400], 0.1);
    policy(SHORT_POLICY, &[150, 50], 0.0);
}
