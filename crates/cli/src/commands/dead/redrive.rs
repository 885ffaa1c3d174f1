//! Redrives of dead jobs: `ringback dead revive`, `revivals`, `watch` and `stop`.

use std::time::Duration;

use clap::Args;
use http::Method;
use ringback_core::wire::{RevivalAnswer, RevivalsAnswer};
use tokio::time::sleep;

use crate::args::{DeadFilter, TopicArgs};
use crate::client::{Call, Reply, SHORT};
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

/// The pause between two looks at a redrive.
const POLL: Duration = Duration::from_millis(500);
/// The number of failed looks in a row before giving up.
const MAX_FAILED_POLLS: u32 = 20;

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
    mut before: Option<u64>,
) -> anyhow::Result<Verdict> {
    let (progress, mut failed) = (Progress::new("revived", None), 0);
    loop {
        let call = Call::topic(Method::GET, topic, &["revivals", revival]);
        match session.client.ask(call, SHORT).await {
            Ok(Reply { body, .. }) => {
                let RevivalAnswer { revived, state, .. } = parse(&body)?;
                progress.advance(0, more(revived, before));
                (before, failed) = (Some(revived), 0);
                if state != "running" {
                    progress.clear();
                    return session.print(&body, redrive_details);
                }
            }
            Err(error) if error.is_transient() && failed < MAX_FAILED_POLLS => {
                failed += 1;
                progress.waiting(&error, POLL * MAX_FAILED_POLLS);
            }
            Err(error) => {
                progress.clear();
                return Err(error.into());
            }
        }
        sleep(POLL).await;
    }
}

/// The number of jobs redriven since the last look. Jobs redriven before the first look do not count, so that the rate
/// is right.
fn more(revived: u64, before: Option<u64>) -> u64 {
    revived.saturating_sub(before.unwrap_or(revived))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_redriven_before_the_first_look_do_not_count() {
        assert_eq!([more(500, None), more(520, Some(500)), more(30, Some(0))], [0, 20, 30]);
    }
}
