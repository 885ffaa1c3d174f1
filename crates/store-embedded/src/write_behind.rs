//! The file of the database, written and synced by a thread of its own, so that a commit of redb does not hold the
//! writer of the store while the disk works. The thread takes every step of redb in its order, so after a
//! crash redb can open the file, and the redo log has the changes that are not in it. Reads see writes that still wait.

mod steps;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use ringback_core::crash_point;

use self::steps::{PIECE, Step, Steps};
use crate::error::Result as StoreResult;
use crate::mutex::lock;
use crate::redo_log::log::Disk;

/// The most bytes that wait to be written. Whoever writes more waits.
const MOST: usize = 64 * 1024 * 1024;

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
        let _on_panic = OnPanic(self);
        let mut unsynced = 0;
        loop {
            let mut steps = self.wait_while(|steps| !steps.is_piece() && !steps.is_closed);
            let (piece, is_behind) = (steps.piece(), steps.is_behind);
            drop(steps);
            if piece.is_empty() {
                return;
            }
            let result = perform(&piece, &mut unsynced, file, disk);
            if is_behind {
                crash_point!("embedded.in_checkpoint");
            }
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

/// Fails the steps that are left if the thread panics, so that nobody waits for them.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = io::Error::other("the thread that writes the file has panicked");
            lock(&self.0.steps).failed = Some(Arc::new(error));
            self.0.changed.notify_all();
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
    /// From now on, syncs of redb return at once. Only while the redo log has all changes that are not in the file.
    pub(crate) fn begin(&self) {
        lock(&self.0.steps).is_behind = true;
    }

    /// From now on, syncs of redb return when they are done. Waits until all former ones are.
    pub(crate) fn end(&self) -> io::Result<()> {
        let mut steps = lock(&self.0.steps);
        steps.is_behind = false;
        // Without it, the last writes would wait for more.
        let last = steps.add(Step::Sync);
        drop(steps);
        self.0.changed.notify_all();
        self.0.wait_for(last)
    }

    /// Returns the number of the last sync of redb, which makes its last commit safe. Writes may follow it, and wait
    /// until they are a piece.
    pub(crate) fn last_sync(&self) -> u64 {
        lock(&self.0.steps).last_sync
    }

    /// Whether all steps up to this number are done. Fails if one cannot be done.
    pub(crate) fn has_done(&self, step: u64) -> io::Result<bool> {
        let steps = lock(&self.0.steps);
        steps.check()?;
        Ok(steps.done >= step)
    }

    /// Waits until all steps up to this number, which is that of a sync, are done. Fails if one cannot be done.
    pub(crate) fn wait_for(&self, sync: u64) -> io::Result<()> {
        self.0.wait_for(sync)
    }

    /// Waits until one more piece is done, unless all steps up to this number, which is that of a sync, are.
    pub(crate) fn wait_for_piece(&self, sync: u64) {
        let done = lock(&self.0.steps).done;
        drop(self.0.wait_while(|steps| steps.done == done && done < sync && steps.failed.is_none()));
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
        let locks = FileBackend::new(file.try_clone()?)?;
        let (shared, disk, resized) = (Arc::<Shared>::default(), wrap(file.try_clone()?), file.try_clone()?);
        let (thread, of_thread) = (std::thread::Builder::new(), Arc::clone(&shared));
        let thread =
            thread.name("ringback-file".to_owned()).spawn(move || of_thread.run(&resized, &*disk))?;
        let backend = Self { locks, file, shared: Arc::clone(&shared), thread: Mutex::new(Some(thread)) };
        Ok((backend, WriteBehind(shared)))
    }

    /// Adds the step that `make` returns. Returns its number, and whether redb waits for no sync.
    fn add(&self, make: impl FnOnce(&mut Steps) -> Step) -> io::Result<(u64, bool)> {
        let mut steps = self.shared.wait_while(|steps| steps.bytes > MOST && steps.failed.is_none());
        steps.check()?;
        let step = make(&mut steps);
        let (number, is_behind, is_piece) = (steps.add(step), steps.is_behind, steps.is_piece());
        drop(steps);
        if is_piece {
            self.shared.changed.notify_all();
        }
        Ok((number, is_behind))
    }

    /// Returns the length of the file after all steps. It is looked up only when redb asks, which has its locks by then:
    /// before, another process may change it.
    fn length(&self, steps: &mut Steps) -> io::Result<u64> {
        if let Some(length) = steps.length {
            return Ok(length);
        }
        let length = self.file.metadata()?.len();
        steps.length = Some(length);
        Ok(length)
    }

    /// Does what is left to do, and ends the thread.
    fn end(&self) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        let Some(thread) = thread.take() else { return Ok(()) };
        lock(&self.shared.steps).is_closed = true;
        self.shared.changed.notify_all();
        // A panic is the error of the check.
        let _ = thread.join();
        lock(&self.shared.steps).check()
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
        self.length(&mut lock(&self.shared.steps))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(out.len() as u64);
        let mut steps = lock(&self.shared.steps);
        steps.check()?;
        if end > self.length(&mut steps)? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (writes, is_resized) = (steps.within(offset, end), steps.is_resized());
        drop(steps);
        // What was done since is in the file, and nobody writes what another one reads. A range that was cut off and
        // is there again may show its former bytes, but redb reads no page that it has not written since.
        let zeros = read_file(&self.file, offset, out)?;
        if zeros > 0 && !is_resized {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        for (at, bytes) in writes {
            let (from, to) = (at.max(offset), end.min(at + bytes.len() as u64));
            out[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.add(|_| Step::SetLength(len)).map(drop)
    }

    fn sync_data(&self) -> io::Result<()> {
        let (step, is_behind) = self.add(|_| Step::Sync)?;
        if is_behind { Ok(()) } else { self.shared.wait_for(step) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.add(|steps| Step::Write(offset, steps.copy(data))).map(drop)
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

/// Reads a range of a file. What is behind its end are zeros; returns how many.
fn read_file(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<usize> {
    while !out.is_empty() {
        match file.read_at(out, offset) {
            Ok(0) => {
                out.fill(0);
                return Ok(out.len());
            }
            Ok(read) => {
                offset += read as u64;
                out = &mut out[read..];
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(0)
}
