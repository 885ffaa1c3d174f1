//! `ringback breaker`: forces the breakers of a host open or closed, or resets them.

use clap::Subcommand;
use http::Method;
use ringback_wire::{BreakerSetting, DestinationResponse};
use serde_json::json;

use super::destinations::{paused_by, port};
use super::limit::HostArgs;
use super::session::Session;
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback breaker close --host merchant.example
  ringback breaker open --host merchant.example:8443
  ringback breaker reset --host merchant.example

A breaker stops the callbacks to a receiver that does not answer. `ringback destinations --failing` shows those that are \
not closed. With the key of a tenant, or --tenant, these commands are for the jobs of that tenant, else for those of all.";

const OPEN_EXAMPLES: &str = "\
Examples:
  ringback breaker open --host merchant.example
  ringback breaker open --host merchant.example:8443";

const CLOSE_EXAMPLES: &str = "\
Examples:
  ringback breaker close --host merchant.example

Callbacks go there whatever it answers, until `ringback breaker reset`. It ends a pause of the same host or port.";

const RESET_EXAMPLES: &str = "\
Examples:
  ringback breaker reset --host merchant.example

It ends a pause of the same host or port.";

/// The commands on breakers.
#[derive(Debug, Subcommand)]
pub(crate) enum BreakerCommand {
    /// Pause a host: no job is delivered there until it is resumed, or its breakers are closed or reset
    #[command(after_help = OPEN_EXAMPLES)]
    Open(HostArgs),
    /// Close the breakers of a host, which open no more until they are reset
    #[command(after_help = CLOSE_EXAMPLES)]
    Close(HostArgs),
    /// Close the breakers of a host, which open by themselves again
    #[command(after_help = RESET_EXAMPLES)]
    Reset(HostArgs),
}

pub(crate) async fn run(session: &mut Session, command: BreakerCommand) -> anyhow::Result<CommandOutcome> {
    let (HostArgs { host }, state) = match command {
        BreakerCommand::Open(of) => (of, BreakerSetting::Open),
        BreakerCommand::Close(of) => (of, BreakerSetting::Closed),
        BreakerCommand::Reset(of) => (of, BreakerSetting::Auto),
    };
    let call = Call::new(Method::POST, &["v1", "destinations", &host, "breaker"]);
    let answer = session.client.ask(call.json(&json!({"state": state})), SHORT).await;
    let answer = answer.map_err(|error| error.for_route("forced breakers"))?;
    session.print(&answer.body, |destination, view| table(destination, view.colour))
}

fn table(destination: &DestinationResponse, colour: Colour) -> String {
    let DestinationResponse { host, port: of_port, paused, pauses, breaker, limits: _ } = destination;
    let row = [
        Cell::from(host),
        port(*of_port),
        Cell::from(breaker.to_string()),
        Cell::from(paused_by(*paused, pauses)),
    ];
    Table::new(["HOST", ">PORT", "BREAKER", "PAUSED BY"], colour).page(&[row])
}
