//! `ringback destinations`, which lists destinations; and `ringback pause --host` and `ringback resume --host`, whose
//! flags are in `topics`.

use clap::Args;
use http::Method;
use ringback_wire::{
    BreakerSetting, DestinationDetails, DestinationPauseResponse, FailureDetails, LimitsResponse,
};

use super::pages::{self, List};
use super::session::Session;
use crate::args::Page;
use crate::client::Call;
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table, limits_summary};

const DESTINATIONS_EXAMPLES: &str = "\
Examples:
  ringback destinations
  ringback destinations --failing
  ringback destinations --all --output json | jq -r 'select(.waiting > 1000) | .host'

A destination without a scheme is paused or limited and has no jobs. LIMITS has the limits of the host and of the port, \
which both hold. A destination fails from its first failed attempt on until one succeeds and none has failed for ten \
seconds; FAILED counts the attempts, and LAST is the error or the status of the last one.";

/// The number of destinations.
#[derive(Debug, Args)]
#[command(after_help = DESTINATIONS_EXAMPLES)]
pub(crate) struct DestinationsArgs {
    /// Only those that fail
    #[arg(long)]
    pub(crate) failing: bool,
    #[command(flatten)]
    pub(crate) page: Page,
}

pub(crate) async fn list(session: &mut Session, args: &DestinationsArgs) -> anyhow::Result<CommandOutcome> {
    let (path, limit) = (&["v1", "destinations"], args.page.limit());
    let query = if args.failing { vec![("failing", "true".to_owned())] } else { Vec::new() };
    let list = List { path, query, limit, of: "destinations", feature: "lists of destinations" };
    let columns = [
        "HOST",
        ">PORT",
        "SCHEME",
        "",
        ">DELAYED",
        ">WAITING",
        ">RESERVED",
        ">DEAD",
        "LIMITS",
        "FAILING SINCE",
        ">FAILED",
        "LAST",
    ];
    let table = Table::new(columns, session.out.colour);
    pages::print(session, list, table, |destination: &DestinationDetails, _| row(destination)).await
}

fn row(destination: &DestinationDetails) -> [Cell; 12] {
    let failing = destination.failing.as_ref();
    let breaker = failing.and_then(|failing| failing.breaker.as_ref());
    let breaker = breaker.map(|breaker| match (&breaker.next_at, &breaker.rate) {
        (Some(at), _) => format!("breaker {} until {at}", breaker.state),
        (None, rate) => format!("breaker {} ({})", breaker.state, rate.as_deref().unwrap_or("-")),
    });
    let paused = destination.paused.then(|| "paused".to_owned());
    let forced = (destination.breaker == BreakerSetting::Closed).then(|| "breaker forced closed".to_owned());
    let state: Vec<_> = [paused, forced, breaker].into_iter().flatten().collect();
    let limits: Vec<_> = destination.limited_by.iter().map(|one| summary(&one.limits)).collect();
    let last = |failing: &FailureDetails| {
        failing
            .last_error
            .clone()
            .or(failing.last_status.map(|status| status.to_string()))
            .unwrap_or_default()
    };
    [
        Cell::from(&destination.host),
        port(destination.port),
        Cell::from(destination.scheme.as_deref().unwrap_or("-").to_owned()),
        Cell::from(state.join(", ")),
        Cell::from(destination.delayed),
        Cell::from(destination.waiting),
        Cell::from(destination.reserved),
        Cell::from(destination.dead),
        Cell::from(limits.join(" and ")),
        Cell::from(failing.map(|failing| failing.since.clone()).unwrap_or_default()),
        Cell::from(failing.map(|failing| failing.attempts.to_string()).unwrap_or_default()),
        Cell::from(failing.map(last).unwrap_or_default()),
    ]
}

/// Pauses or resumes a host, or one port of it, and prints its state. `verb` is `pause` or `resume`.
pub(crate) async fn change(session: &mut Session, host: &str, verb: &str) -> anyhow::Result<CommandOutcome> {
    let call = Call::new(Method::POST, &["v1", "destinations", host, verb]);
    session.show(call, |answer: &DestinationPauseResponse, view| pause_table(answer, view.colour)).await
}

fn pause_table(answer: &DestinationPauseResponse, colour: Colour) -> String {
    let row = [
        Cell::from(&answer.host),
        port(answer.port),
        Cell::from(if answer.paused { "paused" } else { "" }),
        Cell::from(paused_by(answer.paused, &answer.pauses)),
    ];
    Table::new(["HOST", ">PORT", "", "PAUSED BY"], colour).page(&[row])
}

/// The pauses that the caller can end, or whose they are.
pub(super) fn paused_by(paused: bool, pauses: &[String]) -> String {
    match (paused, pauses) {
        (false, _) => "-".to_owned(),
        (true, []) => "the operator".to_owned(),
        (true, pauses) => pauses.join(", "),
    }
}

/// Limits in few words, for a list: `10/s, burst 20, 5 in flight`.
pub(super) fn summary(LimitsResponse { rate, burst, in_flight, used: _ }: &LimitsResponse) -> String {
    limits_summary(rate.as_deref(), *burst, *in_flight)
}

pub(super) fn port(port: Option<u16>) -> Cell {
    Cell::from(port.map_or_else(|| "all".to_owned(), |port| port.to_string()))
}
