//! `ringback get`: prints a job.

use http::Method;
use ringback_core::wire::JobAnswer;

use super::session::Session;
use crate::args::JobArgs;
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::job_details;

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::job(Method::GET, &args.key()?, &[]), SHORT).await?.body;
    session.print(&body, |job: &JobAnswer, view| job_details(job, view.now, view.colour))
}
