//! `ringback finish`, `retry`, `renew`, `bury` and `release`: the word on a reserved job.

use http::Method;
use ringback_core::wire::RenewAnswer;
use serde_json::{Map, Value};

use super::{Session, parse};
use crate::args::{BuryArgs, Format, ReceiptArgs, ReleaseArgs, RenewArgs, RetryArgs, Wait};
use crate::client::{Answer, Call, SHORT};
use crate::failure::Verdict;

/// A field of a request, where it was given.
type Field = (&'static str, Option<Value>);

pub(super) async fn finish(session: &mut Session, args: &ReceiptArgs) -> anyhow::Result<Verdict> {
    tell(session, args, "finish", [], "the job is done").await
}

pub(super) async fn retry(session: &mut Session, args: RetryArgs) -> anyhow::Result<Verdict> {
    let fields = [duration("delay", args.delay), text("error", args.error)];
    tell(session, &args.of, "retry", fields, "the failure is noted").await
}

pub(super) async fn bury(session: &mut Session, args: BuryArgs) -> anyhow::Result<Verdict> {
    let fields = [text("reason", args.reason), text("error", args.error)];
    tell(session, &args.of, "bury", fields, "the job is dead").await
}

pub(super) async fn release(session: &mut Session, args: ReleaseArgs) -> anyhow::Result<Verdict> {
    tell(session, &args.of, "release", [duration("delay", args.delay)], "the job is given back").await
}

pub(super) async fn renew(session: &mut Session, args: RenewArgs) -> anyhow::Result<Verdict> {
    let Answer { body, .. } = ask(session, &args.of, "renew", [duration("ttr", args.ttr)]).await?;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let renewed = parse::<RenewAnswer>(&body)?;
            session.out.line(format!("the job is kept until {}", renewed.deadline))?;
        }
    }
    Ok(Verdict::Done)
}

async fn tell<const N: usize>(
    session: &mut Session,
    args: &ReceiptArgs,
    word: &str,
    fields: [Field; N],
    done: &str,
) -> anyhow::Result<Verdict> {
    let Answer { body, .. } = ask(session, args, word, fields).await?;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => session.out.line(done)?,
    }
    Ok(Verdict::Done)
}

async fn ask<const N: usize>(
    session: &Session,
    args: &ReceiptArgs,
    word: &str,
    fields: [Field; N],
) -> anyhow::Result<Answer> {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let json = Value::Object(given.collect::<Map<_, _>>()).to_string();
    let body = Some(("application/json", json.into()));
    let call = Call { body, ..Call::new(Method::POST, &["v1", "receipts", &args.receipt, word]) };
    Ok(session.client.ask(call, SHORT).await?)
}

fn duration(name: &'static str, wait: Option<Wait>) -> Field {
    (name, wait.map(|Wait(value)| value))
}

fn text(name: &'static str, text: Option<String>) -> Field {
    (name, text.map(Value::from))
}
