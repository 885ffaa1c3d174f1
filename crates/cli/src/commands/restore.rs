//! `ringback restore`: checks a whole backup, then puts its credentials, pauses its destinations, sets the policies and
//! pauses of its topics, imports its jobs, and puts its schedules, each by a file of its own. What the installation has
//! already stays as it is, so a run that ended early can be run again.

mod batches;
mod credentials;
mod destinations;
mod policies;
mod present_topics;
mod results;
mod schedules;
mod topics;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ringback_core::crash_point;
use ringback_core::job::Tenant;

use self::batches::Batches;
use self::policies::Secrets;
use self::present_topics::present;
use self::results::{Restored, Results};
use super::call_retries::PatientCalls;
use super::import::{self, Tally, feed, read_on_a_thread};
use super::session::Session;
use crate::args::{Format, values};
use crate::backup_file::{Damage, Lines};
use crate::client::ClientError;
use crate::failure::{self, CommandOutcome, Unfinished};
use crate::progress::Progress;

/// The bytes of the read buffer.
const BUFFER: usize = 256 * 1024;

const RESTORE_EXAMPLES: &str = "\
Examples:
  ringback restore ringback.backup
  gunzip -c ringback.backup.gz | ringback restore - --server http://other:7411

The whole backup is checked before anything is changed. Running the same restore again does no harm: what is there \
already counts as repeated. A job or a policy that is there with other content stays as it is, is reported, and makes \
the exit code 1. Signing secrets, secret headers of policies and credentials are sealed in a backup: the installation needs the master keys that sealed them, or \
--without-secrets.

What belongs to a tenant is restored for that tenant. With the root key that is everything; --tenant restores what \
belongs to one.";

/// The backup to restore.
#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// File that `ringback backup` wrote; - is standard input
    pub(crate) file: PathBuf,
    /// How long to retry while the server does not answer
    #[arg(long = "patience", value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub(crate) retry_for: Duration,
    /// Leave sealed secrets and secret headers of topics and credentials out, if their master keys are lost: each topic
    /// keeps the secrets that it has
    #[arg(long)]
    pub(crate) without_secrets: bool,
}

pub(crate) async fn run(session: &mut Session, args: RestoreArgs) -> anyhow::Result<CommandOutcome> {
    let name = match args.file.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => args.file.display().to_string(),
    };
    let mut file = open(&args.file).with_context(|| name.clone())?;
    let Session { client, out, tenant } = session;
    let (length, mut owners) = check(&mut file).map_err(|damage| refusal(&name, damage))?;
    let chosen = Chosen(tenant.clone());
    owners.retain(|owner| chosen.has(owner.as_ref()));
    if let (Some(tenant), true) = (tenant, owners.is_empty()) {
        let what = format!("{name} has nothing of tenant {tenant}, and nothing was changed");
        let next = "leave out --tenant and RINGBACK_TENANT to restore everything that it has".to_owned();
        return Err(Unfinished { what, next }.into());
    }
    crash_point!("restore.after_check");
    let progress = Progress::new("restored", Some(length));
    let calls = PatientCalls { client, retry_for: args.retry_for, progress: &progress };
    let mut restored = Restored::default();
    let secrets = if args.without_secrets { Secrets::LeftOut } else { Secrets::Restored };
    let plan = Plan { chosen, owners, secrets, format: out.format };
    let stopped = restore(calls, file, name, plan, &mut restored).await;
    progress.clear();
    restored.complete = stopped.is_ok();
    restored.print(out)?;
    out.flush()?;
    let refused = restored.credentials.refused
        + restored.topics.refused
        + restored.jobs.refused
        + restored.schedules.refused;
    match stopped {
        Ok(()) if refused == 0 => Ok(CommandOutcome::Done),
        Ok(()) => {
            if out.format == Format::Table {
                progress.note(
                    "next: everything else is restored, and what was refused stays as it is there; compare it with \
                    `ringback get` and `ringback topic`",
                );
            }
            Ok(CommandOutcome::No)
        }
        Err(error) => {
            let fields = match error.downcast_ref() {
                Some(ClientError::Problem { problem, .. }) => {
                    format!("\n{}", failure::fields(problem).trim_end())
                }
                _ => String::new(),
            };
            let what = format!("the restore is not finished: {error:#}{}", fields.trim_end());
            Err(Unfinished { what, next: failure::again(&error, "restore", "what was restored") }.into())
        }
    }
}

/// The query parameter that makes a server accept URLs of a backup to which no client could send.
fn from_backup() -> (&'static str, String) {
    ("from", "backup".to_owned())
}

/// Opens a backup. Standard input, `-`, is copied to a nameless file first, because a backup is read several times.
fn open(path: &Path) -> io::Result<File> {
    if path != Path::new("-") {
        return File::open(path);
    }
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// The owners of lines: tenants, and `None` for what belongs to none.
type Owners = BTreeSet<Option<Tenant>>;

/// Whose lines are restored: those of a tenant, or all.
#[derive(Clone, Debug)]
struct Chosen(Option<Tenant>);

impl Chosen {
    fn has(&self, owner: Option<&Tenant>) -> bool {
        self.0.is_none() || self.0.as_ref() == owner
    }
}

/// How a backup is restored.
struct Plan {
    chosen: Chosen,
    /// The owners of the lines that are restored.
    owners: Owners,
    secrets: Secrets,
    format: Format,
}

/// Reads the whole backup and checks it. Returns its length and the owners of its lines. Rewinds the file.
fn check(file: &mut File) -> Result<(u64, Owners), Damage> {
    let (_, mut lines) = Lines::open(BufReader::with_capacity(BUFFER, &mut *file))?;
    let mut owners = Owners::new();
    while let Some(line) = lines.next()? {
        if !owners.contains(&line.tenant) {
            owners.insert(line.tenant);
        }
    }
    let length = lines.bytes();
    file.rewind()?;
    Ok((length, owners))
}

fn refusal(name: &str, damage: Damage) -> anyhow::Error {
    let next = match damage {
        Damage::NoHeader => {
            "name a file that `ringback backup` wrote; `ringback import` takes exports and other jobs"
        }
        Damage::OtherFormat(_) | Damage::UnknownKind(_) => "use the version that wrote it",
        Damage::Io(_) => "make it readable and run the same restore again",
        Damage::Encoding(_)
        | Damage::CutOff(_)
        | Damage::NoLine(_)
        | Damage::TooLong(_)
        | Damage::WrongPlace(_)
        | Damage::WrongCounts
        | Damage::WrongChecksum => "use another copy of it, or an earlier backup",
    };
    let damage = anyhow::Error::from(damage);
    let what = format!("{name} cannot be restored, and nothing was changed: {damage:#}");
    Unfinished { what, next: next.to_owned() }.into()
}

/// Restores the credentials, the paused destinations, the topics and then the jobs, so that no job is sent before its
/// pause and its policy are there; and the schedules last. Stops at the first error, with the results so far in
/// `restored`.
async fn restore(
    calls: PatientCalls<'_>,
    mut file: File,
    name: String,
    plan: Plan,
    restored: &mut Restored,
) -> anyhow::Result<()> {
    let reader = BufReader::with_capacity(BUFFER, &mut file);
    // This also finds out whether the key is for all whose lines are restored, before anything is changed.
    let present = present(calls, &plan.owners).await?;
    credentials::restore(calls, reader, &plan, &mut restored.credentials).await?;
    file.rewind().with_context(|| name.clone())?;
    let reader = BufReader::with_capacity(BUFFER, &mut file);
    destinations::restore(calls, reader, &plan, &mut restored.destinations).await?;
    file.rewind().with_context(|| name.clone())?;
    let reader = BufReader::with_capacity(BUFFER, &mut file);
    topics::restore(calls, reader, &plan, &present, &mut restored.topics).await?;
    crash_point!("restore.after_topics");
    file.rewind().with_context(|| name.clone())?;
    let again = file.try_clone().with_context(|| name.clone())?;
    let batches = Batches::new(BufReader::with_capacity(BUFFER, file), plan.chosen.clone());
    let batches = batches.map(move |batch| batch.with_context(|| name.clone()));
    let mut tally = Tally::new(plan.format);
    let stopped = feed(calls, read_on_a_thread(batches), &mut tally).await;
    crash_point!("restore.after_jobs");
    let import::Counts { lines, created, repeated, refused, .. } = tally.counts();
    restored.jobs = Results { lines, created, repeated, refused };
    stopped?;
    let mut file = again;
    file.rewind().context("the backup cannot be read again")?;
    let reader = BufReader::with_capacity(BUFFER, file);
    schedules::restore(calls, reader, &plan, &mut restored.schedules).await
}
