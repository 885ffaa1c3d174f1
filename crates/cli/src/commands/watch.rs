//! `ringback watch`: prints the events of jobs live. It opens the stream before it reads the job's state, so that no
//! event is lost in between, and reconnects by itself.

mod output;
mod stream;

use std::time::Duration;

use http::Method;
use ringback_core::job::JobKey;
use ringback_core::wire::{EventAnswer, JobAnswer};
use tokio::time::{Instant, sleep, timeout_at};

use self::output::EventPrinter;
use self::stream::{Item, Stream};
use super::retry::{FIRST_PAUSE, MAX_PAUSE};
use super::session::{Session, parse};
use crate::args::{WatchArgs, Watched};
use crate::client::{Call, ClientError, SHORT};
use crate::failure::Verdict;

pub(crate) async fn run(session: &mut Session, args: &WatchArgs) -> anyhow::Result<Verdict> {
    let watched = args.watched()?;
    let mut call = Call::new(Method::GET, &["v1", "events"]);
    let mut printer = EventPrinter::new(&session.out, args.kinds.clone());
    let job = match watched {
        Watched::Everything => None,
        Watched::Topic(topic) => {
            call.query.push(("topic", topic));
            None
        }
        Watched::Job(key) => {
            call.query = vec![("topic", key.topic.to_string()), ("id", key.id.to_string())];
            Some(key)
        }
    };
    // The end of a watched job must be seen even if its kind is not printed.
    if job.is_none() && !args.kinds.is_empty() {
        call.query.push(("kind", args.kinds.join(",")));
    }
    let mut stream = Stream::open(&session.client, &call).await.map_err(|error| error.of_whole("events"))?;
    if let Some(verdict) = look(session, &mut printer, job.as_ref()).await? {
        return Ok(verdict);
    }
    let mut unknown = None;
    loop {
        let item = match unknown {
            None => Some(stream.next().await),
            Some(UnknownState { at, .. }) => timeout_at(at, stream.next()).await.ok(),
        };
        let ended = match item {
            Some(Ok(Item::Event(name, event))) => {
                on_event(session, &mut printer, job.as_ref(), &name, &event).await?
            }
            Some(Ok(Item::Missed)) => on_missed(session, &mut printer, job.as_ref(), &mut unknown).await?,
            Some(Err(why)) => {
                printer.broken(&why);
                stream = reconnect(session, &mut printer, &call).await?;
                on_missed(session, &mut printer, job.as_ref(), &mut unknown).await?
            }
            None => look_again(session, &mut printer, job.as_ref(), &mut unknown).await?,
        };
        if let Some(verdict) = ended {
            return Ok(verdict);
        }
        if stream.is_drained() {
            session.out.flush()?;
        }
    }
}

/// Prints an event. Returns the verdict when the watched job has ended.
async fn on_event(
    session: &mut Session,
    printer: &mut EventPrinter,
    job: Option<&JobKey>,
    name: &str,
    event: &EventAnswer,
) -> anyhow::Result<Option<Verdict>> {
    printer.event(&mut session.out, name, event)?;
    let (Some(key), Some(verdict)) = (job, end(name)) else { return Ok(None) };
    session.out.flush()?;
    // The job may have been revived or submitted again since.
    match ask(session, key).await {
        Ok(job) => Ok(end(&job.state)),
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(Some(verdict)),
        Err(error) if error.is_transient() => Ok(Some(verdict)),
        Err(error) => Err(error.into()),
    }
}

/// Prints that events may be missing. The end of a watched job is still found from its state.
async fn on_missed(
    session: &mut Session,
    printer: &mut EventPrinter,
    job: Option<&JobKey>,
    unknown: &mut Option<UnknownState>,
) -> anyhow::Result<Option<Verdict>> {
    printer.missed(&mut session.out)?;
    look_again(session, printer, job, unknown).await
}

/// The state of the watched job could not be read. Its end may have been missed, so it is read again at `at`.
#[derive(Clone, Copy)]
struct UnknownState {
    wait: Duration,
    at: Instant,
}

/// Reads the state of the watched job, and plans another try when the server does not answer.
async fn look_again(
    session: &mut Session,
    printer: &mut EventPrinter,
    job: Option<&JobKey>,
    unknown: &mut Option<UnknownState>,
) -> anyhow::Result<Option<Verdict>> {
    let last = unknown.take();
    match look(session, printer, job).await {
        Err(error) if error.downcast_ref().is_some_and(ClientError::is_transient) => {
            let wait = last.map_or(FIRST_PAUSE, |last| (last.wait * 2).min(MAX_PAUSE));
            *unknown = Some(UnknownState { wait, at: Instant::now() + wait });
            Ok(None)
        }
        looked => looked,
    }
}

/// Prints the state of the watched job, if there is one. Returns the verdict when it has ended.
async fn look(
    session: &mut Session,
    printer: &mut EventPrinter,
    job: Option<&JobKey>,
) -> anyhow::Result<Option<Verdict>> {
    let Some(key) = job else { return Ok(None) };
    let job = ask(session, key).await?;
    let now = session.now();
    printer.job(&mut session.out, &job, now)?;
    session.out.flush()?;
    Ok(end(&job.state))
}

async fn ask(session: &Session, key: &JobKey) -> Result<JobAnswer, ClientError> {
    parse(&session.client.ask(Call::job(Method::GET, key, &[]), SHORT).await?.body)
}

/// The verdict of an event or a state that ends a job.
fn end(name: &str) -> Option<Verdict> {
    match name {
        "done" => Some(Verdict::Done),
        "dead" | "cancelled" => Some(Verdict::No),
        _ => None,
    }
}

/// Opens the stream again, however long that takes.
async fn reconnect(session: &mut Session, printer: &mut EventPrinter, call: &Call) -> anyhow::Result<Stream> {
    session.out.flush()?;
    let mut wait: Duration = FIRST_PAUSE;
    loop {
        sleep(wait).await;
        let error = match Stream::open(&session.client, call).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if !error.is_transient() {
            return Err(error.into());
        }
        printer.waiting(&error);
        wait = error.retry_after().unwrap_or_default().max((wait * 2).min(MAX_PAUSE));
    }
}
