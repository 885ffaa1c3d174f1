//! The commands, one file each, and the choice among them.

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
mod session;
mod stats;
mod submit;
mod topics;
mod watch;

use std::process::ExitCode;

use self::session::Session;
use crate::args::{Cli, Command, Remote};
use crate::client::Client;
use crate::failure::{Verdict, report};
use crate::output::Output;
use crate::up;

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
