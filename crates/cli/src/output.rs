//! Standard output and standard error. The run ends quietly when the reader goes away. Colours appear only on a
//! terminal, and not with `NO_COLOR`.

mod dead;
mod job;
mod table;
mod time;

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;

pub(crate) use self::dead::{dead_row, redrive_details, redrive_row};
pub(crate) use self::job::{job_details, job_row, state};
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::time::relative;
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
    /// The choice for standard error.
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

/// Standard output.
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) colour: Colour,
    out: io::BufWriter<io::StdoutLock<'static>>,
}

impl Output {
    /// Locks standard output.
    pub(crate) fn new(format: Format) -> Self {
        let colour = Colour::from(AutoStream::choice(&io::stdout()));
        Self { format, colour, out: io::BufWriter::with_capacity(64 * 1024, io::stdout().lock()) }
    }

    /// Writes bytes unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.out.write_all(bytes).map_err(closed)
    }

    /// Writes a text and a line break.
    pub(crate) fn line(&mut self, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.bytes(text.as_ref())?;
        self.bytes(b"\n")
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

/// Prints a line on standard error.
pub(crate) fn note(text: &str) {
    // There is nowhere to report a failure of this.
    writeln!(io::stderr().lock(), "{text}").ok();
}
