//! `ringback submit`: submits one job, made from flags or given as JSON.

mod destination;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::{Method, StatusCode};
use ringback_core::job::MAX_JOB;
use ringback_core::wire::Problem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::session::{Session, parse};
use crate::args::Format;
use crate::args::values::{self, Pair, Retry, Wait};
use crate::client::{Call, ClientError, Reply, SHORT};
use crate::failure::Verdict;
use crate::output::{job_details, note};

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
  ringback submit job.json
  echo '{\"topic\":\"t\",\"url\":\"http://127.0.0.1:8080/hook\"}' | ringback submit -

Submitting the same topic and id with the same content again changes nothing and is not an error, unless the job was \
cancelled. With --if-exists replace or postpone the new job takes its place. A job without a URL, its own or its topic's, \
is a pull job.";

/// A job, made from flags or given as JSON.
#[derive(Debug, Args)]
#[command(
    after_help = SUBMIT_EXAMPLES,
    override_usage = "ringback submit [OPTIONS] --topic <TOPIC>\n       ringback submit [OPTIONS] <FILE>"
)]
pub(crate) struct SubmitArgs {
    /// File with one JSON job, as the API takes it; - is standard input
    #[arg(conflicts_with_all = ["topic", "id", "delay", "at", "url", "body", "body_file",
        "time_zone", "content_type", "header", "context", "retry", "timeout", "ttr", "on_dead", "if_exists", "max_delay"])]
    pub(crate) file: Option<PathBuf>,
    /// Topic of the job
    #[arg(long, required_unless_present = "file", value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Id of the job, unique in its topic [default: made by the server]
    #[arg(long, value_parser = values::id)]
    pub(crate) id: Option<String>,
    /// Delay until the job is due: 10m, "1h 30m", 250ms, or a number of seconds
    #[arg(long, value_name = "DURATION", conflicts_with = "at", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// Due time (RFC 3339), or a local time such as 2026-11-20T09:30 together with --time-zone
    #[arg(long, value_name = "TIME", value_parser = values::due_time)]
    pub(crate) at: Option<String>,
    /// Time zone of the due time, such as Europe/Berlin
    #[arg(long, value_name = "NAME", requires = "at")]
    pub(crate) time_zone: Option<String>,
    /// URL (http or https) to deliver the job to [default: that of the topic's policy, else a pull job that
    /// consumers reserve]
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Body: JSON, or any text together with --content-type
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// File with the body; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Media type of a body that is not JSON
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Header of the delivery; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    /// Context entry, delivered as the header ringback-context-KEY; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::context)]
    pub(crate) context: Vec<Pair>,
    /// Delays after each failure, such as "15s 3m 10m", or a preset: default, standard-webhooks, none
    #[arg(long, value_name = "DELAYS")]
    pub(crate) retry: Option<Retry>,
    /// Time limit of one attempt, 100ms to 10m [default: that of the topic, else 10s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    /// Lease of a pull job, 100ms to 12h; not with --url [default: that of the topic, else 30s]
    #[arg(long, value_name = "DURATION", conflicts_with = "url")]
    pub(crate) ttr: Option<Wait>,
    /// URL (http or https) for a dead-letter notice if the job dies
    #[arg(long, value_name = "URL")]
    pub(crate) on_dead: Option<String>,
    /// If a job has this topic and id: refuse leaves it as it is, replace takes its place, postpone too but
    /// not later than --max-delay [default: refuse]
    #[arg(long, value_name = "MODE", requires = "id")]
    pub(crate) if_exists: Option<IfExists>,
    /// How long after its first submit a job is due at the latest; only with --if-exists postpone
    #[arg(long, value_name = "DURATION", requires = "if_exists")]
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

/// The field `if_exists` of a job from a file. The server judges the others.
#[derive(Deserialize)]
struct Mode {
    if_exists: Option<IfExists>,
}

pub(crate) async fn run(session: &mut Session, args: SubmitArgs) -> anyhow::Result<Verdict> {
    let (job, if_exists): (Bytes, _) = match &args.file {
        Some(path) => {
            let job = read(path)?;
            let if_exists = serde_json::from_slice::<Mode>(&job).ok().and_then(|mode| mode.if_exists);
            (job.into(), if_exists)
        }
        None => {
            let if_exists = args.if_exists;
            (from_flags(args)?, if_exists)
        }
    };
    let has_url = destination::has_url(&job);
    let call = Call { body: Some(("application/json", job)), ..Call::new(Method::POST, &["v1", "jobs"]) };
    let Reply { status, body } = session.client.ask(call, SHORT).await?;
    let verdict = session.print(&body, job_details)?;
    if session.out.format == Format::Table {
        // The notes come after the job, also on a terminal.
        session.out.flush()?;
        if status == StatusCode::OK {
            note(match if_exists.unwrap_or(IfExists::Refuse) {
                IfExists::Refuse => "the same job was accepted before: nothing changed",
                IfExists::Replace => "it took the place of the job that had this topic and id",
                IfExists::Postpone => "it postponed the job that had this topic and id",
            });
        }
        if !has_url && let Some(destination) = destination::of(session, &parse(&body)?).await {
            note(&destination);
        }
    }
    Ok(verdict)
}

/// The JSON job that the flags describe.
fn from_flags(args: SubmitArgs) -> anyhow::Result<Bytes> {
    values::check_zone(args.at.as_deref(), args.time_zone.as_deref())?;
    if args.max_delay.is_some() && args.if_exists != Some(IfExists::Postpone) {
        return Err(values::wrong("--max-delay is only for --if-exists postpone".to_owned()).into());
    }
    let bytes = match (args.body, args.body_file) {
        (Some(text), _) => Some(text.into_bytes()),
        (None, Some(path)) => Some(read(&path)?),
        (None, None) => None,
    };
    let (body, body_base64) = match (bytes, &args.content_type) {
        (Some(bytes), Some(_)) => (None, Some(STANDARD.encode(bytes))),
        (Some(bytes), None) => (Some(parsed(bytes)?), None),
        (None, _) => (None, None),
    };
    let text = |text: Option<String>| text.map(|text| Value::from(text).to_string());
    let wait = |wait: Option<Wait>| wait.map(|Wait(value)| value.to_string());
    let job = object([
        ("topic", text(args.topic)),
        ("id", text(args.id)),
        ("delay", wait(args.delay)),
        ("at", text(args.at)),
        ("time_zone", text(args.time_zone)),
        ("url", text(args.url)),
        ("body", body.map(|body| body.get().to_owned())),
        ("body_base64", text(body_base64)),
        ("content_type", text(args.content_type)),
        ("headers", pairs(&args.header)),
        ("context", pairs(&args.context)),
        ("retry", args.retry.map(|Retry(value)| value.to_string())),
        ("timeout", wait(args.timeout)),
        ("ttr", wait(args.ttr)),
        ("on_dead", text(args.on_dead)),
        ("if_exists", args.if_exists.map(|mode| json!(mode).to_string())),
        ("max_delay", wait(args.max_delay)),
    ]);
    Ok(job.into())
}

/// A JSON object of the names and those values, as JSON, that are given. A parsed body would lose how its numbers are
/// written.
fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let field = |(name, value): (&str, Option<String>)| Some(format!("{}:{}", Value::from(name), value?));
    format!("{{{}}}", fields.into_iter().filter_map(field).collect::<Vec<_>>().join(","))
}

fn pairs(pairs: &[Pair]) -> Option<String> {
    let json = |value: &String| Some(Value::from(value.as_str()).to_string());
    (!pairs.is_empty()).then(|| object(pairs.iter().map(|Pair(name, value)| (name.as_str(), json(value)))))
}

/// Parses a body without a content type, which must be JSON.
fn parsed(bytes: Vec<u8>) -> Result<Box<RawValue>, clap::Error> {
    let parsed = String::from_utf8(bytes).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
    parsed.map_err(|why| {
        let text = format!(
            "the body is not JSON: {why}\n\nWrite JSON, such as --body '{{\"status\":\"PAID\"}}' or --body '\"text\"', \
            or give its type, such as --content-type text/plain"
        );
        values::wrong(text)
    })
}

/// Reads a file or standard input, up to the largest job that is allowed.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| path.display().to_string())?)
    };
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_JOB).unwrap_or(u64::MAX);
    source.take(most + 1).read_to_end(&mut bytes).with_context(|| path.display().to_string())?;
    if bytes.len() > MAX_JOB {
        let detail = format!(
            "{} has more than the {MAX_JOB} bytes that a job may have; for many jobs use `ringback import`",
            path.display()
        );
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail);
        return Err(ClientError::Problem { problem: Box::new(problem), retry_after: None }.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    fn job(line: &[&str]) -> anyhow::Result<String> {
        let words = ["submit", "--topic", "t", "--url", "http://h/"].iter().chain(line);
        let matches = SubmitArgs::augment_args(clap::Command::new("submit")).try_get_matches_from(words)?;
        Ok(String::from_utf8(from_flags(SubmitArgs::from_arg_matches(&matches)?)?.to_vec())?)
    }

    #[test]
    fn flags_become_the_fields_of_a_submit() {
        let all = "--id i --delay 10m --header x-b: --context k=v=w --timeout 0.5 --on-dead http://h/dead";
        let more = ["--body", "{\"b\": 1.0e5}", "--header", "x-a: 1:2", "--retry", "15s, 3m"];
        let all = job(&[&all.split(' ').collect::<Vec<_>>()[..], &more].concat());
        let expected = r#"{"topic":"t","id":"i","delay":"10m","url":"http://h/","body":{"b": 1.0e5},"headers":{"x-b":"","x-a":"1:2"},"context":{"k":"v=w"},"retry":{"delays":["15s","3m"]},"timeout":0.5,"on_dead":"http://h/dead"}"#;
        assert_eq!(all.unwrap(), expected);
        let preset = job(&["--retry", "none", "--at", "2026-11-20T09:30:00Z"]).unwrap();
        let expected =
            r#"{"topic":"t","at":"2026-11-20T09:30:00Z","url":"http://h/","retry":{"preset":"none"}}"#;
        assert_eq!(preset, expected);
        let local = job(&["--at", "2026-11-23T09:00", "--time-zone", "Europe/Berlin"]).unwrap();
        let expected =
            r#"{"topic":"t","at":"2026-11-23T09:00","time_zone":"Europe/Berlin","url":"http://h/"}"#;
        assert_eq!(local, expected);
    }

    #[test]
    fn a_local_time_needs_a_time_zone_and_a_time_zone_a_time() {
        let error = job(&["--at", "2026-11-23T09:00"]).unwrap_err().to_string();
        assert!(error.contains("--time-zone Europe/Berlin"), "{error}");
        assert!(job(&["--at", "2026-11-23T09:00[Europe/Berlin]"]).is_ok());
        let error = job(&["--time-zone", "Europe/Berlin"]).unwrap_err().to_string();
        assert!(error.contains("--at <TIME>"), "{error}");
    }

    #[test]
    fn a_submit_may_change_a_job_that_exists() {
        let postpone = ["--id", "i", "--if-exists", "postpone", "--max-delay", "5m"];
        let expected = r#"{"topic":"t","id":"i","url":"http://h/","if_exists":"postpone","max_delay":"5m"}"#;
        assert_eq!(job(&postpone).unwrap(), expected);
        let refused = |line: &[&str]| job(line).unwrap_err().to_string();
        assert!(refused(&postpone[2..]).contains("--id <ID>"), "{}", refused(&postpone[2..]));
        assert!(refused(&["--max-delay", "5m"]).contains("--if-exists <MODE>"));
        let replace = ["--id", "i", "--if-exists", "replace", "--max-delay", "5m"];
        assert!(refused(&replace).contains("only for --if-exists postpone"));
        assert!(refused(&["--id", "i", "--if-exists", "ignore"]).contains("refuse, replace, postpone"));
    }

    #[test]
    fn a_body_that_is_no_json_needs_a_content_type() {
        let error = job(&["--body", "hello"]).unwrap_err().to_string();
        assert!(error.contains("not JSON") && error.contains("--content-type text/plain"), "{error}");
        let text = job(&["--body", "hello", "--content-type", "text/plain"]).unwrap();
        assert_eq!(
            text,
            r#"{"topic":"t","url":"http://h/","body_base64":"aGVsbG8=","content_type":"text/plain"}"#
        );
    }
}
