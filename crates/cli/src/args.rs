//! What the command line is told: commands, flags and their help. Values are parsed here,
//! so that a slip is found before anything is sent.

mod dead;
mod policy;
mod pull;
mod submit;
mod topics;
mod up;
mod values;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use reqwest::Url;
use ringback_core::job::JobKey;
use ringback_core::state::State;

pub(crate) use self::dead::{DeadCommand, DeadListArgs, DeadPurgeArgs, DeadReviveArgs, RevivalArgs};
pub(crate) use self::policy::{DeleteArgs, PolicyCommand, SetArgs};
pub(crate) use self::pull::{BuryArgs, ReceiptArgs, ReleaseArgs, RenewArgs, ReserveArgs, RetryArgs};
pub(crate) use self::submit::SubmitArgs;
pub(crate) use self::topics::{TopicArgs, TopicsArgs};
pub(crate) use self::up::UpArgs;
pub(crate) use self::values::{Pair, Retry, Wait};
pub(crate) use self::watch::{WatchArgs, Watched};

/// What every exit code says, at the end of `--help`.
const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the answer is no (no such job or topic, another job has the name, the job's state forbids it, a watched job is dead or cancelled, some lines refused, an audit has found something that is not repaired); \
2 it could not be done (server away, a fault of the server, a file); 64 wrong usage.

`ringback help COMMAND` shows the examples of a command.";

/// Run Ringback, or do from a shell what its HTTP API does
#[derive(Debug, Parser)]
#[command(name = "ringback", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which server is asked, and how its answers are shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server and output")]
pub(crate) struct Remote {
    /// The API's URL
    #[arg(long, global = true, env = "RINGBACK_URL", value_name = "URL",
        default_value = "http://127.0.0.1:7411", value_parser = values::server)]
    pub(crate) server: Url,
    /// table for people; json for scripts: the API's JSON as it is
    #[arg(long, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// How answers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // Described where the flag is: descriptions here make the whole help longer.
    Table,
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole Ringback in this process: api, carrier and notifier on one store
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArgs),
    /// Submit a job
    Submit(Box<SubmitArgs>),
    /// Submit many jobs from a file of one JSON job per line, or take back an export
    Import(ImportArgs),
    /// Write all pending and dead jobs out, one JSON job per line
    Export(ExportArgs),
    /// Look at a job
    #[command(after_help = GET_EXAMPLES)]
    Get(JobArgs),
    /// Look at a job's last attempts
    #[command(after_help = ATTEMPTS_EXAMPLES)]
    Attempts(JobArgs),
    /// Give a delayed job another due time
    Reschedule(RescheduleArgs),
    /// Make a delayed job due now
    #[command(after_help = RUN_EXAMPLES)]
    Run(JobArgs),
    /// Hand a dead job over again
    #[command(after_help = REVIVE_EXAMPLES)]
    Revive(JobArgs),
    /// Cancel a job
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(JobArgs),
    /// List jobs
    List(ListArgs),
    /// List, purge or revive the dead jobs of a topic
    #[command(subcommand, after_help = DEAD_EXAMPLES)]
    Dead(DeadCommand),
    /// Say what a topic's jobs do not say themselves
    #[command(subcommand, after_help = policy::EXAMPLES)]
    Policy(PolicyCommand),
    /// Reserve jobs that have no URL
    Reserve(ReserveArgs),
    /// Say that a reserved job is done
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Finish(ReceiptArgs),
    /// Say that a reserved job failed: again later, dead after the last tier
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Retry(RetryArgs),
    /// Keep a reserved job for longer
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Renew(RenewArgs),
    /// Give a reserved job up: it is dead
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Bury(BuryArgs),
    /// Give a reserved job back, without a failure
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Release(ReleaseArgs),
    /// List topics with their jobs by state
    Topics(TopicsArgs),
    /// Look at a topic
    #[command(after_help = topics::TOPIC_EXAMPLES)]
    Topic(TopicArgs),
    /// Hand nothing of a topic over any more
    #[command(after_help = topics::PAUSE_EXAMPLES)]
    Pause(TopicArgs),
    /// Hand a paused topic over again
    #[command(after_help = topics::RESUME_EXAMPLES)]
    Resume(TopicArgs),
    /// Count jobs by state, and show how late hand-overs were
    #[command(after_help = STATS_EXAMPLES)]
    Stats,
    /// Show what happens to jobs while it happens
    Watch(WatchArgs),
    /// Look whether any job is lost or miscounted, and repair that
    Audit(AuditArgs),
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

const UP_EXAMPLES: &str = "\
Examples:
  ringback up
  ringback up --store embedded:/var/lib/ringback
  ringback up --store redis://127.0.0.1:6379 --concurrency 1024
  RINGBACK_LOG_FORMAT=json ringback up --api-listen 127.0.0.1:8411 --admin-listen 127.0.0.1:8412

Exit codes: 0 after a clean shutdown; 1 it failed; 64 wrong settings; 130 or 143 after a second signal.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback get pay.notify/order-1
  ringback get pay.notify order-1 --output json | jq -r .state";

const ATTEMPTS_EXAMPLES: &str = "\
Examples:
  ringback attempts pay.notify/order-1
  ringback attempts pay.notify order-1 --output json | jq -r '.items[-1].answer'

By default those that failed, and the success of a job that needed more than one. The table shows the start \
of an answer; --output json shows all that is kept.";

const RUN_EXAMPLES: &str = "\
Examples:
  ringback run pay.notify/order-1

A job that is ready or being handed over is left as it is, and that is no error.";

const REVIVE_EXAMPLES: &str = "\
Examples:
  ringback revive pay.notify/order-1
  ringback list --state dead --all --output json | jq -r '.topic + \"/\" + .id' |
      xargs -n 1 ringback revive

Its failures are counted anew, and its attempts go on.";

const CANCEL_EXAMPLES: &str = "\
Examples:
  ringback cancel pay.notify/order-1
  ringback cancel pay.notify order-1 && echo it will not be handed over any more";

const DEAD_EXAMPLES: &str = "\
Examples:
  ringback dead list pay.notify --reason exhausted
  ringback dead purge pay.notify order-1
  ringback dead revive pay.notify --rate 200

`ringback help dead COMMAND` shows more of each.";

const STATS_EXAMPLES: &str = "\
Examples:
  ringback stats
  ringback stats --output json | jq .states.dead";

const AUDIT_EXAMPLES: &str = "\
Examples:
  ringback audit
  ringback audit --repair
  ringback audit --output json | jq '.findings[]'

It may run beside anything, one at a time for each API process. Exit codes: 0 where nothing is wrong, or \
everything was repaired; 1 where something is left.";

/// Whether to repair.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Lead to jobs again that nothing leads to, and put counts right; no job is removed
    #[arg(long)]
    pub(crate) repair: bool,
    /// How long to wait for the answer, which comes when all has been looked at
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::patience)]
    pub(crate) patience: Duration,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  ringback completions bash > ~/.local/share/bash-completion/completions/ringback
  ringback completions zsh > ~/.zfunc/_ringback
  ringback completions fish > ~/.config/fish/completions/ringback.fish";

const RESCHEDULE_EXAMPLES: &str = "\
Examples:
  ringback reschedule pay.notify/order-1 --delay 10m
  ringback reschedule pay.notify order-1 --at 2026-11-20T09:30:00Z

A job that waits for a retry can be rescheduled too, and keeps its failures. With 0, or a time in the past, \
it is due now.";

/// A job, and when it is to be due.
#[derive(Debug, Args)]
#[command(after_help = RESCHEDULE_EXAMPLES)]
pub(crate) struct RescheduleArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// How long from now: 10m, "1h 30m", 250ms, or seconds as a number
    #[arg(
        long,
        value_name = "DURATION",
        required_unless_present = "at",
        conflicts_with = "at",
        allow_hyphen_values = true
    )]
    pub(crate) delay: Option<Wait>,
    /// At which time, by RFC 3339
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) at: Option<String>,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  ringback import jobs.ndjson
  ringback export | ringback import - --server http://other:7411
  ringback import jobs.ndjson --output json 2> refused.ndjson

A line is a job as submitted, or one that an export wrote. To run the same import again does no harm: \
jobs that are there already count as repeated.";

/// What to import.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// A file of one JSON job per line; - is standard input
    pub(crate) file: PathBuf,
    /// How long to try again where the server does not answer
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::patience)]
    pub(crate) patience: Duration,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  ringback export -o jobs.ndjson
  ringback export --state dead --topic pay.notify | jq -r .reason | sort | uniq -c

A file is written as FILE.part and renamed once it is complete.";

/// What to export, and where to.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Where to; without it to standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How long to try again where the server does not answer at first
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::patience)]
    pub(crate) patience: Duration,
}

const LIST_EXAMPLES: &str = "\
Examples:
  ringback list
  ringback list --topic pay.notify --state dead --all
  ringback list --all --output json | jq -r 'select(.failures > 3) | .id'";

/// What to list.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// At most so many jobs
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// All jobs, however many
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

/// The states of what is listed and exported.
const PENDING_AND_DEAD: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// Which jobs.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only those of this topic
    #[arg(long, value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Only those in this state
    #[arg(long, value_parser = PENDING_AND_DEAD.map(State::name))]
    pub(crate) state: Option<String>,
}

impl Filter {
    /// As the query of a request.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let topic = self.topic.clone().map(|topic| ("topic", topic));
        let state = self.state.clone().map(|state| ("state", state));
        topic.into_iter().chain(state).collect()
    }
}

/// One job, by its name.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job's topic and id, as one word with a slash or as two
    #[arg(required = true, num_args = 1..=2, value_name = "TOPIC/ID")]
    name: Vec<String>,
}

impl JobArgs {
    /// The name.
    ///
    /// # Errors
    /// A usage error where it cannot be one.
    pub(crate) fn key(&self) -> Result<JobKey, clap::Error> {
        values::job_key(&self.name)
    }
}

#[cfg(test)]
mod tests;
