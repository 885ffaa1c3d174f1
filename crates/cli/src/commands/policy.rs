//! `ringback policy`: what a topic says of its jobs, and the end of a topic.

use http::Method;
use ringback_core::wire::{PolicyAnswer, TopicDeleteAnswer};
use serde_json::{Map, Value};

use super::{Session, parse};
use crate::args::{DeleteArgs, Format, Pair, PolicyCommand, Retry, SetArgs, TopicArgs, Wait};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, say};

pub(super) async fn run(session: &mut Session, command: PolicyCommand) -> anyhow::Result<Verdict> {
    match command {
        PolicyCommand::Set(args) => set(session, *args).await,
        PolicyCommand::Get(args) => get(session, &args).await,
        PolicyCommand::Delete(args) => delete(session, &args).await,
    }
}

async fn set(session: &mut Session, args: SetArgs) -> anyhow::Result<Verdict> {
    let topic = args.of.topic.clone();
    let body = Some(("application/json", policy(args).to_string().into()));
    let call = Call { body, ..Call::new(Method::PUT, &["v1", "topics", &topic]) };
    let answer = session.client.ask(call, SHORT).await?;
    match session.out.format {
        Format::Json => session.json(&answer.body)?,
        Format::Table => {
            let is_new = answer.status == http::StatusCode::CREATED;
            let what = if is_new { "a policy now" } else { "another policy now" };
            session.out.line(format!("the topic {topic} has {what}"))?;
        }
    }
    Ok(Verdict::Done)
}

fn policy(args: SetArgs) -> Value {
    let retry = args.retry.map(|Retry(mut retry)| {
        args.max.into_iter().for_each(|max| retry["max"] = max.into());
        args.jitter.into_iter().for_each(|jitter| retry["jitter"] = jitter.into());
        retry
    });
    let header = |Pair(name, value): Pair| (name, Value::from(value));
    let headers: Map<_, _> = args.header.into_iter().map(header).collect();
    let fields = [
        ("retry", retry),
        ("timeout", args.timeout.map(|Wait(value)| value)),
        ("ttr", args.ttr.map(|Wait(value)| value)),
        ("url", args.url.map(Value::from)),
        ("headers", (!headers.is_empty()).then(|| headers.into())),
        ("expect_body", args.expect_body.map(Value::from)),
        ("attempts", args.attempts.map(Value::from)),
        ("on_dead", args.on_dead.map(Value::from)),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

async fn get(session: &mut Session, TopicArgs { topic }: &TopicArgs) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::new(Method::GET, &["v1", "topics", topic]), SHORT).await?.body;
    let policy = parse::<PolicyAnswer>(&body)?.policy;
    match (session.out.format, &policy) {
        (Format::Json, _) => session.json(&body)?,
        (Format::Table, Some(policy)) => {
            let fields: Map<String, Value> = serde_json::from_str(policy.get())?;
            let rows: Vec<_> = fields
                .into_iter()
                .map(|(name, value)| [Cell::from(name), Cell::from(value.to_string())])
                .collect();
            let columns = [("FIELD", Align::Left), ("VALUE", Align::Left)];
            let text = Table::new(columns, session.out.colour).page(&rows);
            session.out.bytes(text.as_bytes())?;
        }
        (Format::Table, None) => say(&format!("the topic {topic} has no policy")),
    }
    Ok(if policy.is_some() { Verdict::Done } else { Verdict::No })
}

/// Calls again for as long as there is something to go on from.
async fn delete(session: &mut Session, args: &DeleteArgs) -> anyhow::Result<Verdict> {
    let topic = &args.of.topic;
    let mut sum = TopicDeleteAnswer::default();
    loop {
        let mut call = Call::new(Method::DELETE, &["v1", "topics", topic]);
        if args.force {
            call.query.push(("force", true.to_string()));
            call.query.extend(sum.next.take().map(|next| ("cursor", next)));
        }
        let body = session.client.ask(call, SHORT).await?.body;
        let answer = parse::<TopicDeleteAnswer>(&body)?;
        if session.out.format == Format::Json {
            session.json(&body)?;
        }
        sum.cancelled += answer.cancelled;
        sum.purged += answer.purged;
        sum.requested += answer.requested;
        (sum.deleted, sum.next) = (answer.deleted, answer.next);
        if sum.deleted || sum.next.is_none() {
            break;
        }
    }
    if session.out.format == Format::Table {
        tell(session, topic, &sum)?;
    }
    Ok(if sum.deleted { Verdict::Done } else { Verdict::No })
}

fn tell(session: &mut Session, topic: &str, sum: &TopicDeleteAnswer) -> anyhow::Result<()> {
    let TopicDeleteAnswer { deleted, cancelled, purged, requested, .. } = sum;
    let removed = format!("{cancelled} jobs were cancelled, {purged} purged");
    if *deleted {
        return session.out.line(format!("the topic {topic} is deleted; {removed}"));
    }
    say(&format!(
        "{removed}; {requested} are being handed over and will be cancelled unless that succeeds: run it again later"
    ));
    Ok(())
}
