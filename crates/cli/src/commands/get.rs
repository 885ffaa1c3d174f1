//! `ringback get`: what is known of a job.

use http::Method;
use ringback_core::wire::JobAnswer;

use super::{Session, parse};
use crate::args::{Format, JobArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::job_details;

pub(super) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    let call = Call::new(Method::GET, &["v1", "jobs", key.topic.as_str(), key.id.as_str()]);
    let body = session.client.ask(call, SHORT).await?.body;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let text = job_details(&parse::<JobAnswer>(&body)?, session.now(), session.out.colour);
            session.out.bytes(text.as_bytes())?;
        }
    }
    Ok(Verdict::Done)
}
