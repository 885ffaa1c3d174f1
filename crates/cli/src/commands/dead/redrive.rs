//! Redrives of dead jobs: `ringback dead revive`, `revivals`, `watch` and `stop`.

use clap::Args;
use http::Method;
use ringback_core::wire::{RevivalAnswer, RevivalsAnswer};

use crate::args::{DeadFilter, TopicArgs};
use crate::client::{Call, SHORT};
use crate::commands::bulk::follow;
use crate::commands::session::{Session, parse};
use crate::failure::Verdict;
use crate::output::{View, note, redrive_details, redrive_row};
use crate::progress::Progress;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback dead revive pay.notify --reason exhausted --rate 200
  ringback dead revive pay.notify --died-after 2026-11-20T09:00:00Z --no-wait

A carrier does the work. Ctrl-C stops watching, not the redrive: use `ringback dead stop` for that.";

/// The examples of all commands on redrives that were started.
pub(crate) const STARTED_EXAMPLES: &str = "\
Examples:
  ringback dead revivals pay.notify
  ringback dead watch pay.notify 0123456789abcdef
  ringback dead stop pay.notify 0123456789abcdef";

/// The dead jobs to redrive, and the rate.
#[derive(Debug, Args)]
pub(crate) struct DeadReviveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// Jobs per second, 1 to 100000
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Start the redrive and return at once
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// A redrive, by topic and id.
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Id of the redrive
    #[arg(value_name = "REDRIVE")]
    pub(crate) revival: String,
}

pub(crate) async fn start(session: &mut Session, args: &DeadReviveArgs) -> anyhow::Result<Verdict> {
    let call = Call::topic(Method::POST, &args.of.topic, &["dead", "revive"]);
    let mut fields = args.filter.json();
    fields.insert("rate".to_owned(), args.rate.into());
    let body = session.client.ask(call.json(&fields.into()), SHORT).await?.body;
    if args.no_wait {
        return session.print(&body, redrive_details);
    }
    let RevivalAnswer { id, topic, .. } = parse(&body)?;
    note(&format!("redrive {id} of {topic}; to stop it: ringback dead stop {topic} {id}"));
    watch(session, &topic, &id, Some(0)).await
}

/// Shows the progress of a redrive until it has ended. `before` is the number of jobs it had redriven when watching
/// began, if that is known.
pub(crate) async fn watch(
    session: &mut Session,
    topic: &str,
    revival: &str,
    before: Option<u64>,
) -> anyhow::Result<Verdict> {
    let (call, progress) =
        (Call::topic(Method::GET, topic, &["revivals", revival]), Progress::new("revived", None));
    let revived = |redrive: &RevivalAnswer| (redrive.revived, redrive.state == "running");
    let body = follow(session, &call, &progress, before, revived).await;
    progress.clear();
    session.print(&body?, redrive_details)
}

pub(crate) async fn stop(session: &mut Session, args: &RedriveArgs) -> anyhow::Result<Verdict> {
    session
        .show(Call::topic(Method::DELETE, &args.of.topic, &["revivals", &args.revival]), redrive_details)
        .await
}

pub(crate) async fn list(session: &mut Session, topic: &str) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::topic(Method::GET, topic, &["revivals"]), SHORT).await?.body;
    let columns = ["REDRIVE", "STATE", ">REVIVED", ">RATE", "STARTED", "", "REASON"];
    let rows = |answer: &RevivalsAnswer, view: &View| {
        answer.items.iter().map(|item| redrive_row(item, view)).collect()
    };
    session.print_rows(&body, columns, rows, "no redrives")
}
