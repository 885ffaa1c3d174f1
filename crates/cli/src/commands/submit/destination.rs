//! Makes the note on where a job goes that was submitted without a URL: it is a pull job, or has the URL of its topic's
//! policy. Reads the stored job to find out, because the policy may have changed since.

use ringback_wire::{InspectedJob, JobResponse};

use crate::args::values;
use crate::client::SHORT;
use crate::commands::get_full;
use crate::commands::session::{Session, parse};

/// The note on where an accepted job without a URL of its own goes; `None` if it is done or cancelled.
pub(super) async fn of(session: &Session, job: &JobResponse) -> Option<String> {
    let topic = &job.topic;
    let found = look(session, job).await;
    let state = found.as_ref().map_or(&job.state, |found| &found.job.state);
    if matches!(state.as_str(), "done" | "cancelled") {
        return None;
    }
    Some(match found.and_then(|found| found.request).map(|request| request.url) {
        Some(Some(url)) => {
            format!("the job has no URL of its own: it is delivered to that of the topic's policy, {url}")
        }
        Some(None) => format!(
            "the job has no URL: it is a pull job, which waits until a consumer reserves it (ringback reserve {topic})"
        ),
        // The server does not show it.
        None => format!(
            "the job has no URL of its own: it is delivered to that of the topic's policy; if there is none, it is a \
            pull job, which waits until a consumer reserves it (ringback reserve {topic})"
        ),
    })
}

/// The job with its request; `None` if the call fails, since the job is accepted in any case.
async fn look(session: &Session, job: &JobResponse) -> Option<InspectedJob> {
    let key = values::parse_job_key(&[job.topic.as_str(), job.id.as_str()]).ok()?;
    let reply = session.client.ask(get_full::call(&key), SHORT).await.ok()?;
    parse(&reply.body).ok()
}
