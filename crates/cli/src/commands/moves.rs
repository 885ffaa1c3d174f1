//! `ringback reschedule`, `ringback run` and `ringback revive`: when a job is handed over, or that it is again.

use bytes::Bytes;
use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::wire::JobAnswer;
use serde_json::json;

use super::{Session, parse};
use crate::args::{Format, JobArgs, RescheduleArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::relative;

pub(super) async fn reschedule(session: &mut Session, args: &RescheduleArgs) -> anyhow::Result<Verdict> {
    let key = args.job.key()?;
    let when = match (&args.delay, &args.at) {
        (Some(delay), _) => json!({ "delay": delay.0 }),
        (None, at) => json!({ "at": at }),
    };
    let mut call = Call::new(Method::PATCH, &["v1", "jobs", key.topic.as_str(), key.id.as_str()]);
    call.body = Some(("application/json", Bytes::from(when.to_string())));
    show(session, call).await
}

pub(super) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    show(session, Call::new(Method::POST, &["v1", "jobs", key.topic.as_str(), key.id.as_str(), "run"])).await
}

pub(super) async fn revive(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    show(session, Call::new(Method::POST, &["v1", "jobs", key.topic.as_str(), key.id.as_str(), "revive"]))
        .await
}

/// Makes the call and shows the job as it is then.
async fn show(session: &mut Session, call: Call) -> anyhow::Result<Verdict> {
    let body = session.client.ask(call, SHORT).await?.body;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let (job, now) = (parse::<JobAnswer>(&body)?, session.now());
            session.out.line(sentence(&job, now))?;
        }
    }
    Ok(Verdict::Done)
}

fn sentence(job: &JobAnswer, now: Timestamp) -> String {
    let JobAnswer { topic, id, state, due_at, .. } = job;
    format!("{topic}/{id} is {state}, due {due_at} ({})", relative(due_at, now))
}
