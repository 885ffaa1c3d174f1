//! What needs a disk that fails: on a store in memory whose size can be limited.

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::place::{Medium, Place};
use super::{EmbeddedStore, tables};
use crate::clock::SystemClock;
use crate::job::{Body, Callback, ContentHash, Context, Delivery, Due, Headers, JobKey, NewJob};
use crate::store::{Answer, Options, Shard, StoreError};

/// Memory with a limit, like a disk that fills up.
#[derive(Clone, Debug)]
struct Small {
    memory: Arc<InMemoryBackend>,
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

fn job(n: usize) -> NewJob {
    let key = JobKey { topic: "t".parse().unwrap(), id: format!("job-{n}").parse().unwrap() };
    let delivery = Delivery {
        callback: Callback::parse("http://receiver.example/hook").unwrap(),
        body: Body { bytes: vec![7; 20_000].into(), content_type: None },
        headers: Headers::default(),
        context: Context::default(),
        retry: None,
        timeout: None,
        trace: None,
    };
    NewJob { key, due: Due::In(Duration::from_secs(60)), delivery, content: ContentHash([1; 8]) }
}

#[tokio::test]
async fn a_full_disk_is_told_to_all_and_the_store_goes_on_once_there_is_room() {
    let (memory, limit) = (Arc::new(InMemoryBackend::new()), Arc::new(AtomicU64::new(8 << 20)));
    let small = Small { memory, limit: Arc::clone(&limit) };
    let medium = Medium::Backend(Box::new(move || Box::new(small.clone())));
    let place = Arc::new(Place::new(medium, Arc::new(SystemClock)));
    let options = Options { shards: 1, ..Options::default_with(Duration::from_secs(10)) };
    let store = EmbeddedStore::on(place, options);
    store.prepare().await.unwrap();

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
        // Whether one of them had taken effect was not known.
        assert_ne!(store.submit(Shard(0), &[job(n)]).await.unwrap()[0].answer, Answer::Conflict);
    }
    for (n, _) in accepted {
        assert!(store.get(Shard(0), &job(n).key).await.unwrap().is_some(), "job-{n} was accepted");
    }
    assert_eq!(store.audit().await.unwrap().findings, Vec::<String>::new());
}

#[tokio::test]
async fn a_call_that_fails_does_not_touch_the_others_of_its_group() {
    let memory = super::Memory::new(SystemClock);
    let options = Options { shards: 1, ..Options::default_with(Duration::from_secs(10)) };
    let store = EmbeddedStore::in_memory(&memory, options);
    store.prepare().await.unwrap();
    let keep = store.keep();
    let broken = store.call(Shard(0), 0, move |txn| -> Result<(), StoreError> {
        // Half of what it wanted is written when it finds that it cannot go on.
        super::edges::submit(txn, &[super::Wanted::pack(0, &job(1))], keep)?;
        Err(StoreError::Unreadable("a record"))
    });
    let other = [job(2)];
    let (failed, good) = tokio::join!(broken, store.submit(Shard(0), &other));
    assert!(matches!(failed, Err(StoreError::Unreadable("a record"))), "{failed:?}");
    assert_eq!(good.unwrap()[0].answer, Answer::Created);
    assert!(store.get(Shard(0), &job(1).key).await.unwrap().is_none(), "half of it is left");
    assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, 1);
    let audit = store.audit().await.unwrap();
    assert_eq!((audit.checked, audit.findings), (1, Vec::new()));
    let snapshot = store.writer.get().unwrap().snapshot().await.unwrap();
    assert_eq!(tables::rows(&snapshot).unwrap().len(), 1);
}

#[tokio::test]
async fn a_writer_that_has_died_is_no_passing_trouble() {
    let memory = super::Memory::new(SystemClock);
    let options = Options { shards: 1, ..Options::default_with(Duration::from_secs(10)) };
    let store = EmbeddedStore::in_memory(&memory, options);
    store.prepare().await.unwrap();
    let died = store.call(Shard(0), 0, |_| -> Result<(), StoreError> { panic!("a fault of ours") }).await;
    assert!(matches!(died, Err(StoreError::Closed)), "{died:?}");
    store.place.wait();
    let error = store.prepare().await.expect_err("nothing is carried out any more");
    assert!(!error.is_transient(), "{error}");
}
