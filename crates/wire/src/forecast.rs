//! The answer of a forecast, and how it follows from the counts of the store.

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{Forecast, ForecastSlots};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many jobs come due when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastResponse {
    /// When the first slot begins. What was due before the request is in `ready`, not in the slot.
    #[schema(format = DateTime)]
    pub from: String,
    /// How long a slot is, in ms.
    pub slot_ms: u64,
    /// When the last slot ends.
    #[schema(format = DateTime)]
    pub until: String,
    /// Jobs that are due already and wait to be delivered.
    pub ready: u64,
    /// Whether everything was counted: no sample was taken, and no schedule left out.
    pub exact: bool,
    /// How far `jobs` or `retries` of a slot can be off because of samples, as a share of the jobs and retries of the
    /// fullest slot: the half-width of the widest 95 % confidence interval. Null if no sample was taken.
    pub error: Option<f64>,
    /// The slots, in order, also those without jobs.
    pub slots: Vec<ForecastSlot>,
    /// What was delivered recently.
    pub recent: RecentDeliveries,
}

/// A slot of a forecast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForecastSlot {
    /// When it begins.
    #[schema(format = DateTime)]
    pub at: String,
    /// Jobs that come due in it and have not failed yet.
    pub jobs: u64,
    /// Jobs whose retry comes due in it.
    pub retries: u64,
    /// Firings of schedules that are to come in it. Their jobs are not submitted yet.
    pub schedules: u64,
}

/// What was delivered recently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentDeliveries {
    /// The most attempts of one of the last five minutes that are over, as the lateness counts them. Null for a part of
    /// the topics, since it is only counted for all together.
    pub per_minute_max: Option<u64>,
}

impl ForecastResponse {
    /// The answer. `firings` is how often schedules fire in each slot; `is_cut` says that some were left out. Recent
    /// deliveries are shown only if the forecast `is_of_all` topics.
    pub fn new(
        forecast: &Forecast,
        slots: &ForecastSlots,
        firings: &[u64],
        is_cut: bool,
        is_of_all: bool,
    ) -> Self {
        let time = |ms| Timestamp::from_millis(ms).to_string();
        let error = forecast.error();
        let slot = |(n, found): (usize, &ringback_core::store_types::SlotJobs)| {
            // A total that is exact stays so.
            let total = whole(found.jobs + found.retries);
            let jobs = whole(found.jobs).min(total);
            let schedules = firings.get(n).copied().unwrap_or(0);
            ForecastSlot { at: time(slots.begin(n)), jobs, retries: total - jobs, schedules }
        };
        Self {
            from: time(slots.first),
            slot_ms: slots.length,
            until: time(slots.end()),
            ready: forecast.ready,
            exact: error.is_none() && !is_cut,
            error: error.map(|error| (error * 10_000.0).ceil() / 10_000.0),
            slots: forecast.slots.iter().enumerate().map(slot).collect(),
            recent: RecentDeliveries {
                per_minute_max: forecast.delivered.values().max().copied().filter(|_| is_of_all),
            },
        }
    }
}

/// A number of jobs, rounded.
const fn whole(jobs: f64) -> u64 {
    jobs.round() as u64
}
