//! The flags that say what a job delivers and how, shared by `ringback submit` and `ringback schedule set`; and reading
//! bodies and JSON from files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use clap::builder::PossibleValuesParser;
use http::StatusCode;
use ringback_core::encoding::{json_error, without_mark};
use ringback_core::job::{CallbackMethod, MAX_JOB};
use ringback_wire::Problem;
use serde_json::Value;
use serde_json::value::RawValue;
use strum::VariantNames as _;

use crate::args::help;
use crate::args::values::{self, Pair, RETRY, Retry, Wait};
use crate::client::ClientError;

/// What a job delivers, and how.
#[derive(Debug, Args)]
pub(crate) struct JobFields {
    #[arg(long, help = help::job("url"))]
    pub(crate) url: Option<String>,
    #[arg(long, help = help::job("method"), value_name = "METHOD",
        value_parser = PossibleValuesParser::new(CallbackMethod::VARIANTS))]
    pub(crate) method: Option<String>,
    /// Body: JSON, or any text together with --content-type
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// File with the body; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Media type of a body that is not JSON
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    #[arg(long, help = help::written(help::job("headers"), "May be repeated"), value_name = "NAME:VALUE",
        value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    #[arg(long, help = help::written(help::job("context"), "May be repeated"), value_name = "KEY=VALUE",
        value_parser = values::context)]
    pub(crate) context: Vec<Pair>,
    #[arg(long, help = help::written(help::job("retry"), RETRY), value_name = "DELAYS")]
    pub(crate) retry: Option<Retry>,
    #[arg(long, help = help::job("timeout"), value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    #[arg(long, help = help::job("expires"), value_name = "DURATION|TIME")]
    pub(crate) expires: Option<String>,
    #[arg(long, help = help::written(help::job("tags"), "May be repeated, at most 4"), value_name = "TAG",
        value_parser = values::tag)]
    pub(crate) tag: Vec<String>,
    #[arg(long, help = help::job("ttr"), value_name = "DURATION", conflicts_with = "url")]
    pub(crate) ttr: Option<Wait>,
    #[arg(long, help = help::job("on_dead"), value_name = "URL")]
    pub(crate) on_dead: Option<String>,
    #[arg(long, help = help::job("on_done"), value_name = "URL", conflicts_with = "ttr")]
    pub(crate) on_done: Option<String>,
}

impl JobFields {
    /// The fields with their values as JSON text; `None` for those that are not given.
    ///
    /// # Errors
    /// A usage error when the body is not JSON and has no content type; and when its file cannot be read or is too
    /// large.
    pub(crate) fn json(self) -> anyhow::Result<Vec<(&'static str, Option<String>)>> {
        let bytes = match (self.body, self.body_file) {
            (Some(text), _) => Some(text.into_bytes()),
            (None, Some(path)) => Some(read(&path)?),
            (None, None) => None,
        };
        let (body, body_base64) = match (bytes, &self.content_type) {
            (Some(bytes), Some(_)) => (None, Some(STANDARD.encode(bytes))),
            (Some(bytes), None) => (Some(parsed(without_mark(&bytes)?.to_vec())?), None),
            (None, _) => (None, None),
        };
        Ok(vec![
            ("url", text(self.url)),
            ("method", text(self.method)),
            ("body", body.map(|body| body.get().to_owned())),
            ("body_base64", text(body_base64)),
            ("content_type", text(self.content_type)),
            ("headers", pairs(&self.header)),
            ("context", pairs(&self.context)),
            ("retry", self.retry.map(|Retry(value)| value.to_string())),
            ("timeout", wait(self.timeout)),
            ("ttr", wait(self.ttr)),
            ("expires", text(self.expires)),
            ("tags", (!self.tag.is_empty()).then(|| Value::from(self.tag).to_string())),
            ("on_dead", text(self.on_dead)),
            ("on_done", text(self.on_done)),
        ])
    }
}

/// A text as JSON text.
pub(crate) fn text(text: Option<String>) -> Option<String> {
    text.map(|text| Value::from(text).to_string())
}

/// A duration as JSON text.
pub(crate) fn wait(wait: Option<Wait>) -> Option<String> {
    wait.map(|Wait(value)| value.to_string())
}

/// The text of a JSON object with the fields that have a value. Values are JSON text, since parsing a body would change
/// how its numbers are written.
pub(crate) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let field = |(name, value): (&str, Option<String>)| Some(format!("{}:{}", Value::from(name), value?));
    format!("{{{}}}", fields.into_iter().filter_map(field).collect::<Vec<_>>().join(","))
}

fn pairs(pairs: &[Pair]) -> Option<String> {
    let json = |value: &String| Some(Value::from(value.as_str()).to_string());
    (!pairs.is_empty()).then(|| object(pairs.iter().map(|Pair(name, value)| (name.as_str(), json(value)))))
}

/// Checks that a body without a content type is JSON, and keeps it as it is written. A usage error if it is not.
fn parsed(bytes: Vec<u8>) -> Result<Box<RawValue>, clap::Error> {
    let parsed = String::from_utf8(bytes).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|text| {
        let parsed = serde_json::from_str::<&RawValue>(&text).map(ToOwned::to_owned);
        parsed.map_err(|error| json_error(&text, &error))
    });
    parsed.map_err(|why| {
        let text = format!(
            "the body is not JSON: {why}\n\nWrite JSON, such as --body '{{\"status\":\"PAID\"}}' or --body '\"text\"', \
            or give its type, such as --content-type text/plain"
        );
        values::wrong(text)
    })
}

/// Reads a file, or standard input for `-`, without a byte order mark. Fails if it is larger than a job may be.
pub(super) fn read_json(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = read(path)?;
    Ok(without_mark(&bytes).with_context(|| path.display().to_string())?.to_vec())
}

/// Reads a file, or standard input for `-`. Fails with the problem of a 413 if it is larger than a job may be.
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
