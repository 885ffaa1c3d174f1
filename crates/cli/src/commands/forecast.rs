//! `ringback forecast`: prints how many jobs come due when, with a bar for each slot.

use clap::Args;
use http::Method;
use ringback_core::job::Topic;
use ringback_wire::{ForecastResponse, ForecastSlot};

use super::session::Session;
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, View};

const FORECAST_EXAMPLES: &str = "\
Examples:
  ringback forecast
  ringback forecast --topic emails --by 1h --until 7d
  ringback forecast --output json | jq '[.slots[].jobs] | max'";

/// How wide the longest bar is.
const BAR: u64 = 40;

/// Which jobs, in which slots.
#[derive(Debug, Args)]
#[command(after_help = FORECAST_EXAMPLES)]
pub(crate) struct ForecastArgs {
    /// Only jobs of this topic
    #[arg(long)]
    topic: Option<Topic>,
    /// How long a slot is, 1m to 1d
    #[arg(long, default_value = "10m", value_name = "DURATION")]
    by: String,
    /// How far ahead to look, up to 31d
    #[arg(long, default_value = "24h", value_name = "DURATION")]
    until: String,
}

pub(crate) async fn run(session: &mut Session, args: ForecastArgs) -> anyhow::Result<CommandOutcome> {
    let mut call = Call::new(Method::GET, &["v1", "forecast"]);
    call.query = vec![("by", args.by), ("until", args.until)];
    call.query.extend(args.topic.map(|topic| ("topic", topic.to_string())));
    let answer = session.client.ask(call, SHORT).await;
    let body = answer.map_err(|error| error.for_route("forecasts"))?.body;
    session.print(&body, text)
}

fn text(forecast: &ForecastResponse, view: &View) -> String {
    let all = |slot: &ForecastSlot| slot.jobs + slot.retries + slot.schedules;
    let most = forecast.slots.iter().map(all).max().unwrap_or(0).max(1);
    let row = |slot: &ForecastSlot| {
        let width = (all(slot) * BAR).div_ceil(most);
        [
            Cell::from(view.times.show(&slot.at)),
            Cell::from(slot.jobs),
            Cell::from(slot.retries),
            Cell::from(slot.schedules),
            Cell::from("█".repeat(usize::try_from(width).unwrap_or(0))),
        ]
    };
    let rows: Vec<_> = forecast.slots.iter().map(row).collect();
    let slots = Table::new(["FROM", ">JOBS", ">RETRIES", ">SCHEDULES", ""], view.colour).page(&rows);
    let error = match (forecast.error, forecast.exact) {
        (Some(error), _) => format!("±{:.1} % of the fullest slot", error * 100.0),
        (None, true) => "none".to_owned(),
        (None, false) => "some schedules were left out".to_owned(),
    };
    let recent = forecast.recent.per_minute_max.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let rows = [
        [Cell::from("ready now"), Cell::from(forecast.ready)],
        [Cell::from("error"), Cell::from(error)],
        [Cell::from("most attempts a minute, last 5 min"), Cell::from(recent)],
    ];
    slots + "\n" + &Table::new([""; 2], view.colour).page(&rows)
}
