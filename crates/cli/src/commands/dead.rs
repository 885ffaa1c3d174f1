//! `ringback dead`: lists, purges and redrives the dead jobs of a topic, and follows redrives.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use ringback_core::wire::{JobAnswer, PurgeAnswer, RevivalAnswer, RevivalsAnswer};
use serde_json::json;
use tokio::time::sleep;

use super::pages::{self, List, next_cursor};
use super::session::{Session, parse};
use crate::args::{DeadCommand, DeadListArgs, DeadPurgeArgs, DeadReviveArgs, Format, RedriveArgs};
use crate::client::{Call, ClientError, LONG, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Table, dead_row, note, redrive_details, redrive_row};
use crate::progress::Progress;

/// The pause between two looks at a redrive.
const POLL: Duration = Duration::from_millis(500);
/// The number of failed looks in a row before giving up.
const MAX_FAILED_POLLS: u32 = 20;

pub(crate) async fn run(session: &mut Session, command: DeadCommand) -> anyhow::Result<Verdict> {
    match command {
        DeadCommand::List(args) => list(session, &args).await,
        DeadCommand::Purge(args) => match &args.id {
            Some(id) => purge_one(session, &args.of.topic, id).await,
            None => purge(session, &args).await,
        },
        DeadCommand::Revive(args) => revive(session, &args).await,
        DeadCommand::Revivals(args) => redrives(session, &args.topic).await,
        DeadCommand::Watch(args) => follow(session, &args.of.topic, &args.revival, None).await,
        DeadCommand::Stop(args) => stop(session, &args).await,
    }
}

async fn list(session: &mut Session, args: &DeadListArgs) -> anyhow::Result<Verdict> {
    let left = Align::Left;
    let right = Align::Right;
    let columns = [
        ("ID", left),
        ("DIED", left),
        ("", left),
        ("ATTEMPTS", right),
        ("REASON", left),
        ("LAST FAILURE", left),
    ];
    let table = Table::new(columns, session.out.colour);
    let path = ["v1", "topics", args.of.topic.as_str(), "dead"];
    let (query, limit) = (args.filter.query(), args.page.limit());
    let list = List { path: &path, query, limit, of: "dead jobs", feature: "lists of dead jobs" };
    pages::print(session, list, table, dead_row).await
}

async fn purge_one(session: &mut Session, topic: &str, id: &str) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::topic(Method::DELETE, topic, &["dead", id]), SHORT).await?.body;
    session.print(&body, |JobAnswer { topic, id, .. }, _| format!("{topic}/{id} is purged\n"))
}

/// Purges the jobs that the filter finds, one call after the other until none is left.
async fn purge(session: &mut Session, args: &DeadPurgeArgs) -> anyhow::Result<Verdict> {
    let (progress, mut purged, mut cursor) = (Progress::new("purged", None), 0, None);
    loop {
        let mut call = Call::topic(Method::DELETE, &args.of.topic, &["dead"]);
        call.query = args.filter.query();
        call.query.extend(cursor.iter().map(|cursor: &String| ("cursor", cursor.clone())));
        let answer = match ask(session, call, LONG).await {
            Ok(body) => parse::<PurgeAnswer>(&body)?,
            Err(error) => {
                progress.clear();
                if purged > 0 {
                    note(&format!("{purged} jobs were purged before"));
                }
                return Err(error.into());
            }
        };
        purged += answer.purged;
        progress.advance(0, answer.purged);
        match answer.next {
            None => break,
            next => cursor = Some(next_cursor(cursor.as_ref(), next)?),
        }
    }
    progress.clear();
    match session.out.format {
        Format::Json => session.out.line(json!({"purged": purged, "next": null}).to_string())?,
        Format::Table => session.out.line(format!("{purged} dead jobs of {} are purged", args.of.topic))?,
    }
    Ok(Verdict::Done)
}

async fn revive(session: &mut Session, args: &DeadReviveArgs) -> anyhow::Result<Verdict> {
    let call = Call::topic(Method::POST, &args.of.topic, &["dead", "revive"]);
    let mut fields = args.filter.json();
    fields.insert("rate".to_owned(), args.rate.into());
    let body = ask(session, call.json(&fields.into()), SHORT).await?;
    if args.no_wait {
        return print(session, &body);
    }
    let RevivalAnswer { id, topic, .. } = parse(&body)?;
    note(&format!("redrive {id} of {topic}; to stop it: ringback dead stop {topic} {id}"));
    follow(session, &topic, &id, Some(0)).await
}

/// Shows the progress of a redrive until it has ended. `before` is the number of jobs it had redriven when watching
/// began, if that is known.
async fn follow(
    session: &mut Session,
    topic: &str,
    revival: &str,
    mut before: Option<u64>,
) -> anyhow::Result<Verdict> {
    let (progress, mut failed) = (Progress::new("revived", None), 0);
    loop {
        match ask(session, Call::topic(Method::GET, topic, &["revivals", revival]), SHORT).await {
            Ok(body) => {
                let RevivalAnswer { revived, state, .. } = parse(&body)?;
                progress.advance(0, more(revived, before));
                (before, failed) = (Some(revived), 0);
                if state != "running" {
                    progress.clear();
                    return print(session, &body);
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

async fn stop(session: &mut Session, args: &RedriveArgs) -> anyhow::Result<Verdict> {
    let body = ask(session, Call::topic(Method::DELETE, &args.of.topic, &["revivals", &args.revival]), SHORT)
        .await?;
    print(session, &body)
}

async fn redrives(session: &mut Session, topic: &str) -> anyhow::Result<Verdict> {
    let body = ask(session, Call::topic(Method::GET, topic, &["revivals"]), SHORT).await?;
    if session.out.format == Format::Table && parse::<RevivalsAnswer>(&body)?.items.is_empty() {
        note("no redrives");
        return Ok(Verdict::Done);
    }
    let left = Align::Left;
    let columns = [
        ("REDRIVE", left),
        ("STATE", left),
        ("REVIVED", Align::Right),
        ("RATE", Align::Right),
        ("STARTED", left),
        ("", left),
        ("REASON", left),
    ];
    session.print(&body, |answer: &RevivalsAnswer, view| {
        let rows: Vec<_> = answer.items.iter().map(|item| redrive_row(item, view.now)).collect();
        Table::new(columns, view.colour).page(&rows)
    })
}

fn print(session: &mut Session, body: &Bytes) -> anyhow::Result<Verdict> {
    session.print(body, |redrive: &RevivalAnswer, view| redrive_details(redrive, view.now, view.colour))
}

async fn ask(session: &Session, call: Call, within: Duration) -> Result<Bytes, ClientError> {
    session.client.ask(call, within).await.map(|answer| answer.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_redriven_before_the_first_look_do_not_count() {
        assert_eq!([more(500, None), more(520, Some(500)), more(30, Some(0))], [0, 20, 30]);
    }
}
