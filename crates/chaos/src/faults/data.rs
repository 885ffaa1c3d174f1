//! Faults that take data away from Redis: its data are removed, older, or torn. Processes have no other fault meanwhile,
//! because only they know what was accepted. A noticed loss is accepted over the API, so that submits go on.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use ringback_testkit::RedisServer;
use ringback_testkit::history::{Entry, FaultClass, Loss};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::RunningFault;
use crate::clients::Api;
use crate::fault::Kind;
use crate::installation::Installation;

/// The time within which all processes know the state of the store: they check about once a second.
const LOOK: Duration = Duration::from_millis(2_500);
/// The time within which a loss is noticed, also in that of four shards to which nobody submits.
const NOTICE: Duration = Duration::from_secs(7);
/// How long to wait for a loss that has to be noticed, or for an answer.
const LIMIT: Duration = Duration::from_secs(20);

/// The data with which Redis starts again.
enum Data {
    Nothing,
    Older(TempDir),
    /// Its append-only file, cut at or after this length.
    Cut(u64),
}

pub(super) async fn make(installation: &Installation, api: &Api, kind: Kind, rng: &mut StdRng) {
    let history = &installation.history;
    let _held = installation.hold().await;
    sleep(LOOK).await;
    let server = &mut *installation.redis.as_ref().expect("a run on Redis").lock().await;
    let begun = RunningFault::new(history, kind.name(), kind.class(), None);
    let (since, data) = before(history.t(), kind, server, rng).await;
    server.kill();
    let t = history.t();
    sleep(Duration::from_millis(rng.random_range(0..1_000))).await;
    let is_certain = !matches!(data, Data::Cut(_));
    let lost = is_certain.then(|| RunningFault::new(history, "lost-data", FaultClass::Amnesia, None));
    match data {
        Data::Nothing => server.restart_empty().await,
        Data::Older(copy) => server.restart_with(&copy).await,
        Data::Cut(length) => {
            cut(server, length, rng);
            server.restart().await;
        }
    }
    history.write(&Entry::Loss(Loss { t, since, answered: Some(history.t()) }));
    let wait = Duration::from_millis(rng.random_range(0..3_000));
    accept(api, lost, wait).await;
    begun.healed();
}

/// Returns what will be left of the data, and the time in the history of its last write (0 if nothing is left). Waits
/// before it returns, so that more is written after that time.
async fn before(t: u64, kind: Kind, server: &mut RedisServer, rng: &mut StdRng) -> (u64, Data) {
    match kind {
        Kind::WipedRedis => (0, Data::Nothing),
        Kind::OlderRedis => {
            // The files do not change meanwhile.
            server.stop();
            let copy = server.copy_data();
            server.cont();
            sleep(Duration::from_millis(rng.random_range(500..3_000))).await;
            (t, Data::Older(copy))
        }
        _ => {
            let (_, length) = server.append_only_file();
            sleep(Duration::from_millis(rng.random_range(5..300))).await;
            (t, Data::Cut(length))
        }
    }
}

/// Cuts the append-only file at a random place after `length`.
fn cut(server: &RedisServer, length: u64, rng: &mut StdRng) {
    let (path, now) = server.append_only_file();
    // A new file has only what came later.
    let from = if now < length { 0 } else { length };
    let file = std::fs::File::options().write(true).open(path).expect("the file is there");
    file.set_len(rng.random_range(from..=now)).expect("the file can be cut");
}

/// Waits until a loss is noticed, ends the fault `wait` later, and accepts the loss and any that is noticed within
/// another [`NOTICE`]. If none is noticed, ends the fault after [`LIMIT`].
async fn accept(api: &Api, mut lost: Option<RunningFault<'_>>, wait: Duration) {
    let begun = Instant::now();
    let mut quiet_since = begun;
    while begun.elapsed() < LIMIT && (lost.is_some() || quiet_since.elapsed() < NOTICE) {
        let check = api.call(Method::GET, "/v1/check", None).await.json();
        if let Some(run_id) = check["loss"]["run_id"].as_str() {
            if let Some(lost) = lost.take() {
                sleep(wait).await;
                lost.healed();
            }
            let body = serde_json::json!({ "run_id": run_id }).to_string();
            api.call(Method::POST, "/v1/check/accept-loss", Some(body)).await;
            quiet_since = Instant::now();
        }
        sleep(Duration::from_millis(100)).await;
    }
    if let Some(lost) = lost {
        lost.healed();
    }
}
