//! Tests that a job that is changed or moved many times takes the room of one job, in tables and files.

use std::collections::BTreeMap;

use ringback_core::contract::{Move, Token};

use super::super::tables::dump;
use super::*;

const SHARD: Shard = Shard(0);
/// As many changes as are made at a time.
const ROUND: u64 = 150;

/// A delay of some hours, which is seldom the same.
fn delay(n: u64) -> Duration {
    Duration::from_millis(3_600_000 + n * 7_919 % 900_000_000)
}

/// Postpones job 1, which has a body of always the same size.
async fn postpone(store: &EmbeddedStore, n: u64) {
    let if_exists = IfExists::Postpone { token: Token(n.to_be_bytes()), max_delay: None };
    let mut new =
        NewJob { due: Due::In(delay(n)), content: ContentHash(n.to_le_bytes()), if_exists, ..job(1) };
    new.delivery.body.bytes = n.to_be_bytes().repeat(40).into();
    let answer = store.submit(SHARD, &[new]).await.unwrap().remove(0).answer;
    assert_eq!(answer, if n == 0 { SubmitResult::Created } else { SubmitResult::Postponed });
}

async fn reschedule(store: &EmbeddedStore, n: u64) {
    let (due, token) = (Due::In(delay(n)), Token(n.to_be_bytes()));
    store.move_job(SHARD, &job(1).key, Move::Reschedule(due, token)).await.unwrap();
}

/// How many rows each table has.
async fn rows(store: &EmbeddedStore) -> BTreeMap<String, usize> {
    no_findings(store).await;
    let snapshot = store.writer.get().unwrap().snapshot().await.unwrap();
    let mut tables = BTreeMap::new();
    for row in dump(&snapshot).unwrap() {
        *tables.entry(row.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    tables
}

/// How many bytes the files take after an orderly end.
fn size(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn a_job_that_is_postponed_or_rescheduled_many_times_takes_the_room_of_one() {
    let directory = tempfile::tempdir().unwrap();
    let (mut sizes, mut tables, mut n) = (Vec::new(), Vec::new(), 0);
    for round in 0..6 {
        let fault = Arc::<Fault>::default();
        let store = on_disk(directory.path(), &fault).await;
        for _ in 0..ROUND {
            postpone(&store, n).await;
            if round > 0 {
                reschedule(&store, n).await;
            }
            n += 1;
        }
        tables.push(rows(&store).await);
        let stats = store.stats(SHARD).await.unwrap();
        assert_eq!((stats.accepted, stats.states.delayed), (1, 1));
        drop(store);
        sizes.push(size(directory.path()));
    }
    assert!(tables.iter().all(|table| *table == tables[0]), "rows after every {ROUND} changes: {tables:?}");
    // The first rounds fill the free pages that later ones use again.
    assert_eq!(sizes[3..], [sizes[3]; 3], "bytes after every {ROUND} changes: {sizes:?}");
}
