//! `ringback watch`: what happens to jobs, while it happens. It listens before it looks, so that
//! nothing comes in between, and connects again by itself.

mod show;
mod stream;

use std::time::Duration;

use http::Method;
use ringback_core::job::JobKey;
use ringback_core::wire::{EventAnswer, JobAnswer};
use tokio::time::{Instant, sleep, timeout_at};

use self::show::Show;
use self::stream::{Said, Stream};
use super::{FIRST_WAIT, LAST_WAIT, Session, parse};
use crate::args::{WatchArgs, Watched};
use crate::client::{Call, ClientError, SHORT};
use crate::failure::Verdict;

pub(super) async fn run(session: &mut Session, args: &WatchArgs) -> anyhow::Result<Verdict> {
    let watched = args.watched()?;
    let mut call = Call::new(Method::GET, &["v1", "events"]);
    let mut show = Show::new(&session.out, args.kinds.clone());
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
    // The end of one job is to be seen whatever is shown.
    if job.is_none() && !args.kinds.is_empty() {
        call.query.push(("kind", args.kinds.join(",")));
    }
    let mut stream = Stream::open(&session.client, &call).await.map_err(|error| error.of_whole("events"))?;
    if let Some(verdict) = look(session, &mut show, job.as_ref()).await? {
        return Ok(verdict);
    }
    let mut unseen = None;
    loop {
        let said = match unseen {
            None => Some(stream.next().await),
            Some(Unseen { at, .. }) => timeout_at(at, stream.next()).await.ok(),
        };
        let ended = match said {
            Some(Ok(Said::Event(name, event))) => {
                told(session, &mut show, job.as_ref(), &name, &event).await?
            }
            Some(Ok(Said::Missed)) => missed(session, &mut show, job.as_ref(), &mut unseen).await?,
            Some(Err(why)) => {
                show.broken(&why);
                stream = again(session, &mut show, &call).await?;
                missed(session, &mut show, job.as_ref(), &mut unseen).await?
            }
            None => seen(session, &mut show, job.as_ref(), &mut unseen).await?,
        };
        if let Some(verdict) = ended {
            return Ok(verdict);
        }
        if stream.is_read() {
            session.out.flush()?;
        }
    }
}

/// Shows an event; says how it ends where the watched job has ended.
async fn told(
    session: &mut Session,
    show: &mut Show,
    job: Option<&JobKey>,
    name: &str,
    event: &EventAnswer,
) -> anyhow::Result<Option<Verdict>> {
    show.event(&mut session.out, name, event)?;
    let (Some(key), Some(verdict)) = (job, end(name)) else { return Ok(None) };
    session.out.flush()?;
    // It may have been revived since, or come again.
    match ask(session, key).await {
        Ok(job) => Ok(end(&job.state)),
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(Some(verdict)),
        Err(error) if error.is_transient() => Ok(Some(verdict)),
        Err(error) => Err(error.into()),
    }
}

/// Says that something may be missing; of one job what it came to can still be told.
async fn missed(
    session: &mut Session,
    show: &mut Show,
    job: Option<&JobKey>,
    unseen: &mut Option<Unseen>,
) -> anyhow::Result<Option<Verdict>> {
    show.missed(&mut session.out)?;
    seen(session, show, job, unseen).await
}

/// The state of the watched job could not be asked for: its end may have been missed, so it is asked
/// for again.
#[derive(Clone, Copy)]
struct Unseen {
    wait: Duration,
    at: Instant,
}

/// Looks at the watched job; where that is not answered, later.
async fn seen(
    session: &mut Session,
    show: &mut Show,
    job: Option<&JobKey>,
    unseen: &mut Option<Unseen>,
) -> anyhow::Result<Option<Verdict>> {
    let last = unseen.take();
    match look(session, show, job).await {
        Err(error) if error.downcast_ref().is_some_and(ClientError::is_transient) => {
            let wait = last.map_or(FIRST_WAIT, |last| (last.wait * 2).min(LAST_WAIT));
            *unseen = Some(Unseen { wait, at: Instant::now() + wait });
            Ok(None)
        }
        looked => looked,
    }
}

/// Shows the state of the watched job, if it is one; says how it ends where it has.
async fn look(
    session: &mut Session,
    show: &mut Show,
    job: Option<&JobKey>,
) -> anyhow::Result<Option<Verdict>> {
    let Some(key) = job else { return Ok(None) };
    let job = ask(session, key).await?;
    let now = session.now();
    show.job(&mut session.out, &job, now)?;
    session.out.flush()?;
    Ok(end(&job.state))
}

async fn ask(session: &Session, key: &JobKey) -> Result<JobAnswer, ClientError> {
    let call = Call::new(Method::GET, &["v1", "jobs", key.topic.as_str(), key.id.as_str()]);
    parse(&session.client.ask(call, SHORT).await?.body)
}

/// The end that an event or a state is.
fn end(word: &str) -> Option<Verdict> {
    match word {
        "done" => Some(Verdict::Done),
        "dead" | "cancelled" => Some(Verdict::No),
        _ => None,
    }
}

/// The stream again, however long that takes.
async fn again(session: &mut Session, show: &mut Show, call: &Call) -> anyhow::Result<Stream> {
    session.out.flush()?;
    let mut wait: Duration = FIRST_WAIT;
    loop {
        sleep(wait).await;
        let error = match Stream::open(&session.client, call).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if !error.is_transient() {
            return Err(error.into());
        }
        show.waiting(&error);
        wait = error.retry_after().unwrap_or_default().max((wait * 2).min(LAST_WAIT));
    }
}
