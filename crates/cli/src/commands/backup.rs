//! `ringback backup`: writes everything that an installation keeps into one file, while it runs. A job that exists from
//! the beginning to the end is in it exactly once, and a backup that is not complete never looks complete.

mod sort;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::Method;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::crash_point;
use ringback_core::job::{Tenant, Topic};
use ringback_wire::StatsResponse;
use serde::Deserialize;

use self::sort::{Entry, Sorter};
use super::call_retries::PatientCalls;
use super::partial_file::PartialFile;
use super::session::{Session, parse};
use crate::args::{Format, values};
use crate::backup_file::{Header, Kind, Summary, Writer};
use crate::client::{Call, ClientError, SHORT};
use crate::failure::{CommandOutcome, Unfinished};
use crate::output::Output;
use crate::progress::Progress;
use crate::response_lines::ResponseLines;

const BACKUP_EXAMPLES: &str = "\
Examples:
  ringback backup ringback.backup
  ringback backup - | gzip > ringback.backup.gz
  ringback backup jobs.backup --server http://127.0.0.1:7411 && ringback restore jobs.backup --server http://other:7411

A backup has all pending and dead jobs, the policies and pauses of topics, paused destinations, credentials and schedules. With the root key it has those of all \
tenants, with --tenant those of one. FILE gets its name \
when the backup is complete; a file of that name is replaced.

It has the values of secret headers, such as authorization, so it is written with mode 0600: keep it as safe as they \
are. What is sealed in the store is sealed in it.";

/// The file of a backup.
#[derive(Debug, Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct BackupArgs {
    /// File to write; - is standard output
    pub(crate) file: PathBuf,
    /// How long to retry while the server does not answer; a stream that has begun is not retried
    #[arg(long = "patience", value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub(crate) retry_for: Duration,
}

pub(crate) async fn run(session: &mut Session, args: BackupArgs) -> anyhow::Result<CommandOutcome> {
    let progress = Progress::new("read", None);
    let Session { client, out, tenant } = session;
    let tenant = tenant.as_ref();
    let calls = PatientCalls { client, retry_for: args.retry_for, progress: &progress };
    let done = if args.file == Path::new("-") {
        let directory = std::env::temp_dir();
        save(calls, tenant, &directory, |bytes| out.bytes(bytes)).await.map(drop)
    } else {
        to_file(calls, tenant, &args.file, out).await
    };
    progress.clear();
    done?;
    Ok(CommandOutcome::Done)
}

async fn to_file(
    calls: PatientCalls<'_>,
    tenant: Option<&Tenant>,
    path: &Path,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut file = PartialFile::create(path)?;
    let directory = file.directory();
    let summary = save(calls, tenant, &directory, |bytes| file.write(bytes)).await?;
    crash_point!("backup.before_finish");
    file.finish()?;
    crash_point!("backup.after_finish");
    calls.progress.clear();
    match out.format {
        Format::Json => out.line(serde_json::to_string(&summary)?),
        Format::Table => {
            let [topics, jobs] = [Kind::Topic, Kind::Job].map(|kind| summary.count(kind));
            let of = tenant.map(|tenant| format!(" of tenant {tenant} alone")).unwrap_or_default();
            let schedules = match summary.count(Kind::Schedule) {
                0 => String::new(),
                count => format!(", {count} schedules"),
            };
            calls
                .progress
                .note(&format!("{jobs} jobs{schedules} and {topics} topics{of} saved to {}", path.display()));
            Ok(())
        }
    }
}

/// Reads everything that the key reaches, or that belongs to the tenant, and writes it in the order of a backup. Jobs
/// are sorted; temporary files in `directory` keep those that do not fit in memory.
async fn save(
    calls: PatientCalls<'_>,
    tenant: Option<&Tenant>,
    directory: &Path,
    write: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Summary> {
    let at = SystemClock.now().to_string();
    let stats = calls.ask(Call::new(Method::GET, &["v1", "stats"]), SHORT).await?;
    let store = parse::<StatsResponse>(&stats.body)?.store;
    let mut writer = Writer::begin(write, &Header::new(store.kind, store.layout, at, tenant))?;
    let mut credentials = lines(calls, &["v1", "export", "credentials"]).await?;
    while let Some(line) = credentials.next().await.map_err(|error| incomplete(&error, calls.progress))? {
        writer.line(Kind::Credential, &line)?;
    }
    let mut destinations = lines(calls, &["v1", "export", "destinations"]).await?;
    while let Some(line) = destinations.next().await.map_err(|error| incomplete(&error, calls.progress))? {
        writer.line(Kind::Destination, &line)?;
    }
    let mut topics = lines(calls, &["v1", "export", "topics"]).await?;
    while let Some(line) = topics.next().await.map_err(|error| incomplete(&error, calls.progress))? {
        writer.line(Kind::Topic, &line)?;
    }
    crash_point!("backup.after_topics");
    let spill = || format!("a temporary file in {}", directory.display());
    let mut jobs = lines(calls, &["v1", "export"]).await?;
    let mut sorter = Sorter::new(directory);
    while let Some(line) = jobs.next().await.map_err(|error| incomplete(&error, calls.progress))? {
        calls.progress.advance(line.len() as u64, 1);
        sorter.add(entry(line)?).with_context(spill)?;
    }
    for job in sorter.finish().with_context(spill)? {
        writer.line(Kind::Job, &job.with_context(spill)?.line)?;
    }
    let mut schedules = lines(calls, &["v1", "export", "schedules"]).await?;
    while let Some(line) = schedules.next().await.map_err(|error| incomplete(&error, calls.progress))? {
        writer.line(Kind::Schedule, &line)?;
    }
    writer.end()
}

async fn lines(calls: PatientCalls<'_>, path: &[&str]) -> Result<ResponseLines, ClientError> {
    let response = calls.open(&Call::new(Method::GET, path), "backups").await?;
    Ok(ResponseLines::new(response))
}

/// The fields by which jobs are sorted.
#[derive(Deserialize)]
struct Named {
    tenant: Option<String>,
    topic: String,
    id: Box<str>,
}

/// A line with the key by which it is sorted: its topic with the tenant, and its id.
fn entry(line: Bytes) -> Result<Entry, ClientError> {
    let Named { tenant, topic, id } = read(&line)?;
    let topic = topic_of(tenant, &topic)?;
    Ok(Entry { key: (topic.as_str().into(), id), line })
}

fn read<'a, T: Deserialize<'a>>(line: &'a Bytes) -> Result<T, ClientError> {
    serde_json::from_slice(line).map_err(|error| ClientError::Unreadable(error.to_string()))
}

fn topic_of(tenant: Option<String>, name: &str) -> Result<Topic, ClientError> {
    let tenant = tenant.map(|tenant| tenant.parse::<Tenant>()).transpose();
    let topic = tenant.and_then(|tenant| Ok(name.parse::<Topic>()?.of_tenant(tenant.as_ref())));
    topic.map_err(|error| ClientError::Unreadable(format!("a line names no topic of a tenant: {error}")))
}

fn incomplete(error: &ClientError, progress: &Progress) -> anyhow::Error {
    progress.clear();
    let what = format!("there is no backup: {error}, after {} jobs were read", progress.lines());
    Unfinished { what, next: "run it again from the start".to_owned() }.into()
}
