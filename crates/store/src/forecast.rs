//! Forecasts over all shards: how many jobs come due in each slot, and how often schedules fire in it.

use futures_util::future::try_join_all;
use ringback_core::clock::Timestamp;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::schedule::{Rule, ScheduleState};
use ringback_core::store_types::{Forecast, ForecastSlots, LaneSpan, StoreError};
use tokio::task::yield_now;

use crate::backend::backend;
use crate::store::Store;

/// How many schedules one call reads, and how many a forecast reads.
const PAGE: usize = 100;
const MAX_READ: usize = 10_000;
/// How many firings of cron expressions a forecast counts.
const MAX_CRON_FIRINGS: u64 = 50_000;
/// After how many of them other tasks of the process have their turn. A slot is counted at once: a day has 1,440
/// minutes.
const CRON_FIRINGS_AT_ONCE: u64 = 500;

/// How often schedules fire in each slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForecastFirings {
    pub slots: Vec<u64>,
    /// Whether there were more schedules or firings than are read.
    pub is_cut: bool,
}

impl Store {
    /// How many jobs of these lanes come due in which slot. Reads a part at a time, so a job that moves meanwhile can be
    /// missed or counted twice.
    pub async fn forecast(&self, spans: &[LaneSpan], slots: &ForecastSlots) -> Result<Forecast, StoreError> {
        let of_shards = self.shards().map(async |shard| backend!(self.forecast(shard, spans, slots).await));
        let mut sum = Forecast::new(slots.count);
        for forecast in try_join_all(of_shards).await? {
            sum.merge(&forecast);
        }
        Ok(sum)
    }

    /// How often the schedules of a scope fire in each slot after `now`, of topics that `reaches` accepts. Reads 10,000
    /// schedules and counts 50,000 times of cron expressions; `is_cut` if there are more, or one cannot be read.
    pub async fn forecast_schedules(
        &self,
        scope: &TenantScope,
        reaches: impl Fn(&Topic) -> bool + Sync,
        now: Timestamp,
        slots: &ForecastSlots,
    ) -> Result<ForecastFirings, StoreError> {
        let mut firings = ForecastFirings { slots: vec![0; slots.count], is_cut: false };
        let (mut after, mut n_read) = (None, 0);
        let mut left = CronFirings { left: MAX_CRON_FIRINGS, at_once: CRON_FIRINGS_AT_ONCE };
        loop {
            let (rows, next) = self.schedules(scope, after, PAGE).await?;
            n_read += PAGE;
            for row in rows.iter().filter(|row| reaches(&row.topic) && row.next.is_some()) {
                match ScheduleState::unpack(&row.packed) {
                    Ok(state) => firings.add(&state, now, slots, &mut left).await,
                    Err(_) => firings.is_cut = true,
                }
            }
            after = next;
            if after.is_none() {
                return Ok(firings);
            }
            if n_read >= MAX_READ {
                firings.is_cut = true;
                return Ok(firings);
            }
        }
    }
}

/// How many times of cron expressions may still be counted: in all, and before other tasks have their turn.
struct CronFirings {
    left: u64,
    at_once: u64,
}

impl CronFirings {
    async fn spend(&mut self, count: u64) {
        self.left = self.left.saturating_sub(count);
        self.at_once = self.at_once.saturating_sub(count);
        if self.at_once == 0 {
            self.at_once = CRON_FIRINGS_AT_ONCE;
            yield_now().await;
        }
    }
}

impl ForecastFirings {
    /// Adds the firings of a schedule after `now`, slot by slot. Marks the result as cut when no more times of cron
    /// expressions may be counted. Finding each takes microseconds.
    async fn add(
        &mut self,
        state: &ScheduleState,
        now: Timestamp,
        slots: &ForecastSlots,
        firings: &mut CronFirings,
    ) {
        let is_cron = matches!(state.schedule.rule, Rule::Cron(_));
        let mut last = now.as_millis();
        for slot in 0..slots.count {
            if is_cron && firings.left == 0 {
                self.is_cut = true;
                return;
            }
            let end = slots.begin(slot) + slots.length;
            let (from, till) = (Timestamp::from_millis(last + 1), Timestamp::from_millis(end));
            let n = state.schedule.count_between(from, till, firings.left);
            self.slots[slot] += n;
            if is_cron {
                // Finding that there is none costs as much as one.
                firings.spend(n + 1).await;
            }
            last = end - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn counting_cron_times_gives_others_their_turn() {
        let mut firings = CronFirings { left: 2_000, at_once: CRON_FIRINGS_AT_ONCE };
        let mut counting = pin!(async {
            for _ in 0..100 {
                firings.spend(15).await;
            }
            firings.left
        });
        let mut context = Context::from_waker(Waker::noop());
        let turns =
            std::iter::repeat_with(|| counting.as_mut().poll(&mut context)).position(|poll| poll.is_ready());
        // 1,500 in parts of 510, the first that are 500 or more.
        assert_eq!(turns, Some(2));
    }
}
