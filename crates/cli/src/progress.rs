//! Shows the progress of a long command on standard error: a bar on a terminal, else a plain line every ten seconds.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use ringback_core::duration::format_duration;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::output::note;

/// The pause between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A bar or plain lines.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    verb: &'static str,
    /// The number of bytes; unknown for a stream.
    total: Option<u64>,
    bytes: Cell<u64>,
    lines: Cell<u64>,
    started: Instant,
    last_line: Cell<Instant>,
    waited: Cell<Option<Instant>>,
}

impl Progress {
    /// The progress of a command that starts now. `verb` is the past participle for its jobs, such as "imported".
    pub(crate) fn new(verb: &'static str, total: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let (bar, template) = match total {
                Some(total) => (ProgressBar::new(total), "{bar:30} {percent:>3} %  {msg}  {eta} left"),
                None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
            };
            bar.enable_steady_tick(Duration::from_millis(200));
            bar.with_style(ProgressStyle::with_template(template).expect("the template is well-formed"))
        });
        let now = Instant::now();
        Self {
            bar,
            verb,
            total,
            bytes: Cell::new(0),
            lines: Cell::new(0),
            started: now,
            last_line: Cell::new(now),
            waited: Cell::new(None),
        }
    }

    pub(crate) fn advance(&self, bytes: u64, lines: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        self.lines.set(self.lines.get() + lines);
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.bytes.get());
                bar.set_message(self.state());
            }
            None if self.last_line.get().elapsed() >= LINE_INTERVAL => self.print_line(),
            None => {}
        }
    }

    /// Prints a line beside the progress.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }

    /// Prints, at most every ten seconds, that the command retries after an error.
    pub(crate) fn waiting(&self, error: &ClientError, retry_for: Duration) {
        if self.waited.get().is_none_or(|at| at.elapsed() >= LINE_INTERVAL) {
            self.waited.set(Some(Instant::now()));
            self.note(&format!("{error}; trying again for up to {}", format_duration(retry_for)));
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// The number of lines so far.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.get()
    }

    fn print_line(&self) {
        self.last_line.set(Instant::now());
        let share = self.total.filter(|total| *total > 0).map(|total| self.bytes.get() * 100 / total);
        let share = share.map(|percent| format!(", {percent} %")).unwrap_or_default();
        note(&format!("{}{share}", self.state()));
    }

    fn state(&self) -> String {
        let lines = self.lines.get();
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate for people"
        )]
        let rate = (lines as f64 / seconds) as u64;
        let bytes = HumanBytes(self.bytes.get());
        format!("{} jobs {}, {bytes}, {}/s", HumanCount(lines), self.verb, HumanCount(rate))
    }
}
