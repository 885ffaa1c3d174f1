//! Writes to standard output and standard error, with colours and local times only on a terminal, and colours not with
//! `NO_COLOR`. The run ends quietly when the reader goes away. The files below render what the API answers as text.

mod bulk;
mod dead;
mod end;
mod escape;
mod job;
mod request;
mod shell;
mod table;
mod time;

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use ringback_core::clock::{Clock as _, SystemClock, Timestamp};

pub(crate) use self::bulk::{bulk_details, bulk_row, dry_run};
pub(crate) use self::dead::dead_row;
pub(crate) use self::end::{end_details, end_row};
pub(crate) use self::escape::{escape_invisible, escape_json, escape_lines, escape_text, is_unsafe};
pub(crate) use self::job::{JOB_COLUMNS, job_details, job_row, state, whose};
pub(crate) use self::request::{REQUEST_COLUMNS, limits_summary, request_cells, request_details};
pub(crate) use self::shell::{Post, quoted};
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::time::{Times, relative};
use crate::args::Format;

/// The reader of standard output has gone, as with `| head`. This is not an error.
#[derive(Debug, thiserror::Error)]
#[error("the output was closed")]
pub(crate) struct OutputClosed;

/// Whether output has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Yes,
    No,
}

impl Colour {
    /// Whether standard output has colours.
    pub(crate) fn of_stdout() -> Self {
        Self::from(AutoStream::choice(&io::stdout()))
    }

    /// Whether standard error has colours.
    pub(crate) fn of_stderr() -> Self {
        Self::from(AutoStream::choice(&io::stderr()))
    }

    /// The text in a style, if there are colours.
    pub(crate) fn paint(self, text: &str, style: Style) -> String {
        match self {
            Self::Yes if style != Style::new() && !text.is_empty() => format!("{style}{text}{style:#}"),
            Self::Yes | Self::No => text.to_owned(),
        }
    }
}

impl From<ColorChoice> for Colour {
    fn from(choice: ColorChoice) -> Self {
        match choice {
            ColorChoice::Never => Self::No,
            ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => Self::Yes,
        }
    }
}

/// What a text for people depends on: the time, the zone, the choice of colours.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) now: Timestamp,
    pub(crate) colour: Colour,
    pub(crate) times: Times,
}

impl View {
    pub(crate) fn now(colour: Colour, times: Times) -> Self {
        Self { now: SystemClock.now(), colour, times }
    }

    pub(crate) fn time(&self, time: &str) -> String {
        self.times.show(time)
    }

    /// A time of the API relative to now: `in 9m 59s`, `3s ago` or `now`; empty when it is not a time.
    pub(crate) fn relative(&self, time: &str) -> String {
        relative(time, self.now)
    }

    /// A time of the API and, in brackets, relative to now.
    pub(crate) fn both(&self, time: &str) -> String {
        format!("{} ({})", self.time(time), self.relative(time))
    }

    /// A view in UTC and without colours at this time in ms.
    #[cfg(test)]
    pub(crate) fn plain(ms: u64) -> Self {
        Self { now: Timestamp::from_millis(ms), colour: Colour::No, times: Times::Utc }
    }
}

/// Standard output.
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) colour: Colour,
    pub(crate) times: Times,
    out: io::BufWriter<io::StdoutLock<'static>>,
}

impl Output {
    /// Locks standard output.
    pub(crate) fn new(format: Format, times: Times) -> Self {
        let colour = Colour::of_stdout();
        Self { format, colour, times, out: io::BufWriter::with_capacity(64 * 1024, io::stdout().lock()) }
    }

    pub(crate) fn view(&self) -> View {
        View::now(self.colour, self.times.clone())
    }

    /// Writes bytes unchanged. [`OutputClosed`] if nobody reads standard output any more.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.out.write_all(bytes).map_err(closed)
    }

    /// Writes a text and a line break.
    pub(crate) fn line(&mut self, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.bytes(text.as_ref())?;
        self.bytes(b"\n")
    }

    /// Flushes standard output, and prints a line on standard error: where both are a terminal, it comes below.
    pub(crate) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.flush()?;
        note(text);
        Ok(())
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush().map_err(closed)
    }
}

fn closed(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return OutputClosed.into();
    }
    anyhow::Error::new(error).context("standard output")
}

/// Prints a line on standard error, and ignores errors. After something on standard output, use [`Output::note`].
pub(crate) fn note(text: &str) {
    // There is nowhere to report a failure of this.
    writeln!(io::stderr().lock(), "{text}").ok();
}
