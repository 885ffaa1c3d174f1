//! `ringback policy`: sets, prints and deletes the defaults of a topic.

use http::Method;
use ringback_core::wire::{PolicyAnswer, TopicDeleteAnswer};
use serde_json::{Map, Value};

use super::session::{Session, object, parse};
use crate::args::{DeleteArgs, Format, Pair, PolicyCommand, Retry, SetArgs, TopicArgs, Wait};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, note};

pub(crate) async fn run(session: &mut Session, command: PolicyCommand) -> anyhow::Result<Verdict> {
    match command {
        PolicyCommand::Set(args) => set(session, *args).await,
        PolicyCommand::Get(args) => get(session, &args).await,
        PolicyCommand::Delete(args) => delete(session, &args).await,
    }
}

async fn set(session: &mut Session, args: SetArgs) -> anyhow::Result<Verdict> {
    let topic = args.of.topic.clone();
    let call = Call::topic(Method::PUT, &topic, &[]).json(&policy(args));
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
    object([
        ("retry", retry),
        ("timeout", args.timeout.map(|Wait(value)| value)),
        ("ttr", args.ttr.map(|Wait(value)| value)),
        ("url", args.url.map(Value::from)),
        ("headers", (!headers.is_empty()).then(|| headers.into())),
        ("expect_body", args.expect_body.map(Value::from)),
        ("attempts", args.attempts.map(Value::from)),
        ("on_dead", args.on_dead.map(Value::from)),
    ])
}

async fn get(session: &mut Session, TopicArgs { topic }: &TopicArgs) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::topic(Method::GET, topic, &[]), SHORT).await?.body;
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
        (Format::Table, None) => note(&format!("the topic {topic} has no policy")),
    }
    Ok(if policy.is_some() { Verdict::Done } else { Verdict::No })
}

/// Deletes the policy, and with `--force` the jobs of the topic: one call after the other until no cursor is left.
async fn delete(session: &mut Session, args: &DeleteArgs) -> anyhow::Result<Verdict> {
    let topic = &args.of.topic;
    let mut sum = TopicDeleteAnswer::default();
    loop {
        let mut call = Call::topic(Method::DELETE, topic, &[]);
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
        print_deleted(session, topic, &sum)?;
    }
    Ok(if sum.deleted { Verdict::Done } else { Verdict::No })
}

fn print_deleted(session: &mut Session, topic: &str, sum: &TopicDeleteAnswer) -> anyhow::Result<()> {
    let TopicDeleteAnswer { deleted, cancelled, purged, requested, .. } = sum;
    let removed = format!("{cancelled} jobs were cancelled, {purged} purged");
    if *deleted {
        return session.out.line(format!("the topic {topic} is deleted; {removed}"));
    }
    note(&format!(
        "{removed}; {requested} are in delivery and will be cancelled unless it succeeds: run the command again later"
    ));
    Ok(())
}
