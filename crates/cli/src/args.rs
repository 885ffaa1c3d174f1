//! The definitions of the command line: commands, flags and their help. Values are checked here, before a request is
//! sent.

mod audit;
mod dead;
mod job;
mod list;
mod policy;
mod pull;
mod remote;
mod submit;
mod topics;
mod transfer;
mod up;
mod values;
mod watch;

use clap::{Parser, Subcommand};

pub(crate) use self::audit::AuditArgs;
pub(crate) use self::dead::{DeadCommand, DeadListArgs, DeadPurgeArgs, DeadReviveArgs, RedriveArgs};
pub(crate) use self::job::{JobArgs, RescheduleArgs};
pub(crate) use self::list::ListArgs;
pub(crate) use self::policy::{DeleteArgs, PolicyCommand, SetArgs};
pub(crate) use self::pull::{BuryArgs, ReceiptArgs, ReleaseArgs, RenewArgs, ReserveArgs, RetryArgs};
pub(crate) use self::remote::{Format, Remote};
pub(crate) use self::submit::SubmitArgs;
pub(crate) use self::topics::{TopicArgs, TopicsArgs};
pub(crate) use self::transfer::{ExportArgs, ImportArgs};
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
    #[command(after_help = job::GET_EXAMPLES)]
    Get(JobArgs),
    /// Show the recorded attempts of a job
    #[command(after_help = job::ATTEMPTS_EXAMPLES)]
    Attempts(JobArgs),
    /// Change the due time of a delayed job
    Reschedule(RescheduleArgs),
    /// Make a delayed job due now
    #[command(after_help = job::RUN_EXAMPLES)]
    Run(JobArgs),
    /// Make a dead job due again
    #[command(after_help = job::REVIVE_EXAMPLES)]
    Revive(JobArgs),
    /// Cancel a job
    #[command(after_help = job::CANCEL_EXAMPLES)]
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

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  ringback completions bash > ~/.local/share/bash-completion/completions/ringback
  ringback completions zsh > ~/.zfunc/_ringback
  ringback completions fish > ~/.config/fish/completions/ringback.fish";

#[cfg(test)]
mod tests;
