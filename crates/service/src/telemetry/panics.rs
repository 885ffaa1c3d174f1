//! Panics as log lines. The hook of the standard library writes to stderr itself, which blocks the thread that panics
//! if nobody reads.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic;
use std::thread;
use std::time::Duration;

use super::log_queue::LogQueue;

/// How long a panic waits until its line is written. The process may abort next, and then nothing else writes it.
const FLUSH: Duration = Duration::from_millis(100);

/// Logs panics from now on.
pub(super) fn log(queue: LogQueue) {
    panic::set_hook(Box::new(move |info| {
        let backtrace = Backtrace::capture();
        let is_captured = backtrace.status() == BacktraceStatus::Captured;
        tracing::error!(
            panic = payload(info.payload()),
            location = info.location().map(tracing::field::display),
            thread = thread::current().name(),
            backtrace = is_captured.then(|| tracing::field::display(&backtrace)),
            "a thread panicked"
        );
        queue.flush(FLUSH);
    }));
}

/// The message of a panic, which is text unless somebody panics with a value.
fn payload(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("not a text")
}
