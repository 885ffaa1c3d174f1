//! The queue between the code that logs and stderr. One thread writes to stderr, so a pipe that nobody reads blocks
//! that thread and nothing else. When too much waits, lines are dropped and counted, and the log says so later.
//!
//! Why not `tracing_appender::non_blocking`: it bounds lines and not bytes, and cannot flush within a time, as a process
//! that panics must.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ringback_core::clock::{Clock as _, SystemClock};
use tokio::time::Instant;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::callsite_limits::{Admission, CallsiteLimits, SuppressedLines};
use super::log_format::{LogFormat, MissingLines};

/// The most bytes that wait to be written.
const MAX_BYTES: usize = 1024 * 1024;
/// The most bytes of a write, unless a line is longer. A pipe takes as much (`PIPE_BUF`) in one piece, so lines of
/// several processes that share a pipe do not mix.
const MAX_WRITE: usize = 4096;
/// The target of lines about the log itself.
const TARGET: &str = "ringback_service::telemetry";

/// The queue. Clones share it.
#[derive(Clone)]
pub(crate) struct LogQueue {
    messages: Sender<Message>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Bytes that wait.
    waiting: AtomicUsize,
    /// All lines dropped since the start.
    dropped: AtomicU64,
    limits: Mutex<CallsiteLimits>,
}

/// A message to the writer.
enum Message {
    Line(Vec<u8>),
    /// Lines are suppressed: their report has a time.
    Suppressed,
    /// Say that all before it is written.
    Flush(Sender<()>),
    /// Write the reports of suppressed lines too, though their time has not come, then say so.
    End(Sender<()>),
}

impl LogQueue {
    /// Starts the thread that writes to stderr.
    pub(crate) fn to_stderr(format: LogFormat) -> io::Result<Self> {
        // A file of its own: the lock of `io::stderr` would be held during a write that blocks.
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        Self::start(format, stderr)
    }

    pub(super) fn start(format: LogFormat, out: impl Write + Send + 'static) -> io::Result<Self> {
        let (messages, received) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let writer = Writer { shared: Arc::clone(&shared), format, out, lines: Vec::new(), reported: 0 };
        // Ends with the process, and is not waited for: it may be blocked.
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&received))?;
        Ok(Self { messages, shared })
    }

    /// All lines dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Whether the limit of its callsite lets a line pass. `message` is called for the first line that is suppressed.
    pub(super) fn admits(
        &self,
        metadata: &'static Metadata<'static>,
        message: impl FnOnce() -> String,
    ) -> bool {
        if !CallsiteLimits::apply_to(metadata) {
            return true;
        }
        let admission = self.shared.limits().admit(metadata, Instant::now(), SystemClock.now());
        if admission == Admission::FirstSuppressed {
            // Without the lock: it runs code of the caller, which may log.
            let like = message();
            self.shared.limits().describe(metadata, like);
            self.messages.send(Message::Suppressed).ok();
        }
        admission == Admission::Logged
    }

    /// Waits until what is queued by now is written, for at most `within`.
    pub(super) fn flush(&self, within: Duration) {
        self.wait(Message::Flush, within);
    }

    /// Waits until everything is written, reports of suppressed lines included, for at most `within`.
    pub(crate) fn end(&self, within: Duration) {
        self.wait(Message::End, within);
    }

    fn wait(&self, message: impl FnOnce(Sender<()>) -> Message, within: Duration) {
        let (done, is_done) = mpsc::channel();
        self.messages.send(message(done)).ok();
        is_done.recv_timeout(within).ok();
    }

    /// Adds a line, or drops it if too much waits.
    fn push(&self, line: &[u8]) {
        let fits = |waiting: usize| Some(waiting + line.len()).filter(|bytes| *bytes <= MAX_BYTES);
        if self.shared.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
            self.messages.send(Message::Line(line.to_vec())).ok();
        } else {
            self.shared.drop_lines(line);
        }
    }
}

impl Shared {
    /// Counts the lines of a text that is not written.
    fn drop_lines(&self, text: &[u8]) {
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    /// The limits. A thread that panics leaves them consistent, so they are used after a panic too.
    fn limits(&self) -> MutexGuard<'_, CallsiteLimits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Writes what is in the queue. A write that fails loses its lines and ends nothing.
struct Writer<W> {
    shared: Arc<Shared>,
    format: LogFormat,
    out: W,
    /// The lines of the next write.
    lines: Vec<u8>,
    /// How many of the dropped lines the log mentions.
    reported: u64,
}

impl<W: Write> Writer<W> {
    /// Runs as long as the process.
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            match messages.try_recv().or_else(|_| self.next(messages)) {
                Ok(Message::Line(line)) => {
                    if self.lines.len() + line.len() > MAX_WRITE {
                        self.write();
                    }
                    self.lines.extend(line);
                }
                Ok(Message::Flush(done)) => {
                    self.report(Some(Instant::now()));
                    done.send(()).ok();
                }
                Ok(Message::End(done)) => {
                    self.report(None);
                    done.send(()).ok();
                }
                Ok(Message::Suppressed) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Writes and reports what there is, then waits for the next message or for the time of a report.
    fn next(&mut self, messages: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        self.report(Some(Instant::now()));
        let due = self.shared.limits().next_due();
        match due {
            Some(due) => messages.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn write(&mut self) {
        if !self.lines.is_empty() && self.out.write_all(&self.lines).is_err() {
            self.shared.drop_lines(&self.lines);
        }
        self.shared.waiting.fetch_sub(self.lines.len(), Ordering::Relaxed);
        self.lines.clear();
    }

    /// Writes what there is, then how many lines were dropped, and the reports of suppressed lines that are due at
    /// `now`; all of them if that is `None`.
    fn report(&mut self, now: Option<Instant>) {
        self.write();
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if dropped > self.reported {
            let message = "log lines were dropped: stderr did not take them in time";
            let (level, lines) = (Level::ERROR, dropped - self.reported);
            let line = MissingLines { level, target: TARGET, message, like: None, lines, since: None };
            // Otherwise the next report includes them.
            if self.out.write_all(line.line(self.format, SystemClock.now()).as_bytes()).is_ok() {
                self.reported = dropped;
            }
        }
        let due = self.shared.limits().take_due(now);
        for SuppressedLines { level, target, like, lines, since, .. } in due {
            let (message, like) = ("similar lines were suppressed", Some(like.as_str()));
            let line = MissingLines { level, target, message, like, lines, since: Some(since) };
            let line = line.line(self.format, SystemClock.now());
            if self.out.write_all(line.as_bytes()).is_err() {
                self.shared.drop_lines(line.as_bytes());
            }
        }
    }
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
    fn lines_that_do_not_fit_are_dropped_and_reported() {
        let (queue, mut lines) = piped();
        let line = [vec![b'x'; 99], b"\n".to_vec()].concat();
        // Nobody reads, so the pipe is full soon, and then the queue.
        (0..30_000).for_each(|_| queue.push(&line));
        let dropped = queue.dropped();
        assert!((1..30_000).contains(&dropped), "{dropped}");
        queue.flush(Duration::from_millis(1));
        queue.end(Duration::from_millis(1));
        // There is more than one report if the queue was empty meanwhile.
        let (mut written, mut reported) = (0, 0);
        while written + reported < 30_000 {
            let line = lines.next().unwrap().unwrap();
            if line.starts_with('x') {
                written += 1;
                continue;
            }
            assert!(line.contains("ERROR ringback_service::telemetry: log lines were dropped"), "{line}");
            reported += line.split(" lines=").nth(1).unwrap().parse::<u64>().unwrap();
        }
        assert_eq!((written + reported, reported), (30_000, dropped));
        queue.push(b"after\n");
        assert_eq!((lines.next().unwrap().unwrap().as_str(), queue.dropped()), ("after", dropped));
    }

    #[test]
    fn what_waits_is_bounded_in_bytes() {
        let (queue, _lines) = piped();
        (0..300).for_each(|_| queue.push(&[b'x'; 10_000]));
        let waiting = queue.shared.waiting.load(Ordering::Relaxed);
        // A pipe holds 64 KiB, and a write may be under way.
        assert!(waiting <= MAX_BYTES && waiting > MAX_BYTES - 100_000, "{waiting}");
    }

    #[test]
    fn a_line_larger_than_the_queue_is_dropped_alone() {
        let (queue, mut lines) = piped();
        queue.push(&[vec![b'x'; MAX_BYTES], b"\n".to_vec()].concat());
        queue.push(b"after\n");
        assert_eq!(lines.next().unwrap().unwrap(), "after");
        assert!(lines.next().unwrap().unwrap().ends_with(" lines=1"));
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
        assert!(text.starts_with("written\n") && text.contains(" lines=3\n"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
