//! `ringback export`: writes the lines of jobs that the server streams to standard output or to a file. An incomplete
//! export never looks complete: a file gets its name only at the end, and a stream that ends early is an error.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::Method;
use reqwest::Response;

use super::call_retries::PatientCalls;
use super::partial_file::PartialFile;
use super::session::Session;
use crate::args::{Filter, values};
use crate::client::{Call, ClientError, cut_off};
use crate::failure::{CommandOutcome, Unfinished};
use crate::output::Output;
use crate::progress::Progress;

const EXPORT_EXAMPLES: &str = "\
Examples:
  ringback export -o jobs.ndjson
  ringback export --state dead --topic pay.notify | jq -r .reason | sort | uniq -c

A file gets its name only when it is complete.

With the root key it has the jobs of all tenants, with --tenant those of one.

An export has the values of secret headers, such as authorization, which are masked everywhere else: keep the file as \
safe as they are.";

/// The filter and the destination of an export.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// File to write [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How long to retry while the server does not answer; an export that has begun is not retried
    #[arg(long = "patience", value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub(crate) retry_for: Duration,
}

pub(crate) async fn run(session: &mut Session, args: ExportArgs) -> anyhow::Result<CommandOutcome> {
    let mut call = Call::new(Method::GET, &["v1", "export"]);
    call.query = args.filter.query();
    let progress = Progress::new("exported", None);
    let calls = PatientCalls { client: &session.client, retry_for: args.retry_for, progress: &progress };
    let answer = calls.open(&call, "exports").await?;
    let file = args.file.filter(|path| path != Path::new("-"));
    let done = match file {
        Some(path) => to_file(answer, &path, &progress).await,
        None => copy(answer, &mut Target::Stdout(&mut session.out), &progress).await,
    };
    progress.clear();
    done?;
    Ok(CommandOutcome::Done)
}

/// The destination of the lines.
enum Target<'a> {
    Stdout(&'a mut Output),
    File(PartialFile),
}

impl Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stdout(out) => out.bytes(bytes),
            Self::File(file) => file.write(bytes),
        }
    }
}

async fn to_file(answer: Response, path: &Path, progress: &Progress) -> anyhow::Result<()> {
    let mut target = Target::File(PartialFile::create(path)?);
    copy(answer, &mut target, progress).await.with_context(|| path.display().to_string())?;
    let Target::File(file) = target else { return Ok(()) };
    file.finish()?;
    progress.note(&format!("{} jobs exported to {}", progress.lines(), path.display()));
    Ok(())
}

/// Copies an answer to `target` until it ends. Fails if it breaks off, or does not end with the end of a line.
async fn copy(mut answer: Response, target: &mut Target<'_>, progress: &Progress) -> anyhow::Result<()> {
    let mut last = b'\n';
    loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) if last == b'\n' => return Ok(()),
            Ok(None) => {
                let error = ClientError::CutOff { why: "the last line has no end".to_owned() };
                return Err(incomplete(&error, progress));
            }
            Err(error) => return Err(incomplete(&cut_off(&error), progress)),
        };
        target.write(&chunk)?;
        last = chunk.last().copied().unwrap_or(last);
        let lines = chunk.iter().filter(|byte| **byte == b'\n').count();
        progress.advance(chunk.len() as u64, lines as u64);
    }
}

fn incomplete(error: &ClientError, progress: &Progress) -> anyhow::Error {
    progress.clear();
    let what = format!("the export is incomplete after {} jobs: {error}", progress.lines());
    Unfinished { what, next: "run it again from the start".to_owned() }.into()
}
