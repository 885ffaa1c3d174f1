//! The definitions of the command line: commands, flags and their help. Values are checked here, before a request is
//! sent.

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

pub(crate) use self::dead::{DeadCommand, DeadListArgs, DeadPurgeArgs, DeadReviveArgs, RedriveArgs};
pub(crate) use self::policy::{DeleteArgs, PolicyCommand, SetArgs};
pub(crate) use self::pull::{BuryArgs, ReceiptArgs, ReleaseArgs, RenewArgs, ReserveArgs, RetryArgs};
pub(crate) use self::submit::SubmitArgs;
pub(crate) use self::topics::{TopicArgs, TopicsArgs};
pub(crate) use self::up::UpArgs;
pub(crate) use self::values::{Pair, Retry, Wait};
pub(crate) use self::watch::{WatchArgs, Watched};

/// The meaning of the exit codes, at the end of `--help`.
const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 refused or not found (no such job or topic, the topic and id belong to another job, the job's state forbids it, a watched job is dead or cancelled, some lines of an import were refused, an audit has findings that are not repaired); \
2 failure (server unreachable, server error, file error); 64 wrong usage.

`ringback help COMMAND` shows examples of a command.";

/// Run Ringback, or call its HTTP API from a shell
#[derive(Debug, Parser)]
#[command(name = "ringback", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The server, and the format of the output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server and output")]
pub(crate) struct Remote {
    /// URL of the API
    #[arg(long, global = true, env = "RINGBACK_URL", value_name = "URL",
        default_value = "http://127.0.0.1:7411", value_parser = values::server)]
    pub(crate) server: Url,
    /// Output format: table for people, json for scripts (the API's JSON, unchanged)
    #[arg(long, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // The flag describes them: descriptions here make every help text longer.
    Table,
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a complete Ringback in one process: API, carrier and notifier on one store
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArgs),
    /// Submit a job
    Submit(Box<SubmitArgs>),
    /// Submit jobs from a file with one JSON job per line, or restore an export
    Import(ImportArgs),
    /// Export all pending and dead jobs, one JSON job per line
    Export(ExportArgs),
    /// Show a job
    #[command(after_help = GET_EXAMPLES)]
    Get(JobArgs),
    /// Show the recorded attempts of a job
    #[command(after_help = ATTEMPTS_EXAMPLES)]
    Attempts(JobArgs),
    /// Change the due time of a delayed job
    Reschedule(RescheduleArgs),
    /// Make a delayed job due now
    #[command(after_help = RUN_EXAMPLES)]
    Run(JobArgs),
    /// Make a dead job due again
    #[command(after_help = REVIVE_EXAMPLES)]
    Revive(JobArgs),
    /// Cancel a job
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(JobArgs),
    /// List pending and dead jobs
    List(ListArgs),
    /// List, purge or redrive the dead jobs of a topic
    #[command(subcommand, after_help = DEAD_EXAMPLES)]
    Dead(DeadCommand),
    /// Set topic defaults
    #[command(subcommand, after_help = policy::EXAMPLES)]
    Policy(PolicyCommand),
    /// Reserve pull jobs (jobs without a URL)
    Reserve(ReserveArgs),
    /// Mark a reserved job as done
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Finish(ReceiptArgs),
    /// Record a failure of a reserved job: it is retried later, or dead after the last retry
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Retry(RetryArgs),
    /// Extend the lease of a reserved job
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Renew(RenewArgs),
    /// Make a reserved job dead
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Bury(BuryArgs),
    /// Release a reserved job without recording a failure
    #[command(after_help = pull::RECEIPT_EXAMPLES)]
    Release(ReleaseArgs),
    /// List topics with their number of jobs per state
    Topics(TopicsArgs),
    /// Show a topic
    #[command(after_help = topics::TOPIC_EXAMPLES)]
    Topic(TopicArgs),
    /// Stop delivering a topic
    #[command(after_help = topics::PAUSE_EXAMPLES)]
    Pause(TopicArgs),
    /// Resume delivering a paused topic
    #[command(after_help = topics::RESUME_EXAMPLES)]
    Resume(TopicArgs),
    /// Show the number of jobs per state, and how late deliveries were
    #[command(after_help = STATS_EXAMPLES)]
    Stats,
    /// Show events of jobs live
    Watch(WatchArgs),
    /// Check that no job is lost or miscounted, and repair that
    Audit(AuditArgs),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
}

const UP_EXAMPLES: &str = "\
Examples:
  ringback up
  ringback up --store embedded:/var/lib/ringback
  ringback up --store redis://127.0.0.1:6379 --concurrency 1024
  RINGBACK_LOG_FORMAT=json ringback up --api-listen 127.0.0.1:8411 --admin-listen 127.0.0.1:8412

Exit codes: 0 clean shutdown; 1 failure; 64 wrong settings; 130 or 143 after a second signal.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback get pay.notify/order-1
  ringback get pay.notify order-1 --output json | jq -r .state";

const ATTEMPTS_EXAMPLES: &str = "\
Examples:
  ringback attempts pay.notify/order-1
  ringback attempts pay.notify order-1 --output json | jq -r '.items[-1].answer'

By default Ringback records failed attempts, and the successful one of a job that needed several. The table shows the \
start of each response; --output json shows all that is recorded.";

const RUN_EXAMPLES: &str = "\
Examples:
  ringback run pay.notify/order-1

A job that is ready or in delivery stays unchanged, which is not an error.";

const REVIVE_EXAMPLES: &str = "\
Examples:
  ringback revive pay.notify/order-1
  ringback list --state dead --all --output json | jq -r '.topic + \"/\" + .id' |
      xargs -n 1 ringback revive

Its failures start at 0 again; the count of its attempts goes on.";

const CANCEL_EXAMPLES: &str = "\
Examples:
  ringback cancel pay.notify/order-1
  ringback cancel pay.notify order-1 && echo it will not be delivered";

const DEAD_EXAMPLES: &str = "\
Examples:
  ringback dead list pay.notify --reason exhausted
  ringback dead purge pay.notify order-1
  ringback dead revive pay.notify --rate 200

`ringback help dead COMMAND` shows examples of each command.";

const STATS_EXAMPLES: &str = "\
Examples:
  ringback stats
  ringback stats --output json | jq .states.dead";

const AUDIT_EXAMPLES: &str = "\
Examples:
  ringback audit
  ringback audit --repair
  ringback audit --output json | jq '.findings[]'

An audit can run while jobs are submitted and delivered, one at a time per API process. Exit codes: 0 no findings, or \
all are repaired; 1 findings remain.";

/// The options of an audit.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Restore missing index entries and correct counts; no job is removed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Time limit of the audit; the response comes only at its end
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

A job that waits for a retry can be rescheduled too, and keeps its failures. With a delay of 0 or a time in the past \
it is due now.";

/// A job and its new due time.
#[derive(Debug, Args)]
#[command(after_help = RESCHEDULE_EXAMPLES)]
pub(crate) struct RescheduleArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Delay from now: 10m, "1h 30m", 250ms, or a number of seconds
    #[arg(
        long,
        value_name = "DURATION",
        required_unless_present = "at",
        conflicts_with = "at",
        allow_hyphen_values = true
    )]
    pub(crate) delay: Option<Wait>,
    /// Due time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) at: Option<String>,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  ringback import jobs.ndjson
  ringback export | ringback import - --server http://other:7411
  ringback import jobs.ndjson --output json 2> refused.ndjson

A line is a job as `submit` takes it, or one that an export wrote. Running the same import again does no harm: jobs \
that exist already count as repeated.";

/// The file of an import.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// File with one JSON job per line; - is standard input
    pub(crate) file: PathBuf,
    /// How long to retry while the server does not answer
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::patience)]
    pub(crate) patience: Duration,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  ringback export -o jobs.ndjson
  ringback export --state dead --topic pay.notify | jq -r .reason | sort | uniq -c

A file is written as FILE.part and renamed when it is complete.";

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
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::patience)]
    pub(crate) patience: Duration,
}

const LIST_EXAMPLES: &str = "\
Examples:
  ringback list
  ringback list --topic pay.notify --state dead --all
  ringback list --all --output json | jq -r 'select(.failures > 3) | .id'";

/// The filter and the size of a list.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) page: Page,
}

/// The states of jobs that are listed and exported.
const PENDING_AND_DEAD: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// A filter of jobs.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only jobs of this topic
    #[arg(long, value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Only jobs in this state
    #[arg(long, value_parser = PENDING_AND_DEAD.map(State::name))]
    pub(crate) state: Option<String>,
}

impl Filter {
    /// The query of the request.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let topic = self.topic.clone().map(|topic| ("topic", topic));
        let state = self.state.clone().map(|state| ("state", state));
        topic.into_iter().chain(state).collect()
    }
}

/// The size of a list.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Page {
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// List all items, without a limit
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Page {
    /// The maximum number of items.
    pub(crate) fn limit(self) -> u64 {
        if self.all { u64::MAX } else { self.limit }
    }
}

/// One job, by topic and id.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Topic and id of the job, as TOPIC/ID or as two arguments
    #[arg(required = true, num_args = 1..=2, value_name = "TOPIC/ID")]
    name: Vec<String>,
}

impl JobArgs {
    /// The topic and the id.
    ///
    /// # Errors
    /// A usage error when they are not valid.
    pub(crate) fn key(&self) -> Result<JobKey, clap::Error> {
        values::job_key(&self.name)
    }
}

#[cfg(test)]
mod tests;
