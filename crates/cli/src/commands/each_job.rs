//! Makes the same call for one job or for many. Many are called a few at a time, and their results are printed in the
//! order of the jobs. A job that the API refuses does not stop the others; a server that fails does.

mod lines;

use std::io::{self, BufReader};
use std::pin::pin;

use anstyle::AnsiColor;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use ringback_core::job::JobKey;
use ringback_wire::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc};

use self::lines::{BadLine, Lines};
use super::session::{Session, parse};
use crate::args::{Format, Jobs, JobsArgs};
use crate::client::{Call, ClientError, Reply, SHORT};
use crate::failure::{CommandOutcome, Unfinished, is_refused};
use crate::output::{Colour, Output, View};

/// The most calls in flight.
const IN_FLIGHT: usize = 8;

/// A job to call, or why a line of standard input names none.
type Named = Result<JobKey, BadLine>;

/// Makes the call of each job that the arguments name, and prints the answers: the JSON unchanged, or the text that
/// `text` makes of it. [`CommandOutcome::No`] if a job of many was refused; an error if the server failed.
pub(crate) async fn run<T: DeserializeOwned>(
    session: &mut Session,
    args: &JobsArgs,
    call: impl Fn(&JobKey) -> Call,
    text: impl Fn(&JobKey, &T, &View) -> String,
) -> anyhow::Result<CommandOutcome> {
    let jobs = match args.jobs()? {
        Jobs::One(key) => return session.show(call(&key), |answer, view| text(&key, answer, view)).await,
        Jobs::Many(keys) => stream::iter(keys.into_iter().map(Ok)).boxed(),
        Jobs::Stdin => from_stdin(),
    };
    let Session { client, out, .. } = session;
    let (client, call, failed) = (&*client, &call, Notify::new());
    let ask = |named: Named| async move {
        let key = named?;
        let reply = client.ask(call(&key), SHORT).await;
        Ok::<_, BadLine>((key, reply))
    };
    // After a failure the next line of standard input is not waited for.
    let mut results = pin!(jobs.take_until(failed.notified()).map(ask).buffered(IN_FLIGHT));
    let (mut printer, mut failure) = (Printer { out, done: 0, refused: 0 }, None);
    while let Some(result) = results.next().await {
        let stopped = match result {
            Ok((key, reply)) => printer.result(&key, reply, &text)?,
            Err(line) => printer.bad_line(&line)?,
        };
        // The calls in flight are still printed, so that it is known what was done.
        if stopped.is_some() {
            failed.notify_one();
            failure = failure.or(stopped);
        }
    }
    let Printer { done, refused, .. } = printer;
    match failure {
        Some(Unfinished { what, next }) => {
            let what = format!("{what}; {done} were done and {refused} refused");
            Err(Unfinished { what, next }.into())
        }
        None if refused > 0 => Ok(CommandOutcome::No),
        None => Ok(CommandOutcome::Done),
    }
}

/// The jobs that the lines of standard input name. They are read on a thread that nobody joins, because a read of
/// standard input may never return.
fn from_stdin() -> BoxStream<'static, Named> {
    let (tx, rx) = mpsc::channel(IN_FLIGHT);
    tokio::task::spawn_blocking(move || {
        for named in Lines::new(BufReader::new(io::stdin())) {
            if tx.blocking_send(named).is_err() {
                break;
            }
        }
    });
    stream::unfold(rx, async |mut rx| rx.recv().await.map(|named| (named, rx))).boxed()
}

/// A job that the API refuses, as a line of JSON.
#[derive(Serialize)]
struct Refused<'a> {
    topic: &'a str,
    id: &'a str,
    status: u16,
    problem: &'a Problem,
}

/// Prints the results of many jobs and counts them.
struct Printer<'a> {
    out: &'a mut Output,
    done: u64,
    refused: u64,
}

impl Printer<'_> {
    /// Prints the result of a call and counts it. If the server failed, prints nothing and returns why the command
    /// stops.
    fn result<T: DeserializeOwned>(
        &mut self,
        key: &JobKey,
        reply: Result<Reply, ClientError>,
        text: impl Fn(&JobKey, &T, &View) -> String,
    ) -> anyhow::Result<Option<Unfinished>> {
        let text = |answer: &T| text(key, answer, &self.out.view());
        match reply.and_then(|Reply { body, .. }| shown(self.out.format, &body, text)) {
            Ok(shown) => self.answer(&shown)?,
            Err(error) if is_refused(&error) => self.refused(key, &error)?,
            Err(error) => {
                let what = format!("stopped at {key}: {error}");
                let next = format!("run the command again for the jobs from {key} on");
                return Ok(Some(Unfinished { what, next }));
            }
        }
        Ok(None)
    }

    /// Prints an answer. Answers of several lines have an empty line between them.
    fn answer(&mut self, shown: &[u8]) -> anyhow::Result<()> {
        if self.done > 0 && shown.contains(&b'\n') {
            self.out.line("")?;
        }
        self.done += 1;
        self.out.line(shown)?;
        // Each job is shown when it is done, also to those who type one job after the other.
        self.out.flush()
    }

    fn refused(&mut self, key: &JobKey, error: &ClientError) -> anyhow::Result<()> {
        let JobKey { topic, id } = key;
        match (self.out.format, error) {
            (Format::Json, ClientError::Problem { problem, .. }) => {
                let (topic, id, status) = (topic.as_str(), id.as_str(), problem.status);
                self.error(&serde_json::to_string(&Refused { topic, id, status, problem })?)
            }
            (Format::Json | Format::Table, error) => self.error(&format!("{} {key}: {error}", label())),
        }
    }

    /// Prints that a line names no job, and counts it as refused. If standard input cannot be read, prints nothing and
    /// returns why the command stops.
    fn bad_line(&mut self, line: &BadLine) -> anyhow::Result<Option<Unfinished>> {
        if let BadLine::Unreadable { number, .. } = line {
            let next = format!("run the command again for the jobs after line {number}");
            return Ok(Some(Unfinished { what: line.to_string(), next }));
        }
        self.error(&format!("{} {line}", label()))?;
        Ok(None)
    }

    fn error(&mut self, text: &str) -> anyhow::Result<()> {
        self.refused += 1;
        self.out.note(text)
    }
}

/// An answer as it is printed, without a line break at its end.
fn shown<T: DeserializeOwned>(
    format: Format,
    body: &Bytes,
    text: impl FnOnce(&T) -> String,
) -> Result<Vec<u8>, ClientError> {
    Ok(match format {
        Format::Json => body.trim_ascii_end().to_vec(),
        Format::Table => text(&parse(body)?).trim_end_matches('\n').as_bytes().to_vec(),
    })
}

/// The coloured word that an error begins with.
fn label() -> String {
    Colour::of_stderr().paint("error:", AnsiColor::Red.on_default().bold())
}
