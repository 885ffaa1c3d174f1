//! `ringback get --full` and `ringback get --curl`: shows the request of a job in full, or its callback as a curl
//! command. Plain `get` is in `job`.

use std::borrow::Cow;

use clap::Args;
use http::Method;
use ringback_core::job::{CallbackMethod, Context, JobKey, MASK, USER_AGENT, is_masked};
use ringback_core::written_time::parse_time;
use ringback_wire::{EffectiveSettings, INCLUDE_REQUEST, InspectedJob, RequestDetails};

use super::session::{Session, parse};
use crate::args::values::wrong;
use crate::args::{Format, Jobs, JobsArgs};
use crate::client::{Call, ClientError, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Post, View, job_details, note, request_details};

/// Headers that only an attempt has.
const OF_AN_ATTEMPT: &str = "webhook-timestamp and traceparent are left out: each attempt has its own";

/// How much of a job to show.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct InspectArgs {
    /// Show the whole job: URL, headers, context, body, and the settings that apply to it
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the callback as a curl command for a POSIX shell
    #[arg(long, conflicts_with = "full")]
    pub(crate) curl: bool,
}

/// The query parameter that adds requests to jobs.
pub(crate) fn include() -> (&'static str, String) {
    ("include", INCLUDE_REQUEST.to_owned())
}

pub(crate) fn call(key: &JobKey) -> Call {
    let mut call = Call::job(Method::GET, key, &[]);
    call.query.push(include());
    call
}

/// The details of a job, its request and the settings that apply to it; without a request, why there is none.
pub(crate) fn details(job: &InspectedJob, view: &View) -> String {
    let details = job_details(&job.job, view);
    match (&job.request, &job.effective) {
        (Some(request), Some(effective)) => {
            format!("{details}\n{}", request_details(request, effective, view.colour))
        }
        _ => format!("{details}\n{}\n", why_none(job)),
    }
}

/// Why the server's answer has no request of a job.
fn why_none(job: &InspectedJob) -> String {
    let state = &job.job.state;
    if matches!(state.as_str(), "done" | "cancelled") {
        return format!("its request is not stored any more, because it is {state}");
    }
    "the server does not show requests of jobs; check that it has the same version as `ringback --version`"
        .to_owned()
}

/// Prints a `curl` command that sends the same request as the callback of a job, and notes what is left out or masked.
/// [`CommandOutcome::No`] for a pull job, and if its request is not known. A usage error for many jobs, or with JSON.
pub(crate) async fn curl(session: &mut Session, jobs: &JobsArgs) -> anyhow::Result<CommandOutcome> {
    let Jobs::One(key) = jobs.jobs()? else {
        return Err(wrong("--curl prints the callback of one job; name one".to_owned()).into());
    };
    if session.out.format == Format::Json {
        let why = "--curl prints a command for a shell; leave out --output json, or use --full for JSON";
        return Err(wrong(why.to_owned()).into());
    }
    let body = session.client.ask(call(&key), SHORT).await?.body;
    let job: InspectedJob = parse(&body)?;
    let (Some(request), Some(effective)) = (&job.request, &job.effective) else {
        note(&format!("{key}: {}", why_none(&job)));
        return Ok(CommandOutcome::No);
    };
    let Some(url) = &request.url else {
        note(&format!(
            "{key} is a pull job: it has no URL and no callback; `ringback reserve {}` gives it to a consumer",
            key.topic
        ));
        return Ok(CommandOutcome::No);
    };
    let (body, content_type) = delivered(request)?;
    let method = request.method.as_deref();
    let post = Post { method, url, headers: headers(&key, &job, request, effective, content_type)?, body };
    session.out.bytes(post.command().as_bytes())?;
    session.out.note(OF_AN_ATTEMPT)?;
    let masked = post.headers.iter().filter(|(name, value)| is_masked(name, value));
    let masked: Vec<_> = masked.map(|(name, _)| name.as_str()).collect();
    if !masked.is_empty() {
        session.out.note(&format!("masked: {}; put the value in place of {MASK}", masked.join(", ")))?;
    }
    Ok(CommandOutcome::Done)
}

fn delivered(request: &RequestDetails) -> Result<(Cow<'_, [u8]>, &str), ClientError> {
    request.delivered_body().map_err(|error| ClientError::Unreadable(format!("body_base64: {error}")))
}

/// The headers of the attempt that is under way, or else of the next one, except those that differ in each attempt.
/// Fails if the job's time of creation cannot be read.
fn headers(
    key: &JobKey,
    job: &InspectedJob,
    request: &RequestDetails,
    effective: &EffectiveSettings,
    content_type: &str,
) -> Result<Vec<(String, String)>, ClientError> {
    let job = &job.job;
    let created = parse_time(&job.created_at);
    let created = created.map_err(|_| ClientError::Unreadable(format!("created_at: {}", job.created_at)))?;
    let attempt = if job.state == "reserved" { job.attempts } else { job.attempts.saturating_add(1) };
    let has_body =
        request.method.as_deref().and_then(|name| name.parse().ok()).is_none_or(CallbackMethod::has_body);
    let of_job = [
        ("content-type", content_type.to_owned()),
        ("user-agent", USER_AGENT.to_owned()),
        ("webhook-id", key.locator().webhook_id(created)),
        ("ringback-topic", key.topic.to_string()),
        ("ringback-job-id", key.id.to_string()),
        ("ringback-attempt", attempt.to_string()),
        ("ringback-due-at", job.due_at.clone()),
    ];
    let is_sent = |(name, _): &(&str, String)| has_body || *name != "content-type";
    let of_job = of_job.into_iter().filter(is_sent).map(|(name, value)| (name.to_owned(), value));
    let context = request.context.iter().map(|(name, value)| (Context::header(name), value.to_owned()));
    let own = effective.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(of_job.chain(context).chain(own).collect())
}
