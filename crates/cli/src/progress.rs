//! How far an import or export has come, on standard error: a bar on a terminal, else a
//! plain line now and then.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use ringback_core::duration::format_duration;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::output::say;

/// Between two plain lines.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// A bar or plain lines.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    verb: &'static str,
    /// Of the bytes; unknown for a stream.
    total: Option<u64>,
    bytes: Cell<u64>,
    lines: Cell<u64>,
    started: Instant,
    told: Cell<Instant>,
    waited: Cell<Option<Instant>>,
}

impl Progress {
    /// Of something that has just begun; `verb` is what happens to the lines: "imported".
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
            told: Cell::new(now),
            waited: Cell::new(None),
        }
    }

    /// So much more.
    pub(crate) fn advance(&self, bytes: u64, lines: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        self.lines.set(self.lines.get() + lines);
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.bytes.get());
                bar.set_message(self.state());
            }
            None if self.told.get().elapsed() >= NOW_AND_THEN => self.tell(),
            None => {}
        }
    }

    /// A line of its own.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    /// Tells that the server is waited for, unless that was told a moment ago.
    pub(crate) fn waiting(&self, error: &ClientError, patience: Duration) {
        if self.waited.get().is_none_or(|at| at.elapsed() >= NOW_AND_THEN) {
            self.waited.set(Some(Instant::now()));
            self.note(&format!("{error}; trying again for up to {}", format_duration(patience)));
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// How many lines so far.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.get()
    }

    fn tell(&self) {
        self.told.set(Instant::now());
        let share = self.total.filter(|total| *total > 0).map(|total| self.bytes.get() * 100 / total);
        let share = share.map(|percent| format!(", {percent} %")).unwrap_or_default();
        say(&format!("{}{share}", self.state()));
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
