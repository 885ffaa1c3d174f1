//! `ringback watch`: prints the events of all jobs, of a topic or of one job live, and reconnects by itself. For one
//! job it opens the stream before it reads the job's state, so that no event is lost in between, and ends with the job.

mod output;
mod stream;

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use http::Method;
use ringback_core::job::JobKey;
use ringback_core::store_types::EventName;
use ringback_wire::{JobEvent, JobResponse};
use strum::VariantNames as _;
use tokio::time::{Instant, sleep, timeout_at};

use self::output::EventPrinter;
use self::stream::{Item, Stream};
use super::call_retries::{FIRST_PAUSE, MAX_PAUSE};
use super::session::{Session, parse};
use crate::args::values;
use crate::client::{Call, ClientError, SHORT};
use crate::failure::CommandOutcome;

const EXAMPLES: &str = "\
Examples:
  ringback watch
  ringback watch pay.notify --kind attempt,dead
  ringback watch pay.notify/order-1 && echo it was delivered
  ringback watch pay.notify --output json | jq -r 'select(.event == \"dead\") | .id'

Events are live: earlier ones are not shown. The command reconnects by itself and prints a note when events may be \
missing. For one job it shows the state and then the events until the job ends; the exit code is 0 when the job is \
done, and 1 when it is dead, cancelled or not known. For topics it runs until it is interrupted.";

/// The jobs to watch, and the kinds of events.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// A topic, or a job as TOPIC/ID or TOPIC ID [default: all topics]
    #[arg(num_args = 0..=2, value_name = "TOPIC[/ID]")]
    name: Vec<String>,
    /// Show only these kinds of events, separated by commas
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = PossibleValuesParser::new(EventName::VARIANTS))]
    pub(crate) kinds: Vec<String>,
}

/// All jobs, those of a topic, or one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Everything,
    Topic(String),
    Job(JobKey),
}

impl WatchArgs {
    /// The jobs to watch.
    ///
    /// # Errors
    /// A usage error when the name is not valid.
    pub(crate) fn watched(&self) -> Result<Watched, clap::Error> {
        match self.name.as_slice() {
            [] => Ok(Watched::Everything),
            [topic] if !topic.contains('/') => {
                values::topic(topic).map(Watched::Topic).map_err(values::wrong)
            }
            words => values::job_key(words).map(Watched::Job),
        }
    }
}

pub(crate) async fn run(session: &mut Session, args: &WatchArgs) -> anyhow::Result<CommandOutcome> {
    let mut call = Call::new(Method::GET, &["v1", "events"]);
    let job = match args.watched()? {
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
    let stream = Stream::open(&session.client, &call).await.map_err(|error| error.for_route("events"))?;
    let printer = EventPrinter::new(&session.out, args.kinds.clone());
    Watch { session, printer, call, job, unknown: None }.follow(stream).await
}

/// A running watch.
struct Watch<'a> {
    session: &'a mut Session,
    printer: EventPrinter,
    /// Opens the stream of events.
    call: Call,
    job: Option<JobKey>,
    /// Set while the state of the job could not be read.
    unknown: Option<UnknownState>,
}

/// The state of the watched job could not be read. Its end may have been missed, so it is read again at `at`.
#[derive(Clone, Copy)]
struct UnknownState {
    wait: Duration,
    at: Instant,
}

impl Watch<'_> {
    /// Prints the state of the watched job and then events, until that job has ended; without one, without an end.
    async fn follow(mut self, mut stream: Stream) -> anyhow::Result<CommandOutcome> {
        let mut ended = self.look().await?;
        loop {
            if let Some(outcome) = ended {
                return Ok(outcome);
            }
            if stream.is_drained() {
                self.session.out.flush()?;
            }
            let item = match self.unknown {
                None => Some(stream.next().await),
                Some(UnknownState { at, .. }) => timeout_at(at, stream.next()).await.ok(),
            };
            ended = match item {
                Some(Ok(Item::Event(name, event))) => self.on_event(&name, &event).await?,
                Some(Ok(Item::Missed)) => self.on_missed().await?,
                Some(Err(why)) => {
                    self.printer.broken(&why);
                    stream = self.reconnect().await?;
                    self.on_missed().await?
                }
                None => self.look_again().await?,
            };
        }
    }

    /// Prints an event. If it ends the watched job, reads the job again, and returns the outcome, also if the job is no
    /// longer known or a transient error occurs; `None` if the job goes on.
    async fn on_event(&mut self, name: &str, event: &JobEvent) -> anyhow::Result<Option<CommandOutcome>> {
        self.printer.event(&mut self.session.out, name, event)?;
        let (Some(key), Some(outcome)) = (&self.job, end(name)) else { return Ok(None) };
        self.session.out.flush()?;
        // The job may have been revived or submitted again since.
        match ask(self.session, key).await {
            Ok(job) => Ok(end(&job.state)),
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(Some(outcome)),
            Err(error) if error.is_transient() => Ok(Some(outcome)),
            Err(error) => Err(error.into()),
        }
    }

    /// Prints that events may be missing, and reads the state of the watched job, in case its end was missed.
    async fn on_missed(&mut self) -> anyhow::Result<Option<CommandOutcome>> {
        self.printer.missed(&mut self.session.out)?;
        self.look_again().await
    }

    /// Prints the state of the watched job, as [`Self::look`] does. After a transient error plans another try instead,
    /// after a pause that doubles.
    async fn look_again(&mut self) -> anyhow::Result<Option<CommandOutcome>> {
        let last = self.unknown.take();
        match self.look().await {
            Err(error) if error.downcast_ref().is_some_and(ClientError::is_transient) => {
                let wait = last.map_or(FIRST_PAUSE, |last| (last.wait * 2).min(MAX_PAUSE));
                self.unknown = Some(UnknownState { wait, at: Instant::now() + wait });
                Ok(None)
            }
            looked => looked,
        }
    }

    /// Reads and prints the state of the watched job, if there is one. Returns the outcome if it has ended.
    async fn look(&mut self) -> anyhow::Result<Option<CommandOutcome>> {
        let Some(key) = &self.job else { return Ok(None) };
        let job = ask(self.session, key).await?;
        self.printer.job(&mut self.session.out, &job)?;
        self.session.out.flush()?;
        Ok(end(&job.state))
    }

    /// Opens the stream again, however long that takes. Fails only with an error that is not transient.
    async fn reconnect(&mut self) -> anyhow::Result<Stream> {
        self.session.out.flush()?;
        let mut wait: Duration = FIRST_PAUSE;
        loop {
            sleep(wait).await;
            let error = match Stream::open(&self.session.client, &self.call).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if !error.is_transient() {
                return Err(error.into());
            }
            self.printer.waiting(&error);
            wait = error.retry_after().unwrap_or_default().max((wait * 2).min(MAX_PAUSE));
        }
    }
}

async fn ask(session: &Session, key: &JobKey) -> Result<JobResponse, ClientError> {
    parse(&session.client.ask(Call::job(Method::GET, key, &[]), SHORT).await?.body)
}

/// The outcome of an event or a state that ends a job; `None` for any other.
fn end(name: &str) -> Option<CommandOutcome> {
    match name {
        "done" => Some(CommandOutcome::Done),
        "dead" | "cancelled" => Some(CommandOutcome::No),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(words: &[&str]) -> Result<Watched, clap::Error> {
        let name = words.iter().map(|word| (*word).to_owned()).collect();
        WatchArgs { name, kinds: Vec::new() }.watched()
    }

    #[test]
    fn a_topic_or_a_job_or_nothing_is_named() {
        let job = Watched::Job(JobKey { topic: "a".parse().unwrap(), id: "b".parse().unwrap() });
        assert_eq!(watched(&[]).unwrap(), Watched::Everything);
        assert_eq!(watched(&["a"]).unwrap(), Watched::Topic("a".to_owned()));
        assert_eq!(watched(&["a/b"]).unwrap(), job);
        assert_eq!(watched(&["a", "b"]).unwrap(), job);
        for wrong in [&[".."][..], &["a/"], &["a", "b/c"], &["a b"]] {
            assert!(watched(wrong).is_err(), "{wrong:?}");
        }
    }
}
