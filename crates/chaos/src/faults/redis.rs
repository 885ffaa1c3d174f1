//! Faults of Redis: killed and started again, stopped, without memory, without functions.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::history::FaultClass;
use tokio::time::sleep;

use super::RunningFault;
use crate::fault::Kind;
use crate::installation::Installation;
use crate::redis_client::RedisClient;

/// The pause after a signal until it has certainly had its effect.
const SIGNALLED: Duration = Duration::from_millis(20);

pub(super) async fn make(installation: &Installation, kind: Kind, rng: &mut StdRng) {
    let history = &installation.history;
    let server = &mut *installation.redis.as_ref().expect("a run on Redis").lock().await;
    let mut client = RedisClient::new(server.port());
    let length = Duration::from_millis(rng.random_range(100..2_500));
    let begun = RunningFault::new(history, kind.name(), kind.class(), None);
    match kind {
        Kind::KillRedis => {
            server.kill();
            let away = RunningFault::new(history, "redis-away", FaultClass::StoreDown, None);
            sleep(length / 2).await;
            away.healed();
            server.restart().await;
        }
        Kind::StopRedis => {
            server.stop();
            sleep(SIGNALLED).await;
            let away = RunningFault::new(history, "redis-away", FaultClass::StoreDown, None);
            sleep(length).await;
            away.healed();
            server.cont();
        }
        Kind::FullMemory => {
            let used = server.used_memory().await;
            set_limit(&mut client, used + rng.random_range(0..200_000)).await;
            sleep(length).await;
            set_limit(&mut client, 0).await;
        }
        _ => {
            for command in ["FUNCTION", "SCRIPT"] {
                client.ask::<()>(redis::cmd(command).arg("FLUSH")).await;
            }
        }
    }
    begun.healed();
}

async fn set_limit(client: &mut RedisClient, bytes: u64) {
    let set = client.ask::<()>(redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes)).await;
    set.expect("Redis takes its settings");
}
