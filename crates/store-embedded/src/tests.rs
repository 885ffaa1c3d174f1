//! Tests of a store that is full, cannot write or sync its log, or whose writer dies, and what the other tests here
//! share: a store in memory whose size can be limited, and files with a log that fails or waits.

mod checkpoints;
mod clock;
mod creation;
mod growth;
mod limits;
mod open_files;
mod order;
mod replay;

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use ringback_core::clock::{Clock, ManualClock, SystemClock, Timestamp};
use ringback_core::job::{
    Body, Callback, ContentHash, Context, Delivery, Due, Headers, IfExists, JobKey, NewJob,
};
use ringback_core::store_types::{Options, Repair, Shard, StoreError, StoreTls, SubmitResult, Wake};

use super::EmbeddedStore;
use super::error::Error as Failure;
use super::location::{Disks, Medium, StoreLocation, Wrap};
use super::redo_log::log::Disk;
use super::tables::Shards;
use super::transitions::new_record::NewRecord;
use super::transitions::submit::submit;
use super::writer::shared::SharedWriter;

/// Memory with a limit, like a disk that fills up.
#[derive(Debug)]
struct Small {
    memory: InMemoryBackend,
    limit: Arc<AtomicU64>,
}

impl StorageBackend for Small {
    fn len(&self) -> Result<u64, Error> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        if len > self.limit.load(Ordering::SeqCst) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.memory.write(offset, data)
    }
}

fn options() -> Options {
    Options {
        url: String::new(),
        tls: StoreTls::default(),
        prefix: "ringback".to_owned(),
        shards: 1,
        keep_done: Duration::from_secs(3600),
        keep_done_mib: 256,
        keep_dead: Duration::from_secs(30 * 86_400),
        attempts: ringback_core::topic_policy::Logging::Failed,
        keep_attempts: Duration::from_secs(7 * 86_400),
        keep_attempts_mib: 64,
        keep_free_mib: 0,
        durability: None,
        call_timeout: Duration::from_secs(10),
    }
}

fn job(n: usize) -> NewJob {
    let key = JobKey { topic: "t".parse().unwrap(), id: format!("job-{n}").parse().unwrap() };
    // Bytes that no compression makes shorter.
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let bytes: Vec<u8> = (0..20_000).map(|_| next()).collect();
    let delivery = Delivery {
        method: ringback_core::job::CallbackMethod::Patch,
        expires: Some(ringback_core::job::Expires::After(std::time::Duration::from_secs(86_400))),
        tags: ringback_core::job::Tags::from_stored("customer:42").unwrap(),
        callback: Callback::parse("http://receiver.example/hook").unwrap(),
        body: Body { bytes: bytes.into(), content_type: None },
        headers: Headers::default(),
        context: Context::default(),
        retry: None,
        timeout: None,
        trace: None,
        on_dead: None,
        on_done: None,
    };
    NewJob {
        key,
        due: Due::In(Duration::from_secs(60)),
        delivery,
        content: ContentHash([1; 8]),
        if_exists: IfExists::Refuse,
        limits: None,
    }
}

async fn prepared(medium: Medium, clock: Arc<dyn Clock>) -> EmbeddedStore {
    let options = options();
    let shared = Arc::new(SharedWriter::new(StoreLocation::new(medium, clock)));
    let store = EmbeddedStore::on(shared, options);
    store.prepare().await.unwrap();
    store
}

async fn in_memory() -> EmbeddedStore {
    prepared(Medium::Memory(Arc::new(InMemoryBackend::new())), Arc::new(SystemClock)).await
}

/// Ends the writer by a panic, as a bug in it would.
async fn crash(store: &EmbeddedStore) {
    let died = store.call(Shard(0), 0, |_| -> Result<(), Failure> { panic!("a fault of ours") }).await;
    assert!(matches!(died, Err(StoreError::Closed)), "{died:?}");
    store.shared.wait();
}

#[tokio::test]
async fn a_full_disk_fails_all_calls_and_the_store_goes_on_once_there_is_room() {
    let limit = Arc::new(AtomicU64::new(8 << 20));
    let small = Small { memory: InMemoryBackend::new(), limit: Arc::clone(&limit) };
    let store = prepared(Medium::Memory(Arc::new(small)), Arc::new(SystemClock)).await;

    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for n in 0..2000 {
        match store.submit(Shard(0), &[job(n)]).await {
            Ok(answers) => accepted.push((n, answers[0].answer)),
            Err(error) => {
                assert!(matches!(error, StoreError::Disk(_)) && error.is_transient(), "{error:?}");
                refused.push(n);
            }
        }
        if refused.len() == 3 {
            break;
        }
    }
    assert!(!accepted.is_empty() && refused.len() == 3, "{} of 8 MiB", accepted.len());
    limit.store(u64::MAX, Ordering::SeqCst);
    for n in refused {
        // A refused submit may have taken effect all the same.
        assert_ne!(store.submit(Shard(0), &[job(n)]).await.unwrap()[0].answer, SubmitResult::Conflict);
    }
    for (n, _) in accepted {
        assert!(store.get(Shard(0), &job(n).key).await.unwrap().is_some(), "job-{n} was accepted");
    }
    assert_eq!(store.check(Repair::No).await.unwrap().findings, []);
}

/// Submits job 1 in a call that fails after it has written a part, and job 2 beside it. Asserts that only the call of
/// job 1 fails.
async fn one_of_two_fails(store: &EmbeddedStore) {
    let keep = store.keep_tombstones();
    let broken = store.call(Shard(0), 0, move |txn| -> Result<(), Failure> {
        // The call fails after it has written a part.
        submit(txn, &NewRecord::pack(0, &job(1)), keep)?;
        Err(StoreError::Unreadable("a record").into())
    });
    let other = [job(2)];
    let (failed, good) = tokio::join!(broken, store.submit(Shard(0), &other));
    assert!(matches!(failed, Err(StoreError::Unreadable("a record"))), "{failed:?}");
    assert_eq!(good.unwrap()[0].answer, SubmitResult::Created);
}

/// Makes a file fail or wait, and counts how it is used.
#[derive(Default)]
struct Fault {
    /// The next sync fails.
    sync: AtomicBool,
    /// The next write fails.
    write: AtomicBool,
    /// All writes of frames fail, but a log can be created.
    frames: AtomicBool,
    /// All writes and syncs fail.
    all: AtomicBool,
    /// Syncs wait for this lock.
    gate: tokio::sync::Mutex<()>,
    /// How many syncs have begun, and how many of them have had the lock.
    syncs: AtomicU64,
    passed: AtomicU64,
    /// How many files were opened.
    files: AtomicU64,
    /// How often a file was used that had failed.
    misused: AtomicU64,
}

struct Faulty {
    file: std::fs::File,
    fault: Arc<Fault>,
    failed: AtomicBool,
}

impl Faulty {
    fn check(&self, fault: &AtomicBool) -> Result<(), Error> {
        if self.failed.load(Ordering::SeqCst) {
            self.fault.misused.fetch_add(1, Ordering::SeqCst);
        }
        if fault.swap(false, Ordering::SeqCst) || self.fault.all.load(Ordering::SeqCst) {
            self.failed.store(true, Ordering::SeqCst);
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl Disk for Faulty {
    fn write(&self, bytes: &[u8], at: u64) -> Result<(), Error> {
        if bytes.get(20..24) == Some(b"RBFR") && self.fault.frames.load(Ordering::SeqCst) {
            self.fault.write.store(true, Ordering::SeqCst);
        }
        self.check(&self.fault.write)?;
        Disk::write(&self.file, bytes, at)
    }

    fn sync(&self) -> Result<(), Error> {
        self.fault.syncs.fetch_add(1, Ordering::SeqCst);
        let gate = self.fault.gate.blocking_lock();
        self.fault.passed.fetch_add(1, Ordering::SeqCst);
        drop(gate);
        self.check(&self.fault.sync)?;
        Disk::sync(&self.file)
    }
}

fn faulty(fault: &Arc<Fault>) -> Wrap {
    let fault = Arc::clone(fault);
    Box::new(move |file| {
        fault.files.fetch_add(1, Ordering::SeqCst);
        let (fault, failed) = (Arc::clone(&fault), AtomicBool::new(false));
        Box::new(Faulty { file, fault, failed })
    })
}

/// Opens a store whose log has a fault.
async fn on_disk(directory: &Path, fault: &Arc<Fault>) -> EmbeddedStore {
    on_disks(directory, fault, &Arc::default()).await
}

/// Opens a store whose log and database have faults.
async fn on_disks(directory: &Path, log: &Arc<Fault>, database: &Arc<Fault>) -> EmbeddedStore {
    let disks = Disks { log: faulty(log), database: faulty(database) };
    prepared(Medium::File(directory.join("ringback.redb"), disks), Arc::new(SystemClock)).await
}

async fn is_known(store: &EmbeddedStore, n: usize) -> bool {
    store.get(Shard(0), &job(n).key).await.unwrap().is_some()
}

async fn no_findings(store: &EmbeddedStore) {
    assert_eq!(store.check(Repair::No).await.unwrap().findings, []);
}

#[tokio::test]
async fn a_log_that_cannot_be_written_fails_the_call_and_what_was_answered_before_stays() {
    for in_sync in [true, false] {
        let (directory, fault) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
        let store = on_disk(directory.path(), &fault).await;
        for n in 0..3 {
            store.submit(Shard(0), &[job(n)]).await.unwrap();
        }
        if in_sync { &fault.sync } else { &fault.write }.store(true, Ordering::SeqCst);
        let error = store.submit(Shard(0), &[job(3)]).await.expect_err("it is not safe");
        assert!(matches!(error, StoreError::Disk(_)), "{error:?}");
        for n in 0..3 {
            assert!(is_known(&store, n).await, "job-{n} was accepted");
        }
        // A frame that was written and not synced may be there, as after a lost answer.
        assert_eq!(is_known(&store, 3).await, in_sync);
        for n in 3..6 {
            assert_ne!(store.submit(Shard(0), &[job(n)]).await.unwrap()[0].answer, SubmitResult::Conflict);
        }
        no_findings(&store).await;
        drop(store);
        let store = on_disk(directory.path(), &fault).await;
        assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, 6);
        assert_eq!(fault.files.load(Ordering::SeqCst), 3, "the failed file is replaced");
        assert_eq!(fault.misused.load(Ordering::SeqCst), 0, "the failed file was used again");
    }
}

#[tokio::test]
async fn a_store_that_cannot_write_is_not_ready_until_it_can() {
    let parts: [fn(&Fault) -> &AtomicBool; 2] = [|fault| &fault.frames, |fault| &fault.all];
    for part in parts {
        let (directory, fault) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
        let store = on_disk(directory.path(), &fault).await;
        store.submit(Shard(0), &[job(0)]).await.unwrap();
        part(&fault).store(true, Ordering::SeqCst);
        store.submit(Shard(0), &[job(1)]).await.expect_err("it is not safe");
        for _ in 0..3 {
            for looked in [store.ping().await, store.prepare().await] {
                let error = looked.expect_err("nothing can be written");
                assert!(matches!(error, StoreError::Disk(_)) && error.is_transient(), "{error:?}");
            }
        }
        part(&fault).store(false, Ordering::SeqCst);
        store.prepare().await.unwrap();
        store.ping().await.unwrap();
        assert!(is_known(&store, 0).await, "job-0 was accepted");
        assert_ne!(store.submit(Shard(0), &[job(1)]).await.unwrap()[0].answer, SubmitResult::Conflict);
        assert_eq!(fault.misused.load(Ordering::SeqCst), 0, "the failed file was used again");
    }
}

#[tokio::test]
async fn nobody_is_answered_or_woken_before_the_log_is_synced() {
    let (directory, fault) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disk(directory.path(), &fault).await;
    let mut wakes = store.wakes();
    assert_eq!(wakes.next().await, Wake::Subscribed);
    let mut submitted = std::pin::pin!(async {
        let jobs = [job(1)];
        store.submit(Shard(0), &jobs).await
    });
    {
        let _closed = fault.gate.lock().await;
        let early = tokio::time::timeout(Duration::from_millis(200), async {
            tokio::select! { _ = &mut submitted => "answered", _ = wakes.next() => "woken" }
        });
        let early = early.await;
        assert!(early.is_err(), "{early:?} before it is safe");
    }
    assert_eq!(submitted.await.unwrap()[0].answer, SubmitResult::Created);
    assert!(matches!(wakes.next().await, Wake::Due(..)));
}

#[tokio::test]
async fn a_call_that_fails_touches_no_other_call_of_its_group_or_before_it() {
    let (directory, fault) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    for store in [on_disk(directory.path(), &fault).await, in_memory().await] {
        for n in 10..13 {
            store.submit(Shard(0), &[job(n)]).await.unwrap();
        }
        one_of_two_fails(&store).await;
        assert!(!is_known(&store, 1).await, "half of it is left");
        for n in [2, 10, 11, 12] {
            assert!(is_known(&store, n).await, "job-{n} was accepted");
        }
        let check = store.check(Repair::No).await.unwrap();
        assert_eq!((check.checked, check.findings), (4, Vec::new()));
        let snapshot = store.writer.get().unwrap().snapshot().await.unwrap();
        assert_eq!(Shards::open(&snapshot).unwrap().all().unwrap().len(), 1);
    }
    let store = on_disk(directory.path(), &fault).await;
    assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, 4);
    no_findings(&store).await;
}

#[tokio::test]
async fn what_a_writer_that_died_had_answered_is_there_at_the_next_start() {
    let (directory, fault) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disk(directory.path(), &fault).await;
    store.submit(Shard(0), &[job(1)]).await.unwrap();
    crash(&store).await;
    let error = store.prepare().await.expect_err("the writer has died");
    assert!(!error.is_transient(), "{error}");
    drop(store);
    let store = on_disk(directory.path(), &fault).await;
    assert!(is_known(&store, 1).await, "job-1 was accepted");
}

#[tokio::test]
async fn a_carrier_that_died_before_the_clock_was_set_back_counts_as_alive_for_one_lock() {
    let clock = ManualClock::at(Timestamp::from_millis(10_000_000));
    let store = prepared(Medium::Memory(Arc::new(InMemoryBackend::new())), Arc::new(clock.clone())).await;
    let lock = Duration::from_secs(5);
    store.heartbeat("ghost", lock).await.unwrap();
    clock.set(Timestamp::from_millis(1_000_000));
    let live = store.heartbeat("live", 10 * lock).await.unwrap();
    assert_eq!((live.carriers.len(), live.next_change), (2, Some(lock)));
    clock.advance(lock);
    assert_eq!(store.heartbeat("live", lock).await.unwrap().carriers, ["live"]);
}
