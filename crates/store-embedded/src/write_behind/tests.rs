//! Tests of the file that is written behind redb: what reads see, in which order steps are done, how much is written
//! between two syncs, who waits for how long, and what comes after a failure.

use std::fs::File;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::*;

const MIB: usize = 1024 * 1024;

/// A step as the disk got it: the offset and the length of a write, or a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskStep {
    Write(u64, usize),
    Sync,
}

/// A disk that does one step for each permit, and records it. It fails once there are no more permits.
struct PacedDisk {
    file: File,
    permits: Mutex<Receiver<()>>,
    done: Arc<Mutex<Vec<DiskStep>>>,
}

impl PacedDisk {
    fn step(&self, step: DiskStep) -> io::Result<()> {
        lock(&self.permits).recv().map_err(|_| io::Error::from(ErrorKind::StorageFull))?;
        lock(&self.done).push(step);
        Ok(())
    }
}

impl Disk for PacedDisk {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.step(DiskStep::Write(at, bytes.len()))?;
        self.file.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.step(DiskStep::Sync)
    }
}

struct BrokenDisk;

impl Disk for BrokenDisk {
    fn write(&self, _bytes: &[u8], _at: u64) -> io::Result<()> {
        panic!("a fault of ours")
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

struct Slow {
    // Dropped first, so that a test that fails ends.
    permits: Sender<()>,
    backend: Backend,
    behind: WriteBehind,
    done: Arc<Mutex<Vec<DiskStep>>>,
    file: tempfile::NamedTempFile,
}

fn slow() -> Slow {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ((permits, permitted), done) = (channel(), Arc::<Mutex<Vec<DiskStep>>>::default());
    let of_disk = Arc::clone(&done);
    let wrap = move |file| {
        Box::new(PacedDisk { file, permits: Mutex::new(permitted), done: of_disk }) as Box<dyn Disk>
    };
    let (backend, behind) = Backend::new(file.reopen().unwrap(), wrap).unwrap();
    behind.begin();
    Slow { permits, backend, behind, done, file }
}

impl Slow {
    fn permit(&self, steps: usize) {
        (0..steps).for_each(|_| self.permits.send(()).unwrap());
    }

    fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let mut out = vec![9; length];
        self.backend.read(at, &mut out).unwrap();
        out
    }
}

#[test]
fn reads_see_what_was_written_before_the_file_has_it_and_after() {
    let slow = slow();
    slow.backend.set_len(16).unwrap();
    slow.backend.write(4, &[1; 8]).unwrap();
    slow.backend.write(8, &[2; 4]).unwrap();
    slow.backend.write(4, &[3; 2]).unwrap();
    slow.backend.sync_data().unwrap();
    let sees = [0, 0, 0, 0, 3, 3, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0];
    assert_eq!(slow.backend.len().unwrap(), 16);
    for (at, length) in [(4, 2), (8, 4), (9, 2), (12, 4), (0, 4), (0, 16), (5, 6)] {
        assert_eq!(slow.read(at, length), sees[at as usize..at as usize + length]);
    }
    for (at, length) in [(12, 5), (16, 1), (u64::MAX, 2)] {
        let beyond = slow.backend.read(at, &mut vec![0; length]).expect_err("the file is shorter");
        assert_eq!(beyond.kind(), ErrorKind::UnexpectedEof);
    }
    slow.permit(5);
    slow.behind.end().unwrap();
    assert_eq!(slow.read(0, 16), sees);
    assert_eq!(std::fs::read(slow.file.path()).unwrap(), sees);
}

#[test]
fn the_length_is_that_of_the_file_when_redb_asks_for_it() {
    let Slow { backend, file, .. } = slow();
    // Another process has the file until redb has its locks.
    file.as_file().set_len(8).unwrap();
    assert_eq!(backend.len().unwrap(), 8);
    // A file that somebody cuts has no zeros where it had pages.
    file.as_file().set_len(4).unwrap();
    let cut = backend.read(0, &mut [0; 8]).expect_err("the file was cut");
    assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    backend.set_len(16).unwrap();
    backend.read(0, &mut [0; 16]).unwrap();
}

#[test]
fn steps_are_done_in_their_order_and_a_sync_returns_before_it_only_if_that_is_allowed() {
    let slow = slow();
    slow.backend.write(0, &[1; 4]).unwrap();
    slow.backend.sync_data().unwrap();
    slow.backend.write(0, &[2; 4]).unwrap();
    slow.backend.sync_data().unwrap();
    let last = slow.behind.last_sync();
    assert!(!slow.behind.has_done(last).unwrap() && lock(&slow.done).is_empty());
    slow.permit(5);
    slow.behind.end().unwrap();
    assert!(slow.behind.has_done(last).unwrap());
    let written =
        [DiskStep::Write(0, 4), DiskStep::Sync, DiskStep::Write(0, 4), DiskStep::Sync, DiskStep::Sync];
    assert_eq!(*lock(&slow.done), written);
    slow.permit(2);
    slow.backend.write(4, &[3; 4]).unwrap();
    slow.backend.sync_data().unwrap();
    assert!(slow.behind.has_done(slow.behind.last_sync()).unwrap(), "it returned before its sync");
    assert_eq!(std::fs::read(slow.file.path()).unwrap(), [2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn who_waits_for_a_sync_does_not_wait_for_the_writes_after_it() {
    let slow = slow();
    slow.backend.write(0, &[1; 4]).unwrap();
    slow.backend.sync_data().unwrap();
    // Too little to be written before more comes.
    slow.backend.write(4, &[2; 4]).unwrap();
    slow.permit(2);
    slow.behind.wait_for(slow.behind.last_sync()).unwrap();
    slow.behind.wait_for_piece(slow.behind.last_sync());
    assert!(slow.behind.has_done(slow.behind.last_sync()).unwrap());
    assert_eq!(*lock(&slow.done), [DiskStep::Write(0, 4), DiskStep::Sync]);
}

#[test]
fn no_more_than_a_piece_is_written_between_two_syncs() {
    const PAGE: usize = 16 * 1024;
    let slow = slow();
    let pages = 5 * PIECE / PAGE;
    slow.permit(2 * pages);
    for page in 0..pages {
        slow.backend.write((page * PAGE) as u64, &[page as u8; PAGE]).unwrap();
    }
    slow.backend.sync_data().unwrap();
    slow.behind.end().unwrap();
    let done = lock(&slow.done);
    let bytes = done.split(|step| *step == DiskStep::Sync).map(|writes| writes.len() * PAGE);
    assert!(bytes.clone().all(|bytes| bytes <= PIECE), "{:?}", bytes.collect::<Vec<_>>());
    assert_eq!(bytes.sum::<usize>(), pages * PAGE);
}

#[test]
fn who_writes_more_than_may_wait_waits_for_the_disk_and_gets_its_error() {
    let Slow { permits, backend, .. } = slow();
    let (written, writes) = channel();
    let soon = Duration::from_secs(10);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut at = 0;
            loop {
                if let Err(error) = backend.write(at, &[1; MIB]) {
                    return error.kind();
                }
                at += MIB as u64;
                written.send(()).unwrap();
            }
        });
        // The last of them goes beyond the limit.
        for _ in 0..=MOST / MIB {
            writes.recv_timeout(soon).unwrap();
        }
        let more = writes.recv_timeout(Duration::from_millis(200));
        assert_eq!(more, Err(RecvTimeoutError::Timeout), "nobody waits for the disk");
        assert_eq!(lock(&backend.shared.steps).bytes, MOST + MIB);
        permits.send(()).unwrap();
        writes.recv_timeout(soon).unwrap();
        drop(permits);
        assert_eq!(writer.join().unwrap(), ErrorKind::StorageFull);
    });
}

#[test]
fn after_a_step_that_failed_nothing_more_is_done() {
    let Slow { backend, behind, permits, done, file } = slow();
    drop(permits);
    backend.write(0, &[1; 4]).unwrap();
    backend.sync_data().unwrap();
    assert_eq!(behind.end().expect_err("the disk is full").kind(), ErrorKind::StorageFull);
    let failed = [
        backend.write(0, &[2; 4]),
        backend.sync_data(),
        backend.set_len(3),
        backend.read(0, &mut [0; 4]),
        behind.has_done(0).map(drop),
        behind.wait_for(1),
        backend.close(),
    ];
    for failed in failed {
        assert_eq!(failed.expect_err("it has failed").kind(), ErrorKind::StorageFull);
    }
    assert!(lock(&done).is_empty() && std::fs::read(file.path()).unwrap().is_empty());
}

#[test]
fn nobody_waits_for_a_thread_that_has_panicked() {
    let file = tempfile::tempfile().unwrap();
    let (backend, behind) = Backend::new(file, |_| Box::new(BrokenDisk) as Box<dyn Disk>).unwrap();
    backend.write(0, &[1; 4]).unwrap();
    for failed in [backend.sync_data(), backend.write(0, &[1; 4]), behind.end(), backend.close()] {
        assert!(failed.expect_err("the thread has ended").to_string().contains("has panicked"));
    }
}
