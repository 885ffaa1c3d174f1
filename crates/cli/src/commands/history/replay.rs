//! `ringback history replay`: submits ended jobs of the archive again, one call after the other until all are tried,
//! and prints the counts and refusals. Waits when a quota or the archive holds up a replay that has begun.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use http::Method;
use ringback_wire::{MAX_REFUSALS, ReplayResponse};
use serde_json::json;
use tokio::time::sleep;

use super::{FEATURE, HistoryFilter};
use crate::args::Format;
use crate::client::{Call, ClientError, LONG};
use crate::commands::pages::next_cursor;
use crate::commands::session::{Session, parse};
use crate::failure::CommandOutcome;
use crate::output::{escape_text, note};
use crate::progress::Progress;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback history replay --topic pay.notify --state dead --finished-after 2026-11-20T09:00:00Z
  ringback history replay --tag customer:42 --rate 10 --name second-try
  ringback history replay --topic pay.notify --state purged --ids same

Jobs are submitted as they were, to be due at once: with new ids, so that a repeated replay of the same name submits
none twice, or with the same ids, where those are free. Exits with 1 if some could not be submitted.";

/// How long to wait after a transient error or a quota that is used up, and how often in a row.
const WAIT: Duration = Duration::from_secs(1);
const MAX_WAITS: u32 = 10;

fn is_for_a_moment(error: &ClientError) -> bool {
    error.is_transient() || matches!(error, ClientError::Problem { problem, .. } if problem.status == 429)
}

/// Which jobs to submit again, and how.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true)
    .args(["topic", "id", "tag", "state", "reason", "host", "finished_after", "finished_before", "all"]))]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    filter: HistoryFilter,
    /// Replay the whole history
    #[arg(long)]
    all: bool,
    /// Jobs per second, 1 to 1000
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Submit with new ids, or with those that the jobs had
    #[arg(long, default_value = "new")]
    ids: Ids,
    /// Name of the replay; another name makes other new ids
    #[arg(long)]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ids {
    New,
    Same,
}

pub(super) async fn run(session: &mut Session, args: &ReplayArgs) -> anyhow::Result<CommandOutcome> {
    let mut fields = json!({"filter": args.filter.json(), "rate": args.rate});
    if args.ids == Ids::Same {
        fields["ids"] = "same".into();
    }
    if let Some(name) = &args.name {
        fields["name"] = name.as_str().into();
    }
    let (progress, mut total, mut cursor) =
        (Progress::new("submitted", None), ReplayResponse::default(), None);
    let mut waits = 0;
    loop {
        if let Some(cursor) = &cursor {
            fields["cursor"] = String::as_str(cursor).into();
        }
        let call = Call::new(Method::POST, &["v1", "history", "replay"]).json(&fields);
        let answer = match session.client.ask(call, LONG).await {
            Ok(answer) => parse::<ReplayResponse>(&answer.body)?,
            // The quota allows more soon. What is away for a moment does not end a replay that has begun.
            Err(error) if cursor.is_some() && waits < MAX_WAITS && is_for_a_moment(&error) => {
                waits += 1;
                sleep(WAIT).await;
                continue;
            }
            Err(error) => {
                progress.clear();
                if total.submitted > 0 {
                    note(&format!(
                        "{} jobs were submitted before; the same command goes on",
                        total.submitted
                    ));
                }
                return Err(error.for_route(FEATURE).into());
            }
        };
        waits = 0;
        progress.advance(0, answer.submitted);
        total.submitted += answer.submitted;
        total.existing += answer.existing;
        total.refused += answer.refused;
        let room = MAX_REFUSALS.saturating_sub(total.refusals.len());
        total.refusals.extend(answer.refusals.into_iter().take(room));
        match answer.next {
            None => break,
            next => cursor = Some(next_cursor(cursor.as_ref(), next)?),
        }
    }
    progress.clear();
    match session.out.format {
        Format::Json => session.out.line(serde_json::to_string(&total)?)?,
        Format::Table => {
            let ReplayResponse { submitted, existing, refused, refusals, .. } = &total;
            session.out.line(format!("{submitted} submitted, {existing} existing, {refused} refused"))?;
            for refusal in refusals {
                let text = format!("{}/{}: {}", refusal.topic, refusal.id, refusal.detail);
                session.out.note(&escape_text(&text))?;
            }
        }
    }
    Ok(if total.refused > 0 { CommandOutcome::No } else { CommandOutcome::Done })
}
