//! `ringback dead revive`: starts the bulk operation that makes the dead jobs of a topic due again, and watches it.

use clap::Args;
use http::Method;

use crate::args::{DeadFilter, TopicArgs};
use crate::client::{Call, SHORT};
use crate::commands::bulk::wait;
use crate::commands::session::Session;
use crate::failure::CommandOutcome;
use crate::output::bulk_details;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback dead revive pay.notify --reason exhausted --rate 200
  ringback dead revive pay.notify --died-after 2026-11-20T09:00:00Z --no-wait

A carrier does the work. Ctrl-C stops watching, not the operation: use `ringback bulk stop` for that.";

/// The dead jobs to revive, and the rate.
#[derive(Debug, Args)]
pub(crate) struct DeadReviveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// Jobs per second, 1 to 100000
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Start it and return at once
    #[arg(long)]
    pub(crate) no_wait: bool,
}

pub(crate) async fn start(session: &mut Session, args: &DeadReviveArgs) -> anyhow::Result<CommandOutcome> {
    let call = Call::topic(Method::POST, &args.of.topic, &["dead", "revive"]);
    let mut fields = args.filter.json();
    fields.insert("rate".to_owned(), args.rate.into());
    let body = session.client.ask(call.json(&fields.into()), SHORT).await?.body;
    if args.no_wait {
        return session.print(&body, bulk_details);
    }
    wait(session, &body).await.map(|_| CommandOutcome::Done)
}
