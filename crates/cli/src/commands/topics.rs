//! `ringback topics` and `ringback topic`, which print topics; `ringback pause` and `ringback resume`, which stop and
//! resume the delivery of a topic, or that to a host by `destinations`; and `ringback unblock`, which delivers the jobs
//! behind a dead one.

use std::time::Duration;

use clap::{ArgGroup, Args};
use http::Method;
use ringback_core::duration::format_duration;
use ringback_wire::{OrderOnDeath, OrderResponse, OrderedBy, TopicResponse, UnblockResponse};

use super::destinations;
use super::limit::limits_table;
use super::pages::{self, List};
use super::session::{Session, parse};
use crate::args::{Format, Page, TopicArgs, values};
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table, View, whose};

const TOPICS_EXAMPLES: &str = "\
Examples:
  ringback topics
  ringback topics --tenant '~all'
  ringback topics --all --output json | jq -r 'select(.states.dead > 0) | .topic'";

pub(crate) const TOPIC_EXAMPLES: &str = "\
Examples:
  ringback topic pay.notify
  ringback topic pay.notify --output json | jq .late_ms";

pub(crate) const PAUSE_EXAMPLES: &str = "\
Examples:
  ringback pause pay.notify
  ringback pause --host merchant.example
  ringback pause --host merchant.example:8443

Jobs of a paused topic, and those for a paused host, can be submitted and cancelled, and become due. Consumers get none \
of a paused topic. Deliveries in flight go on.";

pub(crate) const RESUME_EXAMPLES: &str = "\
Examples:
  ringback resume pay.notify
  ringback resume --host merchant.example
  ringback topics --all --output json | jq -r 'select(.paused) | .topic' |
      xargs -n 1 ringback resume";

pub(crate) const UNBLOCK_EXAMPLES: &str = "\
Examples:
  ringback unblock orders order-7
  ringback dead list orders --output json | jq -r '.id | split(\"~\")[0]' | sort -u |
      xargs -n 1 ringback unblock orders

The dead job stays dead, and is passed over. The exit code is 1 when no dead job holds the key.";

/// The number of topics.
#[derive(Debug, Args)]
#[command(after_help = TOPICS_EXAMPLES)]
pub(crate) struct TopicsArgs {
    #[command(flatten)]
    pub(crate) page: Page,
}

/// A topic or a host to pause or resume.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["topic", "host"])))]
pub(crate) struct PauseArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC", value_parser = values::topic)]
    topic: Option<String>,
    /// Host of callback URLs, for all of its ports, or HOST:PORT
    #[arg(long, value_name = "HOST", value_parser = values::destination)]
    host: Option<String>,
}

/// A key of jobs, and their topic.
#[derive(Debug, Args)]
pub(crate) struct UnblockArgs {
    #[command(flatten)]
    of: TopicArgs,
    /// Key of the jobs: the part of their ids before the first ~
    #[arg(value_name = "KEY", value_parser = values::order_key)]
    key: String,
}

pub(crate) async fn list(session: &mut Session, args: &TopicsArgs) -> anyhow::Result<CommandOutcome> {
    let (path, limit) = (&["v1", "topics"], args.page.limit());
    let list = List { path, query: Vec::new(), limit, of: "topics", feature: "lists of topics" };
    let table = table(session.out.colour);
    pages::print(session, list, table, row).await
}

pub(crate) async fn get(session: &mut Session, args: &TopicArgs) -> anyhow::Result<CommandOutcome> {
    ask(session, Call::topic(Method::GET, &args.topic, &[])).await
}

pub(crate) async fn pause(session: &mut Session, args: &PauseArgs) -> anyhow::Result<CommandOutcome> {
    change(session, args, "pause").await
}

pub(crate) async fn resume(session: &mut Session, args: &PauseArgs) -> anyhow::Result<CommandOutcome> {
    change(session, args, "resume").await
}

pub(crate) async fn unblock(session: &mut Session, args: &UnblockArgs) -> anyhow::Result<CommandOutcome> {
    let call = Call::topic(Method::POST, &args.of.topic, &["keys", &args.key, "unblock"]);
    let answer = session.client.ask(call, SHORT).await.map_err(|error| error.for_route("ordered topics"))?;
    let UnblockResponse { topic, key, unblocked } = parse(&answer.body)?;
    match session.out.format {
        Format::Json => session.json(&answer.body)?,
        Format::Table if unblocked => {
            session.out.line(format!("the next job of the key {key} of topic {topic} goes"))?;
        }
        Format::Table => session.out.note(&format!("no dead job holds the key {key} of topic {topic}"))?,
    }
    Ok(if unblocked { CommandOutcome::Done } else { CommandOutcome::No })
}

async fn change(session: &mut Session, args: &PauseArgs, verb: &str) -> anyhow::Result<CommandOutcome> {
    if let Some(topic) = &args.topic {
        let body = session.client.ask(Call::topic(Method::POST, topic, &[verb]), SHORT).await?.body;
        let outcome = session.print(&body, details)?;
        if let TopicResponse { note: Some(note), .. } = parse(&body)? {
            session.out.note(&note)?;
        }
        return Ok(outcome);
    }
    let host = args.host.as_deref().expect("one of the two is required");
    destinations::change(session, host, verb).await
}

/// Makes a call, and prints the topic in its response.
async fn ask(session: &mut Session, call: Call) -> anyhow::Result<CommandOutcome> {
    session.show(call, details).await
}

fn details(topic: &TopicResponse, view: &View) -> String {
    let counts = table(view.colour).page(&[row(topic, view)]);
    let limits = topic.limits.as_ref().map(|limits| format!("\n{}", limits_table(limits, view.colour)));
    let order = topic.order.as_ref().map(|order| format!("\n{}", order_table(order, view)));
    counts + &limits.unwrap_or_default() + &order.unwrap_or_default()
}

/// By what the jobs of a topic are ordered, and since when.
fn order_table(OrderResponse { by: OrderedBy::Key, on_dead, since }: &OrderResponse, view: &View) -> String {
    let on_dead = match on_dead {
        OrderOnDeath::Next => "next",
        OrderOnDeath::Hold => "hold",
    };
    let beginning = || "not yet: jobs that were attempted before are looked for".to_owned();
    let since = since.as_ref().map_or_else(beginning, |since| view.both(since));
    let row = ["key".into(), on_dead.into(), Cell::from(since)];
    Table::new(["ORDERED BY", "ON DEAD", "SINCE"], view.colour).page(&[row])
}

fn table(colour: Colour) -> Table {
    let columns = [
        "TOPIC",
        "",
        ">DELAYED",
        ">READY",
        ">RESERVED",
        ">DEAD",
        ">DONE",
        ">CANCELLED",
        ">LATE",
        "FIRST DUE",
    ];
    Table::new(columns, colour)
}

fn row(topic: &TopicResponse, view: &View) -> [Cell; 10] {
    let states = &topic.states;
    let late = match topic.late_ms {
        0 => "-".to_owned(),
        ms => format_duration(Duration::from_millis(ms)),
    };
    let is_ordered = topic.policy.as_ref().is_some_and(|policy| policy.get("order").is_some());
    let marks: Vec<_> = [(topic.paused, "paused"), (is_ordered, "ordered")]
        .into_iter()
        .filter_map(|(has_it, mark)| has_it.then_some(mark))
        .collect();
    let first_due = topic.oldest_due_at.as_ref().map_or_else(|| "-".to_owned(), |at| view.relative(at));
    [
        Cell::from(whose(topic.tenant.as_deref(), &topic.topic)),
        Cell::from(marks.join(", ")),
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
