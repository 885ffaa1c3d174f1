//! The commands, one file each, and the session that they share: a client, an output and a clock.

mod attempts;
mod audit;
mod cancel;
mod completions;
mod dead;
mod export;
mod get;
mod import;
mod list;
mod pages;
mod policy;
mod receipts;
mod reschedule;
mod reserve;
mod retry;
mod stats;
mod submit;
mod topics;
mod watch;

use std::process::ExitCode;

use bytes::Bytes;
use ringback_core::clock::{Clock, SystemClock, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{Cli, Command, Format, Remote};
use crate::client::{Client, ClientError};
use crate::failure::{Verdict, report};
use crate::output::{Colour, Output};
use crate::up;

/// The client and the output of one run.
struct Session {
    client: Client,
    out: Output,
}

/// The circumstances that tables depend on.
#[derive(Clone, Copy)]
struct View {
    now: Timestamp,
    colour: Colour,
}

impl Session {
    /// The current time, for times relative to now.
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Prints the API's JSON unchanged.
    fn json(&mut self, body: &Bytes) -> anyhow::Result<()> {
        self.out.line(body.trim_ascii_end())
    }

    /// Prints a response: its JSON unchanged, or the text that `text` makes of it.
    fn print<T: DeserializeOwned>(
        &mut self,
        body: &Bytes,
        text: impl FnOnce(&T, View) -> String,
    ) -> anyhow::Result<Verdict> {
        match self.out.format {
            Format::Json => self.json(body)?,
            Format::Table => {
                let view = View { now: self.now(), colour: self.out.colour };
                self.out.bytes(text(&parse(body)?, view).as_bytes())?;
            }
        }
        Ok(Verdict::Done)
    }
}

/// Runs a command and returns its exit code.
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
        Command::Up(args) => Ok(up::main(args.flags)),
        Command::Completions { shell } => {
            completions::run(Output::new(remote.output), shell).map(ExitCode::from)
        }
        Command::Submit(args) => online(remote, async |session| submit::run(session, *args).await),
        Command::Import(args) => online(remote, async |session| import::run(session, args).await),
        Command::Export(args) => online(remote, async |session| export::run(session, args).await),
        Command::Get(args) => online(remote, async |session| get::run(session, &args).await),
        Command::Attempts(args) => online(remote, async |session| attempts::run(session, &args).await),
        Command::Reschedule(args) => {
            online(remote, async |session| reschedule::reschedule(session, &args).await)
        }
        Command::Run(args) => online(remote, async |session| reschedule::run(session, &args).await),
        Command::Revive(args) => online(remote, async |session| reschedule::revive(session, &args).await),
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
        Command::Topic(args) => online(remote, async |session| topics::get(session, &args).await),
        Command::Pause(args) => online(remote, async |session| topics::pause(session, &args).await),
        Command::Resume(args) => online(remote, async |session| topics::resume(session, &args).await),
        Command::Watch(args) => online(remote, async |session| watch::run(session, &args).await),
        Command::Audit(args) => online(remote, async |session| audit::run(session, &args).await),
        Command::Stats => online(remote, async |session| stats::run(session).await),
    }
}

/// Runs a command that calls the API.
fn online(
    remote: Remote,
    command: impl AsyncFnOnce(&mut Session) -> anyhow::Result<Verdict>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut session = Session { client: Client::new(remote.server)?, out: Output::new(remote.output) };
    let verdict = runtime.block_on(async {
        let verdict = command(&mut session).await;
        // Results that came before an error are printed too, and the error decides the exit code.
        let flushed = session.out.flush();
        verdict.and_then(|verdict| flushed.map(|()| verdict))
    });
    // A thread may still read standard input: it is not waited for.
    runtime.shutdown_background();
    verdict.map(ExitCode::from)
}

/// A JSON object of the fields that have a value.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Parses a response of the API.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Unreadable(error.to_string()))
}
