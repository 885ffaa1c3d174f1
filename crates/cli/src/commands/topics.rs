//! `ringback topics` and `ringback topic`: what is known of topics. `ringback pause` and `ringback resume`:
//! whether they are handed over.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::wire::{MAX_PAGE, TopicAnswer, format_duration};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Session, parse};
use crate::args::{Format, TopicArgs, TopicsArgs};
use crate::client::{Call, ClientError, LONG, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Colour, Table, relative, say};

/// A page whose topics are shown as they came.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    next: Option<String>,
}

pub(super) async fn list(session: &mut Session, args: &TopicsArgs) -> anyhow::Result<Verdict> {
    let mut table = table(session.out.colour);
    let limit = if args.all { u64::MAX } else { args.limit };
    let (mut shown, mut cursor) = (0, None);
    loop {
        let body = page(session, cursor.as_ref(), limit - shown).await?;
        let page: Page<'_> = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        match session.out.format {
            Format::Json => page.items.iter().try_for_each(|item| session.out.line(item.get()))?,
            Format::Table => {
                let topics = page.items.iter().map(|item| serde_json::from_str::<TopicAnswer>(item.get()));
                let topics = topics.collect::<Result<Vec<_>, _>>().map_err(|error| unreadable(&error))?;
                let rows: Vec<_> = topics.iter().map(|topic| row(topic, session.now())).collect();
                if !rows.is_empty() {
                    session.out.bytes(table.page(&rows).as_bytes())?;
                }
            }
        }
        shown += page.items.len() as u64;
        match page.next {
            None => break,
            Some(_) if shown >= limit => {
                say(&format!("the first {shown} topics; more with --limit or --all"));
                return Ok(Verdict::Done);
            }
            Some(next) if cursor.as_ref() == Some(&next) => {
                return Err(ClientError::Unreadable("a page that follows itself".to_owned()).into());
            }
            Some(next) => cursor = Some(next),
        }
    }
    if shown == 0 && session.out.format == Format::Table {
        say("no topics");
    }
    Ok(Verdict::Done)
}

async fn page(session: &Session, cursor: Option<&String>, wanted: u64) -> Result<Bytes, ClientError> {
    let mut call = Call::new(Method::GET, &["v1", "topics"]);
    call.query.extend(cursor.map(|cursor| ("cursor", cursor.clone())));
    call.query.push(("limit", wanted.min(MAX_PAGE as u64).to_string()));
    let answer = session.client.ask(call, LONG).await;
    answer.map(|answer| answer.body).map_err(|error| error.of_whole("lists of topics"))
}

fn unreadable(error: &serde_json::Error) -> ClientError {
    ClientError::Unreadable(error.to_string())
}

pub(super) async fn show(session: &mut Session, args: &TopicArgs) -> anyhow::Result<Verdict> {
    ask(session, Call::new(Method::GET, &["v1", "topics", &args.topic])).await
}

pub(super) async fn pause(session: &mut Session, args: &TopicArgs) -> anyhow::Result<Verdict> {
    ask(session, Call::new(Method::POST, &["v1", "topics", &args.topic, "pause"])).await
}

pub(super) async fn resume(session: &mut Session, args: &TopicArgs) -> anyhow::Result<Verdict> {
    ask(session, Call::new(Method::POST, &["v1", "topics", &args.topic, "resume"])).await
}

/// Makes the call and shows the topic that it is answered with.
async fn ask(session: &mut Session, call: Call) -> anyhow::Result<Verdict> {
    let body = session.client.ask(call, SHORT).await?.body;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let row = row(&parse(&body)?, session.now());
            let text = table(session.out.colour).page(&[row]);
            session.out.bytes(text.as_bytes())?;
        }
    }
    Ok(Verdict::Done)
}

fn table(colour: Colour) -> Table<8> {
    let columns = [
        ("TOPIC", Align::Left),
        ("", Align::Left),
        ("DELAYED", Align::Right),
        ("READY", Align::Right),
        ("RESERVED", Align::Right),
        ("DEAD", Align::Right),
        ("LATE", Align::Right),
        ("FIRST DUE", Align::Left),
    ];
    Table::new(columns, colour)
}

fn row(topic: &TopicAnswer, now: Timestamp) -> [Cell; 8] {
    let states = &topic.states;
    let late = match topic.late_ms {
        0 => "-".to_owned(),
        ms => format_duration(Duration::from_millis(ms)),
    };
    let first_due = topic.oldest_due_at.as_ref().map_or_else(|| "-".to_owned(), |at| relative(at, now));
    [
        Cell::from(&topic.topic),
        Cell::from(if topic.paused { "paused" } else { "" }),
        Cell::from(states.delayed),
        Cell::from(states.ready),
        Cell::from(states.reserved),
        Cell::from(states.dead),
        Cell::from(late),
        Cell::from(first_due),
    ]
}
