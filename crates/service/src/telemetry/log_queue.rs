//! The queue between the code that logs and stderr. One thread writes to stderr, so a pipe that nobody reads blocks
//! that thread and nothing else. When the queue is full, lines are dropped and counted, and the log says so.
//!
//! Why not `tracing_appender::non_blocking`: it bounds lines, not bytes; what it dropped is known as a number only;
//! and it has no way to flush with a time limit before a process that panics is gone.

mod writer;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ringback_core::clock::{Clock as _, SystemClock, Timestamp};
use tokio::time::Instant;
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use self::writer::Writer;
use super::callsite_limits::{Admission, CallsiteLimits, SuppressedLines};
use super::log_format::LogFormat;

/// The most bytes that wait. Lines lie behind each other without gaps, so their number needs no limit of its own.
/// As many bytes again can be on their way to stderr.
const MAX_BYTES: usize = 1024 * 1024;

/// The queue. Clones share it.
#[derive(Clone)]
pub(crate) struct LogQueue(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when the writer has something to do.
    filled: Condvar,
    /// Notified when the writer has done it.
    written: Condvar,
    /// All lines dropped since the start.
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// The lines that were dropped after `lines`. Until the writer takes both, further lines are dropped too, so that
    /// the gap is in one place.
    dropped: Option<DroppedLines>,
    limits: CallsiteLimits,
    /// Counts the lines and reports that the writer got to do.
    queued: u64,
    /// Of these, the last one that is done.
    done: u64,
    /// True if no report waits for its time any more.
    is_ending: bool,
}

/// Lines that were dropped one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DroppedLines {
    lines: u64,
    since: Timestamp,
}

/// What the writer writes in one go.
struct Batch {
    lines: Vec<u8>,
    dropped: Option<DroppedLines>,
    suppressed: Vec<SuppressedLines>,
    /// The value of [`State::queued`] that it reaches to.
    until: u64,
}

impl LogQueue {
    /// Starts the thread that writes to stderr.
    pub(crate) fn to_stderr(format: LogFormat) -> io::Result<Self> {
        // A file of its own: the lock of `io::stderr` would be held during a write that blocks.
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        Self::start(format, stderr)
    }

    pub(super) fn start(format: LogFormat, out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Shared {
            state: Mutex::default(),
            filled: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
        };
        let queue = Self(Arc::new(shared));
        let writer = Writer::new(queue.clone(), format, out);
        // Ends with the process, and is not waited for: it may be blocked.
        thread::Builder::new().name("log".to_owned()).spawn(|| writer.run())?;
        Ok(queue)
    }

    /// All lines dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Whether the limit of its callsite lets a line pass. `message` is asked for when it begins to suppress lines.
    pub(super) fn admits(
        &self,
        metadata: &'static Metadata<'static>,
        message: impl FnOnce() -> String,
    ) -> bool {
        if !CallsiteLimits::apply_to(metadata) {
            return true;
        }
        let admission = self.lock().limits.admit(metadata, Instant::now(), SystemClock.now());
        if admission == Admission::FirstSuppressed {
            // Without the lock: it runs code of the caller, which may log.
            let like = message();
            self.lock().limits.describe(metadata, like);
            self.0.filled.notify_one();
        }
        admission == Admission::Logged
    }

    /// Waits until what is queued by now is written, for at most `within`.
    pub(super) fn flush(&self, within: Duration) {
        let state = self.lock();
        let queued = state.queued;
        self.wait_while(state, within, |state| state.done < queued);
    }

    /// Waits until everything is written, reports of suppressed lines included, for at most `within`.
    pub(crate) fn end(&self, within: Duration) {
        let mut state = self.lock();
        state.is_ending = true;
        self.0.filled.notify_one();
        self.wait_while(state, within, |state| {
            state.done < state.queued || state.limits.next_due().is_some()
        });
    }

    /// Adds a line, or drops it if the queue is full.
    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        let is_idle = state.lines.is_empty() && state.dropped.is_none();
        state.queued += 1;
        if state.dropped.is_none() && state.lines.len() + line.len() <= MAX_BYTES {
            state.lines.extend_from_slice(line);
        } else {
            let lines = self.drop_lines(line);
            let dropped = state.dropped.take();
            state.dropped = DroppedLines::add(dropped, lines);
        }
        drop(state);
        if is_idle {
            self.0.filled.notify_one();
        }
    }

    /// Counts lines that are not written.
    fn drop_lines(&self, text: &[u8]) -> u64 {
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.0.dropped.fetch_add(lines, Ordering::Relaxed);
        lines
    }

    /// Waits for something to write. `spare` becomes the buffer of further lines.
    fn next(&self, spare: Vec<u8>) -> Batch {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let due = if state.is_ending { None } else { Some(now) };
            let suppressed = state.limits.take_due(due);
            if !suppressed.is_empty() {
                state.queued += 1;
            }
            if state.done < state.queued {
                let lines = std::mem::replace(&mut state.lines, spare);
                return Batch { lines, dropped: state.dropped.take(), suppressed, until: state.queued };
            }
            let wait = state.limits.next_due().map(|due| due.saturating_duration_since(now));
            state = match wait {
                Some(wait) => recover(self.0.filled.wait_timeout(state, wait)).0,
                None => recover(self.0.filled.wait(state)),
            };
        }
    }

    /// Records that a batch is written, or lost.
    fn finish(&self, until: u64) {
        self.lock().done = until;
        self.0.written.notify_all();
    }

    fn wait_while(
        &self,
        state: MutexGuard<'_, State>,
        within: Duration,
        is_waiting: impl Fn(&State) -> bool,
    ) {
        drop(recover(self.0.written.wait_timeout_while(state, within, |state| is_waiting(state))));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        recover(self.0.state.lock())
    }
}

impl DroppedLines {
    fn add(before: Option<Self>, lines: u64) -> Option<Self> {
        let since = before.map_or_else(|| SystemClock.now(), |before| before.since);
        let lines = before.map_or(0, |before| before.lines) + lines;
        (lines > 0).then_some(Self { lines, since })
    }
}

/// A formatted line is one write.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The state is consistent whenever a thread may panic.
fn recover<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Lines, PipeReader};
    use std::sync::atomic::AtomicBool;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// A queue before a pipe, and the lines that come out of it.
    fn piped() -> (LogQueue, Lines<BufReader<PipeReader>>) {
        let (reader, out) = io::pipe().unwrap();
        (LogQueue::start(LogFormat::Text, out).unwrap(), BufReader::new(reader).lines())
    }

    #[test]
    fn lines_that_do_not_fit_are_dropped_and_reported_where_they_are_missing() {
        let (queue, mut lines) = piped();
        let line = [vec![b'x'; 99], b"\n".to_vec()].concat();
        // Nobody reads, so the pipe is full soon, and then the queue.
        (0..30_000).for_each(|_| queue.push(&line));
        let dropped = queue.dropped();
        assert!((1..30_000).contains(&dropped), "{dropped}");
        queue.flush(Duration::from_millis(1));
        queue.end(Duration::from_millis(1));
        // There is more than one report if the queue was full before the thread of the writer began.
        let (mut written, mut reported) = (0, 0);
        while written + reported < 30_000 {
            let line = lines.next().unwrap().unwrap();
            if line.starts_with('x') {
                written += 1;
                continue;
            }
            assert!(line.contains("ERROR ringback_service::telemetry: log lines were dropped"), "{line}");
            let field = line.split(" lines=").nth(1).and_then(|rest| rest.split_once(" since="));
            reported += field.unwrap().0.parse::<u64>().unwrap();
        }
        assert_eq!((written + reported, reported), (30_000, dropped));
        queue.push(b"after\n");
        assert_eq!((lines.next().unwrap().unwrap().as_str(), queue.dropped()), ("after", dropped));
    }

    #[test]
    fn what_waits_is_bounded_in_bytes() {
        let (queue, _lines) = piped();
        // More than a pipe holds: the writer has taken it, and is blocked.
        queue.push(&[b'x'; 500_000]);
        while !queue.lock().lines.is_empty() {
            thread::yield_now();
        }
        (0..300).for_each(|_| queue.push(&[b'x'; 10_000]));
        let waiting = queue.lock().lines.len();
        assert!(waiting <= MAX_BYTES && waiting > MAX_BYTES - 10_000, "{waiting}");
    }

    #[test]
    fn a_line_larger_than_the_queue_is_dropped_alone() {
        let (queue, mut lines) = piped();
        queue.push(&[vec![b'x'; MAX_BYTES], b"\n".to_vec()].concat());
        assert!(lines.next().unwrap().unwrap().contains(" lines=1 since="));
        queue.push(b"after\n");
        assert_eq!(lines.next().unwrap().unwrap(), "after");
    }

    /// Text that is written while `is_broken` is not set.
    #[derive(Clone, Default)]
    struct Fragile {
        is_broken: Arc<AtomicBool>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Fragile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.is_broken.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.text.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_reported_with_the_next_one() {
        let out = Fragile::default();
        let queue = LogQueue::start(LogFormat::Text, out.clone()).unwrap();
        out.is_broken.store(true, Ordering::SeqCst);
        for _ in 0..3 {
            queue.push(b"lost\n");
            queue.flush(SOON);
        }
        assert_eq!(queue.dropped(), 3);
        out.is_broken.store(false, Ordering::SeqCst);
        queue.push(b"written\n");
        queue.flush(SOON);
        let text = String::from_utf8(out.text.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("written\n") && text.contains(" lines=3 since="), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
