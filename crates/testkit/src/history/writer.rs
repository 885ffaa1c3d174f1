//! Writes a history while the run goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::entry::Entry;
use crate::time::now;

/// The bytes that are buffered.
const BUFFER: usize = 1 << 20;

/// A history that is being written. Clones write into the same file, from any task.
#[derive(Clone)]
pub struct History(Arc<Shared>);

struct Shared {
    started: Instant,
    wall: u64,
    next: AtomicU64,
    file: Mutex<BufWriter<File>>,
}

impl History {
    /// Starts a history in a new file. Its first entry must be a start line, with the [wall clock](Self::wall).
    ///
    /// # Errors
    /// When the file exists or cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).open(path)?;
        Ok(Self(Arc::new(Shared {
            started: Instant::now(),
            wall: u64::try_from(now().as_microsecond()).expect("it is after 1970"),
            next: AtomicU64::new(1),
            file: Mutex::new(BufWriter::with_capacity(BUFFER, file)),
        })))
    }

    /// The time for an entry: microseconds of the monotonic clock since the start.
    pub fn t(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_micros()).expect("a run is shorter than that")
    }

    /// The wall clock at the start, in microseconds since 1970.
    pub fn wall(&self) -> u64 {
        self.0.wall
    }

    /// A number that no other call, delivery or fault has.
    pub fn next(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Appends a line to the buffer, which goes into the file when it is full or flushed.
    pub fn write(&self, entry: &Entry<'_>) {
        let mut line = serde_json::to_vec(entry).expect("an entry has only names for keys");
        line.push(b'\n');
        self.file().write_all(&line).expect("the history can be written");
    }

    /// Writes what is buffered into the file.
    pub fn flush(&self) {
        self.file().flush().expect("the history can be written");
    }

    fn file(&self) -> std::sync::MutexGuard<'_, BufWriter<File>> {
        self.0.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
