//! `ringback submit`: submits one job, made from flags or given as JSON.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use http::{Method, StatusCode};
use ringback_core::job::MAX_JOB;
use ringback_core::wire::{JobAnswer, Problem};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::session::Session;
use crate::args::{Cli, Format, Pair, Retry, SubmitArgs, Wait};
use crate::client::{Answer, Call, ClientError, SHORT};
use crate::failure::Verdict;
use crate::output::{job_details, note};

pub(crate) async fn run(session: &mut Session, args: SubmitArgs) -> anyhow::Result<Verdict> {
    let job = match &args.file {
        Some(path) => read(path)?.into(),
        None => from_flags(args)?,
    };
    let call = Call { body: Some(("application/json", job)), ..Call::new(Method::POST, &["v1", "jobs"]) };
    let Answer { status, body } = session.client.ask(call, SHORT).await?;
    let verdict = session.print(&body, |job: &JobAnswer, view| job_details(job, view.now, view.colour))?;
    if status == StatusCode::OK && session.out.format == Format::Table {
        note("the same job was accepted before: nothing changed");
    }
    Ok(verdict)
}

/// The fields of a submit that have flags.
#[derive(Serialize)]
struct Job {
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "pairs")]
    headers: Vec<Pair>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "pairs")]
    context: Vec<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttr: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_dead: Option<String>,
}

fn pairs<S: Serializer>(pairs: &[Pair], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for Pair(name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

fn from_flags(args: SubmitArgs) -> anyhow::Result<Bytes> {
    let bytes = match (args.body, args.body_file) {
        (Some(text), _) => Some(text.into_bytes()),
        (None, Some(path)) => Some(read(&path)?),
        (None, None) => None,
    };
    let (body, body_base64) = match (bytes, &args.content_type) {
        (Some(bytes), Some(_)) => (None, Some(STANDARD.encode(bytes))),
        (Some(bytes), None) => (Some(json(bytes)?), None),
        (None, _) => (None, None),
    };
    let job = Job {
        topic: args.topic,
        id: args.id,
        delay: args.delay.map(|Wait(value)| value),
        at: args.at,
        url: args.url,
        body,
        body_base64,
        content_type: args.content_type,
        headers: args.header,
        context: args.context,
        retry: args.retry.map(|Retry(value)| value),
        timeout: args.timeout.map(|Wait(value)| value),
        ttr: args.ttr.map(|Wait(value)| value),
        on_dead: args.on_dead,
    };
    Ok(serde_json::to_vec(&job)?.into())
}

/// Parses a body without a content type, which must be JSON.
fn json(bytes: Vec<u8>) -> Result<Box<RawValue>, clap::Error> {
    let parsed = String::from_utf8(bytes).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
    parsed.map_err(|why| {
        let text = format!(
            "the body is not JSON: {why}\n\nWrite JSON, such as --body '{{\"status\":\"PAID\"}}' or --body '\"text\"', \
            or give its type, such as --content-type text/plain"
        );
        Cli::command().error(ErrorKind::ValueValidation, text)
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
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    fn job(line: &[&str]) -> anyhow::Result<String> {
        let words = ["ringback", "submit", "--topic", "t", "--url", "http://h/"].iter().chain(line);
        match Cli::try_parse_from(words)?.command {
            Command::Submit(args) => Ok(String::from_utf8(from_flags(*args)?.to_vec())?),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_become_the_fields_of_a_submit() {
        let all = job(&[
            "--id",
            "i",
            "--delay",
            "10m",
            "--body",
            "{\"b\": 1.0e5}",
            "--header",
            "x-a: 1:2",
            "--header",
            "x-b:",
            "--context",
            "k=v=w",
            "--retry",
            "15s, 3m",
            "--timeout",
            "0.5",
            "--on-dead",
            "http://h/dead",
        ]);
        let expected = r#"{"topic":"t","id":"i","delay":"10m","url":"http://h/","body":{"b": 1.0e5},"headers":{"x-a":"1:2","x-b":""},"context":{"k":"v=w"},"retry":{"delays":["15s","3m"]},"timeout":0.5,"on_dead":"http://h/dead"}"#;
        assert_eq!(all.unwrap(), expected);
        let preset = job(&["--retry", "none", "--at", "2026-11-20T09:30:00Z"]).unwrap();
        let expected =
            r#"{"topic":"t","at":"2026-11-20T09:30:00Z","url":"http://h/","retry":{"preset":"none"}}"#;
        assert_eq!(preset, expected);
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
