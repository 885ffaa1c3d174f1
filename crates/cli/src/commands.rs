//! The list of all commands with their help, and the dispatch to the file of a command, which has its arguments and
//! runs it. Values are checked before a request is sent.

mod archive;
mod attempts;
mod audit_log;
mod backup;
mod breaker;
mod bulk;
mod call_retries;
mod check;
mod compact;
mod consumer;
mod credential;
mod dead;
mod destinations;
mod each_job;
mod export;
mod forecast;
mod get_full;
mod history;
mod import;
mod job;
mod job_fields;
mod key;
mod limit;
mod list;
mod pages;
mod partial_file;
mod policy;
mod quota;
mod restore;
mod revive_follow;
mod schedule;
mod secret;
mod session;
mod stats;
mod submit;
mod topics;
mod usage;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::key::KeyCommand;
use self::secret::SecretCommand;
use self::session::Session;
use crate::access::Access;
use crate::args::{JobArgs, Remote, TopicArgs};
use crate::client::{Client, Trust};
use crate::failure::{self, CommandOutcome, report};
use crate::output::{Output, Times};
use crate::{listen, up};

/// The mode of files that contain secrets: only their owner reads and writes them.
const PRIVATE: u32 = 0o600;

/// The first steps and the meaning of the exit codes, at the end of `--help`.
const FIRST_STEPS: &str = "\
First steps, each in a terminal of its own:
  ringback up --demo     # Ringback, with a receiver that prints what is delivered
  ringback submit --topic demo --delay 2s --url http://127.0.0.1:8080/hook \\
      --body '{\"hello\":\"world\"}'

Exit codes:
  0   done
  1   refused, or the answer is no: there is no such job or topic, another job has
      the topic and id, the job's state forbids it, some of many jobs or lines
      were refused, a watched job is dead or cancelled, a check left findings
  2   failed: no server, an error of the server, a file that cannot be read or written
  64  wrong usage

`ringback help COMMAND` shows the flags of a command, and examples.";

/// Run Ringback, or call its HTTP API from a shell
#[derive(Debug, Parser)]
#[command(name = "ringback", version, after_help = FIRST_STEPS, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a complete Ringback in one process, with its jobs in ./ringback-data or on Redis
    #[command(after_help = UP_EXAMPLES)]
    Up(up::UpArgs),
    /// Receive deliveries, print and answer them: a receiver to try Ringback with
    Listen(listen::ListenArgs),
    /// Submit a job, to be delivered to a URL now or later
    Submit(Box<submit::SubmitArgs>),
    /// Submit jobs from a file with one JSON job per line, or restore an export
    Import(import::ImportArgs),
    /// Export all pending and dead jobs, one JSON job per line
    Export(export::ExportArgs),
    /// Save all jobs, schedules, policies and pauses in a file
    Backup(backup::BackupArgs),
    /// Restore a backup, into the same installation or another one
    Restore(restore::RestoreArgs),
    /// Show jobs
    #[command(after_help = job::GET_EXAMPLES)]
    Get(job::GetArgs),
    /// Show the last attempts of a job and what was answered
    #[command(after_help = attempts::ATTEMPTS_EXAMPLES)]
    Attempts(JobArgs),
    /// Change the due time of a delayed job, or of all that a filter fits
    Reschedule(job::RescheduleArgs),
    /// Make delayed jobs due now: named ones, or all that a filter fits
    #[command(after_help = job::RUN_EXAMPLES)]
    Run(bulk::NamedOrFiltered),
    /// Make dead jobs due again: named ones, or all that a filter fits
    #[command(after_help = job::REVIVE_EXAMPLES)]
    Revive(job::ReviveArgs),
    /// Cancel jobs: named ones, or all that a filter fits
    #[command(after_help = job::CANCEL_EXAMPLES)]
    Cancel(bulk::NamedOrFiltered),
    /// Remove dead jobs that a filter fits, and keep nothing of them
    Purge(bulk::PurgeArgs),
    /// List, show, watch or stop changes of many jobs
    #[command(subcommand, after_help = bulk::EXAMPLES)]
    Bulk(bulk::BulkCommand),
    /// List pending and dead jobs
    List(list::ListArgs),
    /// List, purge or revive the dead jobs of a topic
    #[command(subcommand, after_help = DEAD_EXAMPLES)]
    Dead(dead::DeadCommand),
    /// Set, show or delete the defaults of a topic for its jobs
    #[command(subcommand, after_help = policy::EXAMPLES)]
    Policy(policy::PolicyCommand),
    /// Sign the callbacks of a topic: add, list or delete its secrets
    #[command(subcommand, after_help = secret::EXAMPLES)]
    Secret(secret::SecretCommand),
    /// Prove to receivers who calls: set, list or delete credentials
    #[command(subcommand, after_help = credential::EXAMPLES)]
    Credential(credential::CredentialCommand),
    /// Make, list and delete the keys by which callers of the API are known
    #[command(subcommand, after_help = key::EXAMPLES)]
    Key(key::KeyCommand),
    /// Limit what tenants may submit: set, list or delete their quotas
    #[command(subcommand, after_help = quota::EXAMPLES)]
    Quota(quota::QuotaCommand),
    /// Show what waits for the archive, or detach it
    #[command(subcommand, after_help = archive::EXAMPLES)]
    Archive(archive::ArchiveCommand),
    /// Find jobs that have ended, in the archive: list, show, replay or erase them
    #[command(subcommand, after_help = history::EXAMPLES)]
    History(history::HistoryCommand),
    /// Submit a job again and again, by a cron expression or a period
    #[command(subcommand, after_help = schedule::EXAMPLES)]
    Schedule(schedule::ScheduleCommand),
    /// Reserve pull jobs (jobs without a URL) to work on them; each has a receipt
    Reserve(consumer::ReserveArgs),
    /// Mark a reserved job as done
    #[command(after_help = consumer::RECEIPT_EXAMPLES)]
    Finish(consumer::ReceiptArgs),
    /// Record a failure of a reserved job: retried later, or dead after the last retry
    #[command(after_help = consumer::RECEIPT_EXAMPLES)]
    Retry(consumer::RetryArgs),
    /// Extend the lease of a reserved job, to have more time for it
    #[command(after_help = consumer::RECEIPT_EXAMPLES)]
    Renew(consumer::RenewArgs),
    /// Give a reserved job up: it is dead, and kept
    #[command(after_help = consumer::RECEIPT_EXAMPLES)]
    Bury(consumer::BuryArgs),
    /// Give a reserved job back without recording a failure
    #[command(after_help = consumer::RECEIPT_EXAMPLES)]
    Release(consumer::ReleaseArgs),
    /// List topics with their number of jobs per state
    Topics(topics::TopicsArgs),
    /// Show a topic
    #[command(after_help = topics::TOPIC_EXAMPLES)]
    Topic(TopicArgs),
    /// Stop delivering the jobs of a topic, or all jobs to a host, until it is resumed
    #[command(after_help = topics::PAUSE_EXAMPLES)]
    Pause(topics::PauseArgs),
    /// Deliver the jobs of a paused topic, or to a paused host, again
    #[command(after_help = topics::RESUME_EXAMPLES)]
    Resume(topics::PauseArgs),
    /// Deliver the jobs of a key that wait behind a dead one, in an ordered topic
    #[command(after_help = topics::UNBLOCK_EXAMPLES)]
    Unblock(topics::UnblockArgs),
    /// List the hosts that callbacks go to, with their jobs and limits, and paused hosts
    Destinations(destinations::DestinationsArgs),
    /// Limit how fast, and how many at a time, callbacks go to a host: set, show or delete its limits
    #[command(subcommand, after_help = limit::EXAMPLES)]
    Limit(limit::LimitCommand),
    /// Force the breakers of a host open or closed, or reset them
    #[command(subcommand, after_help = breaker::EXAMPLES)]
    Breaker(breaker::BreakerCommand),
    /// Show the number of jobs per state, and how late deliveries were
    #[command(after_help = STATS_EXAMPLES)]
    Stats,
    /// Show how many jobs come due when
    Forecast(forecast::ForecastArgs),
    /// Show live what happens to jobs
    Watch(watch::WatchArgs),
    /// Check that every job is found and counted; --repair corrects what is wrong
    Check(check::CheckArgs),
    /// Show who has changed what by calls of the API
    AuditLog(audit_log::AuditLogArgs),
    /// Make the file of an embedded store smaller, while no process uses it
    Compact(compact::CompactArgs),
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
  ringback up --demo
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

/// The commands with their flags and help.
#[must_use]
pub fn command() -> clap::Command {
    usage::fixed(Cli::command())
}

/// Parses the command line, runs the command and returns the exit code. Prints errors.
#[must_use]
pub fn main() -> ExitCode {
    let mut command = command();
    let matches = match command.try_get_matches_from_mut(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => return failure::usage(&error),
    };
    let mut called = usage::called(&command, &matches);
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => {
            let format = cli.remote.format();
            run(cli).unwrap_or_else(|error| report(error, format, &mut called))
        }
        Err(error) => failure::usage(&error.format(&mut called)),
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    #[cfg(debug_assertions)]
    ringback_service::install_fault_plan();
    let remote = cli.remote;
    match cli.command {
        Command::Up(args) => Ok(up::main(args, remote.format(), Times::of_stdout(remote.utc))),
        Command::Listen(args) => listen::main(args, remote.format(), Times::of_stdout(remote.utc)),
        Command::Compact(args) => compact::run(&mut output(&remote), &args).map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => completions(&remote, shell),
        Command::Submit(args) => online(remote, async |session| submit::run(session, *args).await),
        Command::Import(args) => online(remote, async |session| import::run(session, args).await),
        Command::Export(args) => online(remote, async |session| export::run(session, args).await),
        Command::Backup(args) => online(remote, async |session| backup::run(session, args).await),
        Command::Restore(args) => online(remote, async |session| restore::run(session, args).await),
        Command::Get(args) => online(remote, async |session| job::get(session, &args).await),
        Command::Attempts(args) => online(remote, async |session| attempts::run(session, &args).await),
        Command::Reschedule(args) => online(remote, async |session| job::reschedule(session, &args).await),
        Command::Run(args) => online(remote, async |session| job::run(session, &args).await),
        Command::Revive(args) => online(remote, async |session| job::revive(session, &args).await),
        Command::Cancel(args) => online(remote, async |session| job::cancel(session, &args).await),
        Command::Purge(args) => online(remote, async |session| bulk::purge(session, &args).await),
        Command::Bulk(command) => online(remote, async |session| bulk::run(session, command).await),
        Command::List(args) => online(remote, async |session| list::run(session, &args).await),
        Command::Dead(command) => online(remote, async |session| dead::run(session, command).await),
        Command::Policy(args) => online(remote, async |session| policy::run(session, args).await),
        Command::Secret(SecretCommand::MasterKey(args)) => secret::master_key(&mut output(&remote), args),
        Command::Secret(SecretCommand::OfTopic(args)) => {
            online(remote, async |session| secret::run(session, args).await)
        }
        Command::Key(KeyCommand::Root) => key::root(&mut output(&remote)),
        Command::Key(KeyCommand::OnServer(args)) => {
            online(remote, async |session| key::run(session, args).await)
        }
        Command::Credential(args) => online(remote, async |session| credential::run(session, args).await),
        Command::Archive(args) => online(remote, async |session| archive::run(session, args).await),
        Command::History(args) => online(remote, async |session| history::run(session, args).await),
        Command::Quota(args) => online(remote, async |session| quota::run(session, args).await),
        Command::Schedule(args) => online(remote, async |session| schedule::run(session, args).await),
        Command::Reserve(args) => online(remote, async |session| consumer::reserve(session, args).await),
        Command::Finish(args) => online(remote, async |session| consumer::finish(session, &args).await),
        Command::Retry(args) => online(remote, async |session| consumer::retry(session, args).await),
        Command::Renew(args) => online(remote, async |session| consumer::renew(session, args).await),
        Command::Bury(args) => online(remote, async |session| consumer::bury(session, args).await),
        Command::Release(args) => online(remote, async |session| consumer::release(session, args).await),
        Command::Topics(args) => online(remote, async |session| topics::list(session, &args).await),
        Command::Topic(args) => online(remote, async |session| topics::get(session, &args).await),
        Command::Pause(args) => online(remote, async |session| topics::pause(session, &args).await),
        Command::Resume(args) => online(remote, async |session| topics::resume(session, &args).await),
        Command::Unblock(args) => online(remote, async |session| topics::unblock(session, &args).await),
        Command::Destinations(args) => {
            online(remote, async |session| destinations::list(session, &args).await)
        }
        Command::Limit(command) => online(remote, async |session| limit::run(session, command).await),
        Command::Breaker(command) => online(remote, async |session| breaker::run(session, command).await),
        Command::Forecast(args) => online(remote, async |session| forecast::run(session, args).await),
        Command::Watch(args) => online(remote, async |session| watch::run(session, &args).await),
        Command::Check(args) => online(remote, async |session| check::run(session, &args).await),
        Command::AuditLog(args) => online(remote, async |session| audit_log::run(session, args).await),
        Command::Stats => online(remote, async |session| stats::run(session).await),
    }
}

/// Prints the completion script for a shell, made from the definitions that parse the arguments.
fn completions(remote: &Remote, shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut out = output(remote);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ringback", &mut script);
    out.bytes(&script)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Standard output in the format and with the times that the flags choose.
fn output(remote: &Remote) -> Output {
    Output::new(remote.format(), Times::of_stdout(remote.utc))
}

/// Runs a command that calls the API, on a runtime with one thread. Output that came before an error is printed too.
fn online(
    remote: Remote,
    command: impl AsyncFnOnce(&mut Session) -> anyhow::Result<CommandOutcome>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let out = output(&remote);
    let tenant = remote.tenant().cloned();
    let access = Access::of_environment(&remote.server, remote.tenant_header())?;
    let client = Client::new(remote.server, Trust::of_environment(), access)?;
    let mut session = Session { client, out, tenant };
    let outcome = runtime.block_on(async {
        let outcome = command(&mut session).await;
        // Results that came before an error are printed too, and the error decides the exit code.
        let flushed = session.out.flush();
        outcome.and_then(|outcome| flushed.map(|()| outcome))
    });
    // A thread may still read standard input: it is not waited for.
    runtime.shutdown_background();
    outcome.map(ExitCode::from)
}

#[cfg(test)]
mod tests;
