//! `ringback import`: reads a file of any size line by line and sends it in batches, four at a time. A line can be sent
//! again without harm, so failed batches are tried again, and a run that ended early can be run again.

mod line_id;
mod read;
mod send;
mod tally;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use ringback_core::crash_point;
use tokio::sync::mpsc;

use self::read::Batches;
pub(super) use self::read::{Batch, FULL, MAX_LINES};
use self::send::send;
pub(super) use self::tally::{Counts, Tally};
use super::call_retries::PatientCalls;
use super::session::Session;
use crate::args::values;
use crate::failure::{self, CommandOutcome, Unfinished};
use crate::progress::Progress;

/// The most requests in flight.
const IN_FLIGHT: usize = 4;
/// The bytes of the read buffer.
const BUFFER: usize = 256 * 1024;

const IMPORT_EXAMPLES: &str = "\
Examples:
  ringback import jobs.ndjson
  ringback export | ringback import - --server http://other:7411
  ringback import jobs.ndjson --output json 2> refused.ndjson

A line is a job as `submit` takes it, or one that an export wrote. With the root key it may name its tenant; with \
--tenant all are of that one. Running the same import again does no harm: jobs \
that exist already count as repeated.";

/// The file of an import.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// File with one JSON job per line; - is standard input
    pub(crate) file: PathBuf,
    /// How long to retry while the server does not answer
    #[arg(long = "patience", value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub(crate) retry_for: Duration,
}

pub(crate) async fn run(session: &mut Session, args: ImportArgs) -> anyhow::Result<CommandOutcome> {
    let (source, total) = open(&args.file)?;
    let progress = Progress::new("imported", total);
    let mut tally = Tally::new(session.out.format);
    let name = args.file.display().to_string();
    let batches = Batches::new(BufReader::with_capacity(BUFFER, source));
    let batches = read_on_a_thread(batches.map(move |batch| batch.with_context(|| name.clone())));
    let calls = PatientCalls { client: &session.client, retry_for: args.retry_for, progress: &progress };
    let stopped = feed(calls, batches, &mut tally).await;
    progress.clear();
    tally.print(&mut session.out, stopped.is_ok())?;
    match stopped {
        Ok(()) if tally.refused() == 0 => Ok(CommandOutcome::Done),
        Ok(()) => Ok(CommandOutcome::No),
        Err(error) => {
            session.out.flush()?;
            let what = format!("the import is not finished: {error:#}; {}", tally.how_far());
            Err(Unfinished { what, next: failure::again(&error, "import", "what was imported") }.into())
        }
    }
}

/// Opens a file or standard input. Also returns the length, which only a regular file has.
fn open(path: &Path) -> anyhow::Result<(Box<dyn Read + Send>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let metadata = file.metadata().with_context(name)?;
    let total = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(file), total))
}

/// Reads batches on a thread, one ahead of those that are sent. The thread is not joined, because a read of standard
/// input may never return.
pub(super) fn read_on_a_thread(
    batches: impl Iterator<Item = anyhow::Result<Batch>> + Send + 'static,
) -> mpsc::Receiver<anyhow::Result<Batch>> {
    let (tx, rx) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        for batch in batches {
            if tx.blocking_send(batch).is_err() {
                break;
            }
        }
    });
    rx
}

/// Sends all batches, four at a time, and adds their results to `tally`. At the first error of reading or sending it
/// starts no more, waits for the requests in flight, and returns that error.
pub(super) async fn feed(
    calls: PatientCalls<'_>,
    mut batches: mpsc::Receiver<anyhow::Result<Batch>>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let mut stopped = Ok(());
    let mut reading = true;
    let mut flying = FuturesUnordered::new();
    loop {
        tokio::select! {
            batch = batches.recv(), if reading && flying.len() < IN_FLIGHT => match batch {
                Some(Ok(batch)) => flying.push(send(calls, batch)),
                Some(Err(error)) => {
                    reading = false;
                    stopped = stopped.and(Err(error));
                }
                None => reading = false,
            },
            Some(sent) = flying.next(), if !flying.is_empty() => {
                crash_point!("import.after_batch");
                tally.add(&sent, calls.progress);
                if let Some(error) = sent.stopped {
                    reading = false;
                    stopped = stopped.and(Err(error.into()));
                }
            }
            else => return stopped,
        }
    }
}
