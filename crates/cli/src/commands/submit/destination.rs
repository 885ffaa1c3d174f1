//! Where a job goes that was submitted without a URL: it is a pull job, or has the URL of its topic's policy. Only the
//! stored job knows, because the policy may have changed since.

use http::Method;
use ringback_core::wire::JobAnswer;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::args::values;
use crate::client::{Call, SHORT};
use crate::commands::session::{Session, parse};

/// Whether a submit has a URL.
pub(super) fn has_url(job: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Given {
        url: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Given>(job).is_ok_and(|given| given.url.is_some())
}

/// A job with what was submitted; that is absent once the job has ended.
#[derive(Deserialize)]
struct Inspected {
    state: String,
    request: Option<Requested>,
}

#[derive(Deserialize)]
struct Requested {
    url: Option<String>,
}

/// Where an accepted job without a URL of its own goes; `None` if it has ended.
pub(super) async fn of(session: &Session, job: &JobAnswer) -> Option<String> {
    let topic = &job.topic;
    let found = look(session, job).await;
    let state = found.as_ref().map_or(&job.state, |found| &found.state);
    if matches!(state.as_str(), "done" | "cancelled") {
        return None;
    }
    Some(match found.and_then(|found| found.request) {
        Some(Requested { url: Some(url) }) => {
            format!("the job has no URL of its own: it is delivered to that of the topic's policy, {url}")
        }
        Some(Requested { url: None }) => format!(
            "the job has no URL: it is a pull job, which waits until a consumer reserves it (ringback reserve {topic})"
        ),
        // An older server does not show requests.
        None => format!(
            "the job has no URL of its own: it is delivered to that of the topic's policy; if there is none, it is a \
            pull job, which waits until a consumer reserves it (ringback reserve {topic})"
        ),
    })
}

/// The job with its request; `None` if the server does not show it. The job is accepted in any case.
async fn look(session: &Session, job: &JobAnswer) -> Option<Inspected> {
    let key = values::parse_job_key(&[job.topic.as_str(), job.id.as_str()]).ok()?;
    let mut call = Call::job(Method::GET, &key, &[]);
    call.query.push(("include", "request".to_owned()));
    let reply = session.client.ask(call, SHORT).await.ok()?;
    parse(&reply.body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_url_is_none() {
        assert!(has_url(br#"{"topic":"t","url":"http://h/"}"#));
        for without in [&br#"{"topic":"t","url":null}"#[..], br#"{"topic":"t"}"#, b"[]", b"{"] {
            assert!(!has_url(without));
        }
    }
}
