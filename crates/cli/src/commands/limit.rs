//! `ringback limit`: sets, shows and deletes the limits of the callbacks to a host.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, value_parser};
use http::Method;
use ringback_core::duration::format_duration;
use ringback_core::flow::{MAX_FLOW, Rate};
use ringback_wire::{DestinationResponse, LimitsResponse};
use serde_json::{Value, json};

use super::destinations::port;
use super::session::{Session, object};
use crate::args::values;
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback limit set --host merchant.example --rate 10/s --burst 20
  ringback limit set --host merchant.example:8443 --in-flight 5
  ringback limit get --host merchant.example
  ringback limit delete --host merchant.example

`ringback destinations` lists all of them. `ringback policy set` limits a topic.";

const SET_EXAMPLES: &str = "\
Examples:
  ringback limit set --host merchant.example --rate 10/s
  ringback limit set --host merchant.example --rate 100/m --burst 20 --in-flight 5
  ringback limit set --host merchant.example:8443 --in-flight 5

It replaces the former limits of the host or port: what is not given is no longer limited. A limit of a host holds over \
all of its ports, and beside one of HOST:PORT. Limits hold at once, and over all notifiers together; jobs that have to \
wait are ready. With the key of a tenant, or --tenant, they are for the jobs of that tenant, else for those of all.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback limit get --host merchant.example
  ringback limit get --host merchant.example --output json | jq .limits.used

IN FLIGHT shows the number of callbacks in flight and the limit, NEXT in what time the next may begin by the rate. Only \
limits of exactly this host or port are shown.";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback limit delete --host merchant.example
  ringback limit delete --host merchant.example:8443

The limits of a host and those of its ports are deleted each by itself.";

/// The commands on limits.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitCommand {
    /// Limit how fast, and how many at a time, callbacks go to a host, in place of its former limits
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// Show the limits of a host, and how much of them is used
    #[command(after_help = GET_EXAMPLES)]
    Get(HostArgs),
    /// Delete the limits of a host
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(HostArgs),
}

/// A host, or one port of it.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Host of callback URLs, for all of its ports, or HOST:PORT
    #[arg(long, value_name = "HOST", value_parser = values::destination)]
    pub(super) host: String,
}

/// Limits to set.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("limits").required(true).multiple(true).args(["rate", "in_flight"])))]
pub(crate) struct SetArgs {
    #[command(flatten)]
    of: HostArgs,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Limits of callbacks.
#[derive(Debug, Args)]
pub(crate) struct LimitFlags {
    /// How many callbacks may begin in a second, minute, hour or day: 10/s, 6/m, 100/h or 1000/d
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<String>,
    /// How many may begin at once after a pause, 1 to 1000000 [default: 1]
    #[arg(long, value_name = "N", requires = "rate", value_parser = value_parser!(u32).range(1..=i64::from(MAX_FLOW)))]
    burst: Option<u32>,
    /// How many callbacks may be in flight, 1 to 1000000
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(MAX_FLOW)))]
    in_flight: Option<u32>,
}

impl LimitFlags {
    /// The limits as a field of a request; `None` without any.
    pub(super) fn json(self) -> Option<Value> {
        let fields = object([
            ("rate", self.rate.map(Into::into)),
            ("burst", self.burst.map(Into::into)),
            ("in_flight", self.in_flight.map(Into::into)),
        ]);
        Some(fields).filter(|fields| fields.as_object().is_some_and(|fields| !fields.is_empty()))
    }
}

fn rate(text: &str) -> Result<String, String> {
    let rate: Rate = text.parse().map_err(|allowed| format!("a rate is {allowed}"))?;
    Ok(rate.to_string())
}

pub(crate) async fn run(session: &mut Session, command: LimitCommand) -> anyhow::Result<CommandOutcome> {
    let call = |method: Method, host: &str| Call::new(method, &["v1", "destinations", host]);
    let feature = "limits of destinations";
    let ask = match command {
        LimitCommand::Set(SetArgs { of, limits }) => {
            let call = call(Method::PUT, &of.host).json(&json!({"limits": limits.json()}));
            session.client.ask(call, SHORT).await.map_err(|error| error.for_route(feature))
        }
        LimitCommand::Get(HostArgs { host }) => {
            let call = call(Method::GET, &host);
            session.client.ask(call, SHORT).await.map_err(|error| error.for_route(feature))
        }
        // Its 404 says that the host has no limits.
        LimitCommand::Delete(HostArgs { host }) => {
            session.client.ask(call(Method::DELETE, &host), SHORT).await
        }
    };
    session.print(&ask?.body, |destination, view| table(destination, view.colour))
}

fn table(destination: &DestinationResponse, colour: Colour) -> String {
    let DestinationResponse { host, port: of_port, paused, pauses: _, breaker: _, limits } = destination;
    let [rate, burst, in_flight, next] = limits.as_ref().map_or([const { String::new() }; 4], shown);
    let row = [
        Cell::from(host),
        port(*of_port),
        Cell::from(if *paused { "paused" } else { "" }),
        Cell::from(or_dash(rate)),
        Cell::from(or_dash(burst)),
        Cell::from(or_dash(in_flight)),
        Cell::from(or_dash(next)),
    ];
    Table::new(["HOST", ">PORT", "", ">RATE", ">BURST", ">IN FLIGHT", ">NEXT"], colour).page(&[row])
}

/// Limits without what they are for, and how much of them is used.
pub(super) fn limits_table(limits: &LimitsResponse, colour: Colour) -> String {
    let row = shown(limits).map(|text| Cell::from(or_dash(text)));
    Table::new([">RATE", ">BURST", ">IN FLIGHT", ">NEXT"], colour).page(&[row])
}

/// The rate, the burst, the callbacks in flight of how many, and in what time the next may begin, each empty if it is
/// not limited.
fn shown(LimitsResponse { rate, burst, in_flight, used }: &LimitsResponse) -> [String; 4] {
    let at_rate = |text: String| rate.as_ref().map(|_| text).unwrap_or_default();
    let in_flight = in_flight.map(|most| format!("{} of {most}", used.in_flight.unwrap_or_default()));
    let next = match used.next_in_ms {
        0 => "now".to_owned(),
        ms => format_duration(Duration::from_millis(ms)),
    };
    let burst = at_rate(burst.unwrap_or(1).to_string());
    [rate.clone().unwrap_or_default(), burst, in_flight.unwrap_or_default(), at_rate(next)]
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use ringback_wire::{BreakerSetting, LimitsUsed};

    use super::*;

    fn limits(rate: Option<&str>, burst: Option<u32>, in_flight: Option<u32>) -> LimitsResponse {
        let used = LimitsUsed { in_flight: in_flight.map(|_| 3), next_in_ms: 0 };
        LimitsResponse { rate: rate.map(str::to_owned), burst, in_flight, used }
    }

    #[test]
    fn limits_are_shown_in_a_row() {
        let row = |limits| {
            let host = "a.example".to_owned();
            let breaker = BreakerSetting::Auto;
            let of =
                DestinationResponse { host, port: None, paused: false, pauses: Vec::new(), breaker, limits };
            let text = table(&of, Colour::No);
            text.lines()
                .nth(1)
                .unwrap()
                .split("  ")
                .filter(|cell| !cell.is_empty())
                .map(str::trim)
                .collect::<Vec<_>>()
                .join("|")
        };
        assert_eq!(row(Some(limits(Some("10/s"), None, Some(5)))), "a.example|all|10/s|1|3 of 5|now");
        assert_eq!(row(Some(limits(None, None, Some(5)))), "a.example|all|-|-|3 of 5|-");
        assert_eq!(row(None), "a.example|all|-|-|-|-");
        let mut waits = limits(Some("6/m"), Some(2), None);
        waits.used.next_in_ms = 10_250;
        assert_eq!(row(Some(waits)), "a.example|all|6/m|2|-|10s 250ms");
    }

    #[test]
    fn a_list_has_limits_in_few_words() {
        use crate::commands::destinations::summary;

        assert_eq!(summary(&limits(Some("10/s"), Some(20), Some(5))), "10/s, burst 20, 5 in flight");
        assert_eq!(summary(&limits(None, None, Some(5))), "5 in flight");
    }
}
