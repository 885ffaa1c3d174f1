//! `ringback submit`: submits one job, made from flags or given as JSON, and prints it, with notes on the effect of a
//! repeated submit and on where a job without a URL goes.

mod destination;
mod flags;

use std::path::PathBuf;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::job_fields::{JobFields, read_json};
use super::session::{Session, parse};
use crate::args::values::{self, Wait};
use crate::args::{Format, help};
use crate::client::{Call, Reply, SHORT};
use crate::failure::CommandOutcome;
use crate::output::job_details;

/// The header of a key by which the server recognises a repeated submit.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const SUBMIT_EXAMPLES: &str = "\
Examples:
  ringback submit --topic pay.notify --id order-1 --delay 10m \\
      --url https://merchant.example/notify --body '{\"status\":\"PAID\"}'
  ringback submit --topic remind --at 2026-11-20T09:30:00Z --url http://127.0.0.1:8080/hook \\
      --header x-tenant:a7 --context key=value --retry '15s 3m 10m' --timeout 5s
  ringback submit --topic remind --at 2026-11-23T09:00 --time-zone Europe/Berlin \\
      --url http://127.0.0.1:8080/hook
  ringback submit --topic files --url http://127.0.0.1:8080/hook \\
      --content-type image/png --body-file a.png
  ringback submit --topic index --id page-7 --delay 30s --if-exists postpone --max-delay 5m \\
      --url http://127.0.0.1:8080/index
  ringback submit --topic orders --key order-7 --url http://127.0.0.1:8080/orders
  ringback submit --topic mail --idempotency-key 8e03978e-40d5 --url http://127.0.0.1:8080/mail
  ringback submit job.json
  echo '{\"topic\":\"t\",\"url\":\"http://127.0.0.1:8080/hook\"}' | ringback submit -

A submit with --id or --idempotency-key is safe to repeat: the same content again changes nothing, and is refused only if \
the job was cancelled. With --if-exists replace or postpone every submit counts, unless its --idempotency-key is that of \
the last one. A job that has no URL, neither its own nor its topic's, is a pull job.";

/// A job, made from flags or given as JSON.
#[derive(Debug, Args)]
#[command(
    after_help = SUBMIT_EXAMPLES,
    override_usage = "ringback submit [OPTIONS] --topic <TOPIC>\n       ringback submit [OPTIONS] <FILE>"
)]
pub(crate) struct SubmitArgs {
    /// File with one JSON job, as the API takes it; - is standard input
    #[arg(conflicts_with_all = ["topic", "id", "key", "delay", "at", "url", "body", "body_file",
        "time_zone", "method", "content_type", "header", "context", "retry", "timeout", "ttr", "expires", "on_dead", "on_done", "if_exists", "max_delay"])]
    pub(crate) file: Option<PathBuf>,
    #[arg(long, help = help::job("topic"), required_unless_present = "file", value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    #[arg(long, help = help::job("id"), value_parser = values::id)]
    pub(crate) id: Option<String>,
    #[arg(long, help = help::job("key"), value_parser = values::order_key)]
    pub(crate) key: Option<String>,
    /// Key that makes it safe to repeat this submit: instead of --id, which the server then derives from it, or
    /// beside --id with --if-exists replace or postpone
    #[arg(long, value_name = "KEY", value_parser = values::idempotency_key)]
    pub(crate) idempotency_key: Option<HeaderValue>,
    #[arg(long, help = help::written(help::job("delay"), "Such as 10m, \"1h 30m\", 250ms, or a number of seconds"),
        value_name = "DURATION", conflicts_with = "at", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    #[arg(long, help = help::written(help::job("at"), "RFC 3339, or a local time together with --time-zone"),
        value_name = "TIME", value_parser = values::due_time)]
    pub(crate) at: Option<String>,
    #[arg(long, help = help::written(help::job("time_zone"), "Such as Europe/Berlin"),
        value_name = "NAME", requires = "at")]
    pub(crate) time_zone: Option<String>,
    #[command(flatten)]
    pub(crate) fields: JobFields,
    #[arg(long, help = help::written(help::job("if_exists"),
        "With replace this one takes its place; with postpone too, due within --max-delay of its first submit"),
        value_name = "MODE", requires = "id")]
    pub(crate) if_exists: Option<IfExists>,
    #[arg(long, help = help::job("max_delay"), value_name = "DURATION", requires = "if_exists")]
    pub(crate) max_delay: Option<Wait>,
}

/// What a submit does to a job that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfExists {
    // The flag describes them: descriptions here make every help text longer.
    Refuse,
    Replace,
    Postpone,
}

/// The fields of a job that decide which notes are printed. The server checks all fields.
#[derive(Default, Deserialize)]
struct KeyFields {
    url: Option<IgnoredAny>,
    if_exists: Option<IfExists>,
}

impl KeyFields {
    fn of(job: &[u8]) -> Self {
        serde_json::from_slice(job).unwrap_or_default()
    }
}

pub(crate) async fn run(session: &mut Session, args: SubmitArgs) -> anyhow::Result<CommandOutcome> {
    let key = args.idempotency_key.clone();
    let job: Bytes = match &args.file {
        Some(path) => read_json(path)?.into(),
        None => flags::job(args)?,
    };
    let given = KeyFields::of(&job);
    let mut call = Call { body: Some(("application/json", job)), ..Call::new(Method::POST, &["v1", "jobs"]) };
    call.headers.extend(key.clone().map(|key| (IDEMPOTENCY_KEY, key)));
    let Reply { status, body } = session.client.ask(call, SHORT).await?;
    let outcome = session.print(&body, job_details)?;
    if session.out.format == Format::Table {
        if status == StatusCode::OK {
            session.out.note(&effect(given.if_exists, key.as_ref()))?;
        }
        if given.url.is_none()
            && let Some(destination) = destination::of(session, &parse(&body)?).await
        {
            session.out.note(&destination)?;
        }
    }
    Ok(outcome)
}

/// The note on what a submit did to the job that had its topic and id. With a key it is conditional, since the response
/// to a repetition looks the same.
fn effect(if_exists: Option<IfExists>, key: Option<&HeaderValue>) -> String {
    let effect = match if_exists {
        None | Some(IfExists::Refuse) => {
            return "the same job was accepted before: nothing changed".to_owned();
        }
        Some(IfExists::Replace) => "it took the place of the job that had this topic and id",
        Some(IfExists::Postpone) => "it postponed the job that had this topic and id",
    };
    match key {
        None => effect.to_owned(),
        Some(_) => format!("{effect}, unless this key was sent before: then nothing changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_url_is_none() {
        assert!(KeyFields::of(br#"{"topic":"t","url":"http://h/"}"#).url.is_some());
        for without in [&br#"{"topic":"t","url":null}"#[..], br#"{"topic":"t"}"#, b"[]", b"{"] {
            assert!(KeyFields::of(without).url.is_none());
        }
    }
}
