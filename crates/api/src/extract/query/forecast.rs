//! The query of a forecast: the topic, the length of a slot, and how far ahead to look.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::duration::parse_duration;
use ringback_core::job::Topic;
use ringback_core::store_types::{MAX_FORECAST, MAX_FORECAST_SLOT, MAX_FORECAST_SLOTS, MIN_FORECAST_SLOT};

use super::parameters::Parameters;
use super::{FromQuery, is_no};

const DEFAULT_BY: u64 = 600_000;
const DEFAULT_UNTIL: u64 = 86_400_000;

/// Of which jobs, in which slots. Durations are in ms.
pub(crate) struct ForecastQuery {
    pub(crate) topic: Option<Topic>,
    /// How long a slot is.
    pub(crate) by: u64,
    /// How far ahead to look.
    pub(crate) until: u64,
}

impl FromQuery for ForecastQuery {
    fn read(query: &mut Parameters) -> Self {
        let topic = query.topic();
        let by = length(query, "by", "1m to 1d", MIN_FORECAST_SLOT, MAX_FORECAST_SLOT);
        let until = length(query, "until", "1m to 31d", MIN_FORECAST_SLOT, MAX_FORECAST);
        let (by, until) = (by.unwrap_or(DEFAULT_BY), until.unwrap_or(DEFAULT_UNTIL));
        // The first slot has begun before.
        let slots = until.div_ceil(by) + 1;
        if slots > MAX_FORECAST_SLOTS as u64 {
            let detail = format!("these would be {slots} slots: choose a larger `by` or an earlier `until`");
            query.mistake("by", detail, format_args!("at most {MAX_FORECAST_SLOTS} slots"));
        }
        Self { topic, by, until }
    }
}

fn length(
    query: &mut Parameters,
    name: &'static str,
    allowed: &str,
    least: Duration,
    most: Duration,
) -> Option<u64> {
    query.read(name, allowed, |text| {
        let length = parse_duration(text).map_err(|error| format!("{}: {error}", is_no(name, text)))?;
        if (least..=most).contains(&length) { Ok(millis_up(length)) } else { Err(is_no(name, text)) }
    })
}
