//! Tests that jobs that are changed or moved many times take no more rows and bytes than jobs that are not.

use std::collections::BTreeMap;

use ringback_core::store_types::{Move, Token, TopicCapacity};

use super::super::tables::dump;
use super::*;

const SHARD: Shard = Shard(0);
/// How many rounds of changes a test makes, each in a store that is opened anew.
const ROUNDS: usize = 6;
/// How many changes a round makes.
const ROUND: u64 = 150;
/// How many jobs a deep queue has.
const DEPTH: usize = 1000;

/// Returns a delay of one hour to ten days, which differs for each `n`.
fn delay(n: u64) -> Duration {
    Duration::from_millis(3_600_000 + n * 7_919 % 900_000_000)
}

/// Returns a submit that changes a job, with content that depends on `n`. The body always has the same size.
fn changed(job: usize, n: u64, due: Due, if_exists: IfExists) -> NewJob {
    let mut new = NewJob { due, content: ContentHash(n.to_le_bytes()), if_exists, ..super::job(job) };
    new.delivery.body.bytes = n.to_be_bytes().repeat(40).into();
    new
}

fn postponed(job: usize, n: u64) -> NewJob {
    let if_exists = IfExists::Postpone { token: Token(n.to_be_bytes()), max_delay: None };
    changed(job, n, Due::In(delay(n)), if_exists)
}

fn replaced(job: usize, n: u64, due: Due) -> NewJob {
    changed(job, n, due, IfExists::Replace { token: Token(n.to_be_bytes()) })
}

async fn submit_all(store: &EmbeddedStore, jobs: &[NewJob]) -> Vec<SubmitResult> {
    store.submit(SHARD, jobs).await.unwrap().into_iter().map(|submitted| submitted.answer).collect()
}

/// Returns how many rows each table has.
async fn rows(store: &EmbeddedStore) -> BTreeMap<String, usize> {
    no_findings(store).await;
    let snapshot = store.writer.get().unwrap().snapshot().await.unwrap();
    let mut tables = BTreeMap::new();
    for row in dump(&snapshot).unwrap() {
        *tables.entry(row.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    tables
}

/// Returns how many bytes the files in a directory take.
fn size(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// Makes all rounds of changes in a store that `begin` has filled, and checks that each leaves as many rows. Returns how
/// many bytes the files take after each round. The first rounds may grow; later ones use their free pages again.
async fn sizes(
    begin: impl AsyncFn(&EmbeddedStore),
    change: impl AsyncFn(&EmbeddedStore, u64),
) -> [u64; ROUNDS] {
    let directory = tempfile::tempdir().unwrap();
    let (mut sizes, mut tables) = ([0; ROUNDS], Vec::new());
    for (round, bytes) in (0..).zip(&mut sizes) {
        let store = on_disk(directory.path(), &Arc::default()).await;
        if round == 0 {
            begin(&store).await;
        }
        let accepted = store.stats(SHARD).await.unwrap().accepted;
        for n in 1..=ROUND {
            change(&store, round * ROUND + n).await;
        }
        tables.push(rows(&store).await);
        assert_eq!(store.stats(SHARD).await.unwrap().accepted, accepted);
        drop(store);
        *bytes = size(directory.path());
    }
    assert!(tables.iter().all(|table| *table == tables[0]), "rows after every {ROUND} changes: {tables:?}");
    sizes
}

/// Asserts that the later rounds take as much space as the first ones. Pages are more or less full by chance, and are used
/// again once a checkpoint is in the file. If each change took a page more, the files would double.
fn stays(sizes: [u64; ROUNDS]) {
    let [first, later] = [&sizes[..3], &sizes[3..]].map(|sizes| sizes.iter().max());
    assert!(
        later < first.map(|bytes| bytes * 9 / 8).as_ref(),
        "bytes after every {ROUND} changes: {sizes:?}"
    );
}

#[tokio::test]
async fn a_job_that_is_postponed_or_rescheduled_many_times_takes_the_space_of_one() {
    let sizes = sizes(
        async |store| assert_eq!(submit_all(store, &[postponed(1, 0)]).await, [SubmitResult::Created]),
        async |store, n| {
            assert_eq!(submit_all(store, &[postponed(1, n)]).await, [SubmitResult::Postponed]);
            let (due, token) = (Due::In(delay(n)), Token(n.to_be_bytes()));
            store.move_job(SHARD, &job(1).key, Move::Reschedule(due, token)).await.unwrap();
        },
    )
    .await;
    stays(sizes);
}

#[tokio::test]
async fn jobs_of_a_deep_paused_queue_that_are_replaced_many_times_take_the_space_of_as_many() {
    let begin = async |store: &EmbeddedStore| {
        store.pause(SHARD, &job(0).key.topic, TopicCapacity::Needed(None)).await.unwrap();
        let ready = |job| changed(job, 0, Due::In(Duration::ZERO), IfExists::Refuse);
        let jobs: Vec<_> = (0..DEPTH).map(ready).collect();
        assert_eq!(submit_all(store, &jobs).await, vec![SubmitResult::Created; DEPTH]);
    };
    let change = async |store: &EmbeddedStore, n: u64| {
        let now = Due::In(Duration::ZERO);
        // One job stays ready, one becomes far and ready in turn, and one of another origin comes and goes.
        let due = if n.is_multiple_of(2) { now } else { Due::In(delay(n)) };
        let mut elsewhere = replaced(700, n, due);
        if n.is_multiple_of(2) {
            elsewhere.delivery.callback = Callback::parse("http://other.example/hook").unwrap();
        }
        let jobs = [replaced(500, n, now), replaced(600, n, due), elsewhere];
        assert_eq!(submit_all(store, &jobs).await, [SubmitResult::Replaced; 3]);
    };
    let sizes = sizes(begin, change).await;
    stays(sizes);
}
