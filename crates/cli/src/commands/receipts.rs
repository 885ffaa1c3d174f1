//! `ringback finish`, `retry`, `bury` and `release` settle a reserved job by its receipt; `ringback renew` extends its
//! lease.

use http::Method;
use ringback_core::wire::RenewAnswer;
use serde_json::Value;

use super::session::{Session, object};
use crate::args::{BuryArgs, Format, ReceiptArgs, ReleaseArgs, RenewArgs, RetryArgs, Wait};
use crate::client::{Answer, Call, SHORT};
use crate::failure::Verdict;

/// A field of a request and its value, if it was given.
type Field = (&'static str, Option<Value>);

pub(crate) async fn finish(session: &mut Session, args: &ReceiptArgs) -> anyhow::Result<Verdict> {
    settle(session, args, "finish", [], "the job is done").await
}

pub(crate) async fn retry(session: &mut Session, args: RetryArgs) -> anyhow::Result<Verdict> {
    let fields = [duration("delay", args.delay), text("error", args.error)];
    settle(session, &args.of, "retry", fields, "the failure is recorded").await
}

pub(crate) async fn bury(session: &mut Session, args: BuryArgs) -> anyhow::Result<Verdict> {
    let fields = [text("reason", args.reason), text("error", args.error)];
    settle(session, &args.of, "bury", fields, "the job is dead").await
}

pub(crate) async fn release(session: &mut Session, args: ReleaseArgs) -> anyhow::Result<Verdict> {
    settle(session, &args.of, "release", [duration("delay", args.delay)], "the job is released").await
}

pub(crate) async fn renew(session: &mut Session, args: RenewArgs) -> anyhow::Result<Verdict> {
    let Answer { body, .. } = ask(session, &args.of, "renew", [duration("ttr", args.ttr)]).await?;
    session.print(&body, |renewed: &RenewAnswer, _| format!("the lease ends at {}\n", renewed.deadline))
}

async fn settle<const N: usize>(
    session: &mut Session,
    args: &ReceiptArgs,
    action: &str,
    fields: [Field; N],
    done: &str,
) -> anyhow::Result<Verdict> {
    let Answer { body, .. } = ask(session, args, action, fields).await?;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => session.out.line(done)?,
    }
    Ok(Verdict::Done)
}

async fn ask<const N: usize>(
    session: &Session,
    args: &ReceiptArgs,
    action: &str,
    fields: [Field; N],
) -> anyhow::Result<Answer> {
    let call = Call::new(Method::POST, &["v1", "receipts", &args.receipt, action]).json(&object(fields));
    Ok(session.client.ask(call, SHORT).await?)
}

fn duration(name: &'static str, wait: Option<Wait>) -> Field {
    (name, wait.map(|Wait(value)| value))
}

fn text(name: &'static str, text: Option<String>) -> Field {
    (name, text.map(Value::from))
}
