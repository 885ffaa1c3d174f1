//! `ringback reschedule`, `ringback run` and `ringback revive`: give one job another due time.

use http::Method;
use ringback_core::wire::JobAnswer;
use serde_json::json;

use super::session::Session;
use crate::args::{JobArgs, RescheduleArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::relative;

pub(crate) async fn reschedule(session: &mut Session, args: &RescheduleArgs) -> anyhow::Result<Verdict> {
    let due = match (&args.delay, &args.at) {
        (Some(delay), _) => json!({ "delay": delay.0 }),
        (None, at) => json!({ "at": at }),
    };
    print(session, Call::job(Method::PATCH, &args.job.key()?, &[]).json(&due)).await
}

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    print(session, Call::job(Method::POST, &args.key()?, &["run"])).await
}

pub(crate) async fn revive(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    print(session, Call::job(Method::POST, &args.key()?, &["revive"])).await
}

/// Makes the call and prints the changed job.
async fn print(session: &mut Session, call: Call) -> anyhow::Result<Verdict> {
    let body = session.client.ask(call, SHORT).await?.body;
    session.print(&body, |job: &JobAnswer, view| {
        let JobAnswer { topic, id, state, due_at, .. } = job;
        format!("{topic}/{id} is {state}, due {due_at} ({})\n", relative(due_at, view.now))
    })
}
