//! Reads the store's clock for the history, writes late answers of Redis as stalls, and steps the clock of Redis.

use std::sync::Arc;
use std::time::Duration;

use ringback_testkit::Seen;
use ringback_testkit::history::{ClockReading, Entry, History, Stall, StallOf};
use tokio::time::{sleep, timeout};

use crate::installation::Installation;
use crate::redis_client::RedisClient;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_millis(250);
/// A reading that took longer says too little, in µs.
const MAX_ERROR: u64 = 5_000;
/// An answer that takes longer is written down as a stall of the store, in µs.
const LATE: u64 = 100_000;

/// Reads the clock four times a second until it is aborted, but never while the clock steps.
pub(crate) async fn read(installation: Arc<Installation>) {
    loop {
        // The lock keeps the reading away from a step.
        read_once(&installation, &mut *installation.clock_client.lock().await).await;
        sleep(PAUSE).await;
    }
}

/// Steps the clock of Redis to `ahead` µs, and reads it right before and after the step.
pub(crate) async fn step(installation: &Installation, seen: &Seen, ahead: i64) {
    let client = &mut *installation.clock_client.lock().await;
    read_once(installation, client).await;
    seen.set_ahead(ahead);
    read_once(installation, client).await;
}

async fn read_once(installation: &Installation, client: &mut RedisClient) {
    let history = &installation.history;
    let before = history.t();
    let time = if installation.redis.is_some() {
        let time = timeout(Duration::from_secs(1), client.time()).await.ok().flatten();
        let t = history.t();
        if t > before + LATE {
            history.write(&Entry::Stall(Stall { t, since: before, of: StallOf::Store }));
        }
        time
    } else {
        // Servers of a group have the clock of this machine.
        u64::try_from(ringback_testkit::now().as_microsecond()).ok()
    };
    if let Some(time) = time {
        reading(history, before, time);
    }
}

fn reading(history: &History, before: u64, time: u64) {
    let after = history.t();
    // The embedded store's clock has whole milliseconds, as that of Redis has for scripts.
    let error = (after - before) / 2 + 1;
    if error <= MAX_ERROR {
        let t = before.midpoint(after);
        let ahead =
            i64::try_from(time).expect("it fits") - i64::try_from(history.wall() + t).expect("it fits");
        history.write(&Entry::Clock(ClockReading { t, store: 0, ahead, error }));
    }
}
