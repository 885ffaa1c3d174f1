//! The file of the database, written and synced by a thread of its own, so that a commit of redb does not hold the
//! writer of the store while the disk works. The thread takes every step of redb in its order, so at any time the file
//! is as redb could have left it at a crash; the redo log has what it lacks. Reads see the steps that are still to come.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use crate::error::Result as StoreResult;
use crate::location::lock;
use crate::redo_log::log::Disk;

/// The most bytes that are written between two syncs, so that a sync of the redo log waits for no more than these. One
/// page of redb can be longer.
pub(crate) const PIECE: usize = 1024 * 1024;
/// The most bytes that wait to be written. Whoever writes more waits.
const MOST: usize = 64 * 1024 * 1024;

/// The length of most writes, and how many of their buffers are kept to be used again: fresh memory has to be zeroed by
/// the kernel, which took half of the time of a commit.
const PAGE: usize = 4096;
const BUFFERS: usize = 8192;

/// One thing that redb does to its file.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Arc<[u8]>),
    SetLength(u64),
    Sync,
}

impl Step {
    fn bytes(&self) -> usize {
        match self {
            Self::Write(_, bytes) => bytes.len(),
            Self::SetLength(_) | Self::Sync => 0,
        }
    }
}

/// The steps that are not done yet.
#[derive(Debug, Default)]
struct Steps {
    waiting: VecDeque<Step>,
    /// The writes that are not in the file yet, by offset and number of the step.
    writes: BTreeMap<(u64, u64), Arc<[u8]>>,
    /// Buffers of [`PAGE`] bytes that nobody uses.
    buffers: Vec<Arc<[u8]>>,
    /// No write among them is longer, in bytes.
    longest: u64,
    /// The bytes of all writes that are not done.
    bytes: usize,
    /// How many steps are waiting that are not writes.
    others: usize,
    /// The length of the file after all steps.
    length: u64,
    /// How many steps were added, and how many of them are done.
    added: u64,
    done: u64,
    /// Whether a sync of redb returns before it is done.
    is_behind: bool,
    is_closed: bool,
    failed: Option<Arc<io::Error>>,
}

impl Steps {
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some(error) => Err(io::Error::new(error.kind(), Arc::clone(error))),
            None => Ok(()),
        }
    }

    fn add(&mut self, step: Step) {
        self.bytes += step.bytes();
        self.added += 1;
        if let Step::Write(at, bytes) = &step {
            self.longest = self.longest.max(bytes.len() as u64);
            self.writes.insert((*at, self.added), Arc::clone(bytes));
        } else {
            self.others += 1;
        }
        self.waiting.push_back(step);
    }

    /// Whether there is enough to do: writes alone can wait until they are a piece.
    fn is_piece(&self) -> bool {
        self.bytes >= PIECE || self.others > 0
    }

    /// Takes the next steps that are done at once: writes of about [`PIECE`], or another step.
    fn piece(&mut self) -> Vec<Step> {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while let Some(step) = self.waiting.front() {
            let is_write = matches!(step, Step::Write(..));
            if !piece.is_empty() && (!is_write || bytes + step.bytes() > PIECE) {
                break;
            }
            bytes += step.bytes();
            piece.extend(self.waiting.pop_front());
            if !is_write {
                self.others -= 1;
                break;
            }
        }
        piece
    }

    /// Returns a copy of what is written, in a buffer that was used before if there is one.
    fn copy(&mut self, data: &[u8]) -> Arc<[u8]> {
        if data.len() == PAGE
            && let Some(mut buffer) = self.buffers.pop()
            && let Some(bytes) = Arc::get_mut(&mut buffer)
        {
            bytes.copy_from_slice(data);
            return buffer;
        }
        data.into()
    }

    /// Records that the steps of a piece are done.
    fn finish(&mut self, piece: Vec<Step>) {
        for step in piece {
            self.done += 1;
            self.bytes -= step.bytes();
            let Step::Write(at, bytes) = step else { continue };
            self.writes.remove(&(at, self.done));
            if bytes.len() == PAGE && self.buffers.len() < BUFFERS {
                self.buffers.push(bytes);
            }
        }
        if self.writes.is_empty() {
            self.longest = 0;
        }
    }

    /// Returns the writes in a range that are not in the file yet, with their offsets, in the order of their steps.
    fn within(&self, start: u64, end: u64) -> Vec<(u64, Arc<[u8]>)> {
        let found = self.writes.range((start.saturating_sub(self.longest), 0)..(end, 0));
        let mut found: Vec<_> = found.filter(|((at, _), bytes)| at + bytes.len() as u64 > start).collect();
        found.sort_by_key(|((_, number), _)| *number);
        found.into_iter().map(|((at, _), bytes)| (*at, Arc::clone(bytes))).collect()
    }
}

#[derive(Debug, Default)]
struct Shared {
    steps: Mutex<Steps>,
    /// Notified when steps were added or done, or none will be.
    changed: Condvar,
}

impl Shared {
    fn wait_while(&self, mut condition: impl FnMut(&Steps) -> bool) -> MutexGuard<'_, Steps> {
        let condition = |steps: &mut Steps| condition(steps);
        self.changed.wait_while(lock(&self.steps), condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all steps up to this number are done. Fails if one cannot be done.
    fn wait_for(&self, step: u64) -> io::Result<()> {
        self.wait_while(|steps| steps.done < step && steps.failed.is_none()).check()
    }

    /// Does the steps in their order, until the file is closed or one fails.
    fn run(&self, file: &File, disk: &dyn Disk) {
        let mut unsynced = 0;
        loop {
            let mut steps = self.wait_while(|steps| !steps.is_piece() && !steps.is_closed);
            let piece = steps.piece();
            drop(steps);
            if piece.is_empty() {
                return;
            }
            let result = perform(&piece, &mut unsynced, file, disk);
            let mut steps = lock(&self.steps);
            match result {
                Ok(()) => steps.finish(piece),
                Err(error) => steps.failed = Some(Arc::new(error)),
            }
            let has_failed = steps.failed.is_some();
            drop(steps);
            self.changed.notify_all();
            if has_failed {
                return;
            }
        }
    }
}

/// Does the steps of a piece. `unsynced` counts the bytes that were written since the last sync.
fn perform(piece: &[Step], unsynced: &mut usize, file: &File, disk: &dyn Disk) -> io::Result<()> {
    let bytes = piece.iter().map(Step::bytes).sum::<usize>();
    if *unsynced > 0 && *unsynced + bytes > PIECE {
        disk.sync()?;
        *unsynced = 0;
    }
    for step in piece {
        match step {
            Step::Write(at, page) => disk.write(page, *at)?,
            Step::SetLength(length) => file.set_len(*length)?,
            Step::Sync => {
                disk.sync()?;
                *unsynced = 0;
            }
        }
    }
    *unsynced += bytes;
    Ok(())
}

/// Tells how far the file of an open database is.
#[derive(Clone, Debug)]
pub(crate) struct WriteBehind(Arc<Shared>);

impl WriteBehind {
    /// From now on, syncs of redb return at once. To be called only while a redo log has what the file may lack.
    pub(crate) fn begin(&self) {
        lock(&self.0.steps).is_behind = true;
    }

    /// From now on, syncs of redb return when they are done. Waits until all former ones are.
    pub(crate) fn end(&self) -> io::Result<()> {
        let mut steps = lock(&self.0.steps);
        steps.is_behind = false;
        // Without it, the last writes would wait for more.
        steps.add(Step::Sync);
        let last = steps.added;
        drop(steps);
        self.0.changed.notify_all();
        self.0.wait_for(last)
    }

    /// Returns the number of the last step that redb has made.
    pub(crate) fn added(&self) -> u64 {
        lock(&self.0.steps).added
    }

    /// Whether all steps up to this number are done. Fails if one cannot be done.
    pub(crate) fn has_done(&self, step: u64) -> io::Result<bool> {
        let steps = lock(&self.0.steps);
        steps.check()?;
        Ok(steps.done >= step)
    }

    /// Waits until one more piece is done, unless all steps up to this number are.
    pub(crate) fn wait_for_piece(&self, step: u64) {
        let done = lock(&self.0.steps).done;
        drop(self.0.wait_while(|steps| steps.done == done && done < step && steps.failed.is_none()));
    }
}

/// The file as redb uses it.
#[derive(Debug)]
pub(crate) struct Backend {
    /// Holds the locks.
    locks: FileBackend,
    file: File,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Backend {
    /// Starts the thread that writes a file. `wrap` makes its disk.
    pub(crate) fn new(
        file: File,
        wrap: impl FnOnce(File) -> Box<dyn Disk>,
    ) -> StoreResult<(Self, WriteBehind)> {
        let shared = Arc::new(Shared::default());
        lock(&shared.steps).length = file.metadata()?.len();
        let (disk, resized, of_thread) = (wrap(file.try_clone()?), file.try_clone()?, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("ringback-file".to_owned());
        let thread = Mutex::new(Some(thread.spawn(move || of_thread.run(&resized, &*disk))?));
        let backend =
            Self { locks: FileBackend::new(file.try_clone()?)?, file, shared: Arc::clone(&shared), thread };
        Ok((backend, WriteBehind(shared)))
    }

    /// Adds the step that `make` returns.
    fn add(&self, make: impl FnOnce(&mut Steps) -> Step) -> io::Result<()> {
        let mut steps = self.shared.wait_while(|steps| steps.bytes > MOST && steps.failed.is_none());
        steps.check()?;
        let step = make(&mut steps);
        steps.add(step);
        let is_piece = steps.is_piece();
        drop(steps);
        if is_piece {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Does what is left to do, and ends the thread.
    fn end(&self) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        let Some(thread) = thread.take() else { return Ok(()) };
        lock(&self.shared.steps).is_closed = true;
        self.shared.changed.notify_all();
        let ended = thread.join();
        lock(&self.shared.steps).check()?;
        ended.map_err(|_panic| io::Error::other("the thread that writes the file has panicked"))
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        // Whoever needs the end has called `close`.
        let _ = self.end();
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.shared.steps).length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset + out.len() as u64;
        let steps = lock(&self.shared.steps);
        steps.check()?;
        if end > steps.length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let writes = steps.within(offset, end);
        drop(steps);
        // What was done since is in the file, and nobody writes what another one reads.
        read_file(&self.file, offset, out)?;
        for (at, bytes) in writes {
            let (from, to) = (at.max(offset), end.min(at + bytes.len() as u64));
            out[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.add(|steps| {
            steps.length = len;
            Step::SetLength(len)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.add(|_| Step::Sync)?;
        let steps = lock(&self.shared.steps);
        let (is_behind, step) = (steps.is_behind, steps.added);
        drop(steps);
        if is_behind { Ok(()) } else { self.shared.wait_for(step) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.add(|steps| Step::Write(offset, steps.copy(data)))
    }

    fn close(&self) -> io::Result<()> {
        let ended = self.end();
        self.locks.close()?;
        ended
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.locks.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.locks.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.locks.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.locks.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.locks.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.locks.query_lock_range(start, end)
    }
}

/// Reads a range of a file. What is behind its end are zeros.
fn read_file(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match file.read_at(out, offset) {
            Ok(0) => {
                out.fill(0);
                return Ok(());
            }
            Ok(read) => {
                offset += read as u64;
                out = &mut out[read..];
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
