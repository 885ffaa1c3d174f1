//! The schedules of one held shard: a loop of rounds, see `round`. A round reads the schedules whose time has come. One
//! atomic step submits the jobs of a schedule's firings and sets its next time. Each step names the version of the
//! schedule that was read, so that no time fires twice. `quotas` limits the jobs.

mod quotas;
mod round;

pub(crate) use self::quotas::Counts;
use ringback_core::clock::Clock;
use ringback_core::store_types::{Shard, StoreError};
use ringback_service::outage::Outage;
use ringback_service::telemetry::with_causes;
use ringback_store::{SharedConfig, Store};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::deadline_signal::DeadlineSignal;
use crate::metrics::Metrics;
use crate::pace::MIN_SLEEP;

/// Makes the schedules of a shard fire.
pub(crate) struct ScheduleRunner<'a> {
    pub(crate) store: &'a Store,
    pub(crate) metrics: &'a Metrics,
    pub(crate) policies: &'a SharedConfig,
    pub(crate) shard: Shard,
    /// Set to the time at which a schedule fires.
    pub(crate) due: &'a DeadlineSignal,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) counts: Counts,
}

/// The result of a round.
enum Round {
    /// More schedules may be due.
    More,
    /// No schedule is due.
    Empty,
}

impl ScheduleRunner<'_> {
    /// Makes schedules fire each time `due` wakes it, and retries errors. Never returns; may be dropped at any time.
    pub(crate) async fn run(&self) {
        let mut outage = Outage::new();
        loop {
            self.due.sleep_until(None).await;
            loop {
                match self.round().await {
                    Ok(round) => {
                        if outage.ends() {
                            info!(shard = self.shard.number(), "schedules fire again");
                        }
                        if matches!(round, Round::Empty) {
                            break;
                        }
                        sleep(MIN_SLEEP).await;
                    }
                    Err(error) => {
                        if outage.begins() {
                            self.warn(&error);
                        }
                        sleep(outage.wait()).await;
                    }
                }
            }
        }
    }

    fn warn(&self, error: &StoreError) {
        let (shard, error) = (self.shard.number(), with_causes(error));
        warn!(shard, error, "schedules cannot fire; retrying");
    }
}
