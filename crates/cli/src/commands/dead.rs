//! `ringback dead`: the dead jobs of a topic, listed, purged and revived, many at a time.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use ringback_core::wire::{JobAnswer, PurgeAnswer, RevivalAnswer, RevivalsAnswer};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::pages::{self, List, following};
use super::{Session, parse};
use crate::args::{DeadCommand, DeadListArgs, DeadPurgeArgs, DeadReviveArgs, Format, RevivalArgs};
use crate::client::{Call, ClientError, LONG, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, dead_row, revival_details, revival_row, say};
use crate::progress::Progress;

/// Between two looks at a revival.
const LOOK: Duration = Duration::from_millis(500);
/// So often in a row a server may not answer.
const MOST_MISSED: u32 = 20;

pub(super) async fn run(session: &mut Session, command: DeadCommand) -> anyhow::Result<Verdict> {
    match command {
        DeadCommand::List(args) => list(session, &args).await,
        DeadCommand::Purge(args) => match &args.id {
            Some(id) => purge_one(session, &args.topic, id).await,
            None => purge(session, &args).await,
        },
        DeadCommand::Revive(args) => revive(session, &args).await,
        DeadCommand::Revivals { topic } => revivals(session, &topic).await,
        DeadCommand::Watch(args) => follow(session, &args.topic, &args.revival, None).await,
        DeadCommand::Stop(args) => stop(session, &args).await,
    }
}

fn call(method: Method, topic: &str, rest: &[&str]) -> Call {
    Call::new(method, &[&["v1", "topics", topic], rest].concat())
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
    let limit = if args.all { u64::MAX } else { args.limit };
    let path = ["v1", "topics", args.topic.as_str(), "dead"];
    let lacking = "lists of dead jobs";
    let list = List { path: &path, query: args.filter.query(), limit, of: "dead jobs", lacking };
    pages::show(session, list, table, dead_row).await
}

async fn purge_one(session: &mut Session, topic: &str, id: &str) -> anyhow::Result<Verdict> {
    let body = session.client.ask(call(Method::DELETE, topic, &["dead", id]), SHORT).await?.body;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let JobAnswer { topic, id, .. } = parse(&body)?;
            session.out.line(format!("{topic}/{id} is purged"))?;
        }
    }
    Ok(Verdict::Done)
}

/// Call after call until none is left.
async fn purge(session: &mut Session, args: &DeadPurgeArgs) -> anyhow::Result<Verdict> {
    let (progress, mut purged, mut cursor) = (Progress::new("purged", None), 0, None);
    loop {
        let mut call = call(Method::DELETE, &args.topic, &["dead"]);
        call.query = args.filter.query();
        call.query.extend(cursor.iter().map(|cursor: &String| ("cursor", cursor.clone())));
        let answer = match ask(session, call, LONG).await {
            Ok(body) => parse::<PurgeAnswer>(&body)?,
            Err(error) => {
                progress.clear();
                if purged > 0 {
                    say(&format!("{purged} jobs were purged before"));
                }
                return Err(error.into());
            }
        };
        purged += answer.purged;
        progress.advance(0, answer.purged);
        match answer.next {
            None => break,
            next => cursor = Some(following(cursor.as_ref(), next)?),
        }
    }
    progress.clear();
    match session.out.format {
        Format::Json => session.out.line(json!({"purged": purged, "next": null}).to_string())?,
        Format::Table => session.out.line(format!("{purged} dead jobs of {} are purged", args.topic))?,
    }
    Ok(Verdict::Done)
}

async fn revive(session: &mut Session, args: &DeadReviveArgs) -> anyhow::Result<Verdict> {
    let mut call = call(Method::POST, &args.topic, &["dead", "revive"]);
    let mut fields = args.filter.json();
    fields.insert("rate".to_owned(), args.rate.into());
    call.body = Some(("application/json", Bytes::from(Value::from(fields).to_string())));
    let body = ask(session, call, SHORT).await?;
    if args.no_wait {
        return show(session, &body);
    }
    let RevivalAnswer { id, topic, .. } = parse(&body)?;
    say(&format!("revival {id} of {topic}; to stop it: ringback dead stop {topic} {id}"));
    follow(session, &topic, &id, Some(0)).await
}

/// Tells how far it is until it has ended. `told` is how many it had revived when somebody began to
/// watch, where that is known.
async fn follow(
    session: &mut Session,
    topic: &str,
    revival: &str,
    mut told: Option<u64>,
) -> anyhow::Result<Verdict> {
    let (progress, mut missed) = (Progress::new("revived", None), 0);
    loop {
        match ask(session, call(Method::GET, topic, &["revivals", revival]), SHORT).await {
            Ok(body) => {
                let RevivalAnswer { revived, state, .. } = parse(&body)?;
                progress.advance(0, more(revived, told));
                (told, missed) = (Some(revived), 0);
                if state != "running" {
                    progress.clear();
                    return show(session, &body);
                }
            }
            Err(error) if error.is_transient() && missed < MOST_MISSED => {
                missed += 1;
                progress.waiting(&error, LOOK * MOST_MISSED);
            }
            Err(error) => {
                progress.clear();
                return Err(error.into());
            }
        }
        sleep(LOOK).await;
    }
}

/// How many are revived since that was told last. What was revived before somebody watched is no part of
/// the rate that is shown.
fn more(revived: u64, told: Option<u64>) -> u64 {
    revived.saturating_sub(told.unwrap_or(revived))
}

async fn stop(session: &mut Session, args: &RevivalArgs) -> anyhow::Result<Verdict> {
    let body = ask(session, call(Method::DELETE, &args.topic, &["revivals", &args.revival]), SHORT).await?;
    show(session, &body)
}

async fn revivals(session: &mut Session, topic: &str) -> anyhow::Result<Verdict> {
    let body = ask(session, call(Method::GET, topic, &["revivals"]), SHORT).await?;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let RevivalsAnswer { items } = parse(&body)?;
            if items.is_empty() {
                say("no revivals");
                return Ok(Verdict::Done);
            }
            let left = Align::Left;
            let columns = [
                ("REVIVAL", left),
                ("STATE", left),
                ("REVIVED", Align::Right),
                ("RATE", Align::Right),
                ("STARTED", left),
                ("", left),
                ("REASON", left),
            ];
            let rows: Vec<[Cell; 7]> = items.iter().map(|item| revival_row(item, session.now())).collect();
            let text = Table::new(columns, session.out.colour).page(&rows);
            session.out.bytes(text.as_bytes())?;
        }
    }
    Ok(Verdict::Done)
}

fn show(session: &mut Session, body: &Bytes) -> anyhow::Result<Verdict> {
    match session.out.format {
        Format::Json => session.json(body)?,
        Format::Table => {
            let text = revival_details(&parse(body)?, session.now(), session.out.colour);
            session.out.bytes(text.as_bytes())?;
        }
    }
    Ok(Verdict::Done)
}

async fn ask(session: &Session, call: Call, within: Duration) -> Result<Bytes, ClientError> {
    session.client.ask(call, within).await.map(|answer| answer.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_revived_before_somebody_watched_counts_for_nothing() {
        assert_eq!([more(500, None), more(520, Some(500)), more(30, Some(0))], [0, 20, 30]);
    }
}
