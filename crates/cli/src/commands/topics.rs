//! `ringback topics` and `ringback topic`: what is known of topics. `ringback pause` and `ringback resume`:
//! whether they are handed over.

use std::time::Duration;

use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::duration::format_duration;
use ringback_core::wire::TopicAnswer;

use super::pages::{self, List};
use super::{Session, parse};
use crate::args::{Format, TopicArgs, TopicsArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Colour, Table, relative};

pub(super) async fn list(session: &mut Session, args: &TopicsArgs) -> anyhow::Result<Verdict> {
    let limit = if args.all { u64::MAX } else { args.limit };
    let list =
        List { path: &["v1", "topics"], query: Vec::new(), limit, of: "topics", lacking: "lists of topics" };
    let table = table(session.out.colour);
    pages::show(session, list, table, row).await
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

fn table(colour: Colour) -> Table<10> {
    let columns = [
        ("TOPIC", Align::Left),
        ("", Align::Left),
        ("DELAYED", Align::Right),
        ("READY", Align::Right),
        ("RESERVED", Align::Right),
        ("DEAD", Align::Right),
        ("DONE", Align::Right),
        ("CANCELLED", Align::Right),
        ("LATE", Align::Right),
        ("FIRST DUE", Align::Left),
    ];
    Table::new(columns, colour)
}

fn row(topic: &TopicAnswer, now: Timestamp) -> [Cell; 10] {
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
        Cell::from(states.done),
        Cell::from(states.cancelled),
        Cell::from(late),
        Cell::from(first_due),
    ]
}
