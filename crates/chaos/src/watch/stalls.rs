//! Detects times in which the machine did not run this program. The checker adds them to the shortest of its limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ringback_testkit::history::{Entry, History, Stall, StallOf};

/// How long the thread sleeps at a time, in µs.
const PAUSE_US: u64 = 20_000;
/// Waking up later than this is written down, in µs. A thread that only sleeps is let go on within milliseconds, also
/// where many others want to run.
const LATE: u64 = 100_000;

/// A thread that detects stalls until this is dropped.
pub(super) struct Stalls(Arc<AtomicBool>);

impl Stalls {
    #[expect(clippy::disallowed_methods, reason = "a thread of its own, which no runtime waits for")]
    pub(super) fn watch(history: History) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let since = history.t() + PAUSE_US;
                thread::sleep(Duration::from_micros(PAUSE_US));
                let t = history.t();
                if t > since + LATE {
                    history.write(&Entry::Stall(Stall { t, since, of: StallOf::Machine }));
                }
            }
        });
        Self(is_over)
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
