//! `ringback topics` and `ringback topic` print topics; `ringback pause` and `ringback resume` stop and resume their
//! delivery.

use std::time::Duration;

use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::duration::format_duration;
use ringback_core::wire::TopicAnswer;

use super::pages::{self, List};
use super::session::Session;
use crate::args::{TopicArgs, TopicsArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Colour, Table, relative};

pub(crate) async fn list(session: &mut Session, args: &TopicsArgs) -> anyhow::Result<Verdict> {
    let (path, limit) = (&["v1", "topics"], args.page.limit());
    let list = List { path, query: Vec::new(), limit, of: "topics", feature: "lists of topics" };
    let table = table(session.out.colour);
    pages::print(session, list, table, row).await
}

pub(crate) async fn get(session: &mut Session, args: &TopicArgs) -> anyhow::Result<Verdict> {
    ask(session, Call::topic(Method::GET, &args.topic, &[])).await
}

pub(crate) async fn pause(session: &mut Session, args: &TopicArgs) -> anyhow::Result<Verdict> {
    ask(session, Call::topic(Method::POST, &args.topic, &["pause"])).await
}

pub(crate) async fn resume(session: &mut Session, args: &TopicArgs) -> anyhow::Result<Verdict> {
    ask(session, Call::topic(Method::POST, &args.topic, &["resume"])).await
}

/// Makes the call and prints the topic of the response.
async fn ask(session: &mut Session, call: Call) -> anyhow::Result<Verdict> {
    let body = session.client.ask(call, SHORT).await?.body;
    session.print(&body, |topic: &TopicAnswer, view| table(view.colour).page(&[row(topic, view.now)]))
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
