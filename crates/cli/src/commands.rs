//! The commands, a file each, and what they share: a client, an output, a clock.

mod attempts;
mod audit;
mod cancel;
mod completions;
mod dead;
mod export;
mod get;
mod import;
mod list;
mod moves;
mod pages;
mod policy;
mod receipts;
mod reserve;
mod stats;
mod submit;
mod topics;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use ringback_core::clock::{Clock, SystemClock, Timestamp};
use serde::de::DeserializeOwned;

use crate::args::{Cli, Command, Remote};
use crate::client::{Client, ClientError};
use crate::failure::{Verdict, report};
use crate::output::Output;
use crate::up;

/// The first wait before a call is tried again; it doubles up to [`LAST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait, unless the server asks for a longer one.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What a command works with.
struct Session {
    client: Client,
    out: Output,
}

impl Session {
    /// The time, for what is told relative to now.
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// The API's JSON as it came.
    fn json(&mut self, body: &Bytes) -> anyhow::Result<()> {
        self.out.line(body.trim_ascii_end())
    }
}

/// Runs a command and says how it ended.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let format = cli.remote.output;
    match command(cli) {
        Ok(code) => code,
        Err(error) => report(&error, format),
    }
}

fn command(cli: Cli) -> anyhow::Result<ExitCode> {
    let remote = cli.remote;
    match cli.command {
        Command::Up(args) => Ok(up::main(args.words)),
        Command::Completions { shell } => {
            completions::run(Output::new(remote.output), shell).map(ExitCode::from)
        }
        Command::Submit(args) => online(remote, async |session| submit::run(session, *args).await),
        Command::Import(args) => online(remote, async |session| import::run(session, args).await),
        Command::Export(args) => online(remote, async |session| export::run(session, args).await),
        Command::Get(args) => online(remote, async |session| get::run(session, &args).await),
        Command::Attempts(args) => online(remote, async |session| attempts::run(session, &args).await),
        Command::Reschedule(args) => online(remote, async |session| moves::reschedule(session, &args).await),
        Command::Run(args) => online(remote, async |session| moves::run(session, &args).await),
        Command::Revive(args) => online(remote, async |session| moves::revive(session, &args).await),
        Command::Cancel(args) => online(remote, async |session| cancel::run(session, &args).await),
        Command::List(args) => online(remote, async |session| list::run(session, &args).await),
        Command::Dead(command) => online(remote, async |session| dead::run(session, command).await),
        Command::Policy(args) => online(remote, async |session| policy::run(session, args).await),
        Command::Reserve(args) => online(remote, async |session| reserve::run(session, args).await),
        Command::Finish(args) => online(remote, async |session| receipts::finish(session, &args).await),
        Command::Retry(args) => online(remote, async |session| receipts::retry(session, args).await),
        Command::Renew(args) => online(remote, async |session| receipts::renew(session, args).await),
        Command::Bury(args) => online(remote, async |session| receipts::bury(session, args).await),
        Command::Release(args) => online(remote, async |session| receipts::release(session, args).await),
        Command::Topics(args) => online(remote, async |session| topics::list(session, &args).await),
        Command::Topic(args) => online(remote, async |session| topics::show(session, &args).await),
        Command::Pause(args) => online(remote, async |session| topics::pause(session, &args).await),
        Command::Resume(args) => online(remote, async |session| topics::resume(session, &args).await),
        Command::Watch(args) => online(remote, async |session| watch::run(session, &args).await),
        Command::Audit(args) => online(remote, async |session| audit::run(session, &args).await),
        Command::Stats => online(remote, async |session| stats::run(session).await),
    }
}

/// Runs a command that needs a server.
fn online(
    remote: Remote,
    command: impl AsyncFnOnce(&mut Session) -> anyhow::Result<Verdict>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut session = Session { client: Client::new(remote.server)?, out: Output::new(remote.output) };
    let verdict = runtime.block_on(async {
        let verdict = command(&mut session).await;
        // What was found before an error is shown too; the error counts.
        let flushed = session.out.flush();
        verdict.and_then(|verdict| flushed.map(|()| verdict))
    });
    // A thread that still waits for standard input is not waited for.
    runtime.shutdown_background();
    verdict.map(ExitCode::from)
}

/// An answer of the API as a type.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Unreadable(error.to_string()))
}
