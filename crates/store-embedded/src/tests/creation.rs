//! Tests that of several processes that open a new store at the same time one gets it, and the others an error.

use std::sync::Barrier;
use std::thread;

use redb::{Database, ReadableDatabase as _, TableDefinition};
use ringback_core::store_types::StoreError;

use super::*;
use crate::location::create_file;

/// How often a store is created.
const ROUNDS: usize = 60;
/// How many threads open it at the same time.
const OPENERS: u64 = 3;

const WRITTEN: TableDefinition<'_, u64, u64> = TableDefinition::new("written");

fn open(file: &Path, ready: &Barrier) -> Result<Database, StoreError> {
    let location = StoreLocation::new(Medium::File(file.to_owned(), Disks::default()), Arc::new(SystemClock));
    ready.wait();
    Ok(location.open_database()?.0)
}

fn write(database: &Database, number: u64) {
    let transaction = database.begin_write().unwrap();
    transaction.open_table(WRITTEN).unwrap().insert(0, number).unwrap();
    transaction.commit().unwrap();
}

fn read(file: &Path) -> Option<u64> {
    let database = Database::open(file).unwrap();
    let table = database.begin_read().unwrap().open_table(WRITTEN).unwrap();
    table.get(0).unwrap().map(|row| row.value())
}

#[test]
fn of_those_that_create_a_store_one_has_it_and_its_file_has_what_it_writes() {
    for round in 0..ROUNDS {
        let directory = tempfile::tempdir().unwrap();
        let (file, ready) = (directory.path().join("ringback.redb"), Barrier::new(OPENERS as usize));
        let opened: Vec<_> = thread::scope(|scope| {
            let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(|| open(&file, &ready))).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        let mut owners = 0;
        for (number, opened) in (1..).zip(opened) {
            match opened {
                Ok(database) => {
                    write(&database, number);
                    drop(database);
                    owners += 1;
                    assert_eq!(read(&file), Some(number), "round {round}");
                }
                Err(StoreError::Unfit(why)) => assert!(why.contains("in use by another process"), "{why}"),
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(owners, 1, "round {round}");
        let names: Vec<_> =
            directory.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["ringback.redb"], "round {round}");
    }
}

/// The process that creates the database removes the lock file, and a late one may have created it again.
#[test]
fn who_comes_too_late_to_create_a_store_leaves_no_lock_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ringback.redb");
    let alone = Barrier::new(1);
    drop(open(&file, &alone).unwrap());
    assert!(create_file(&file, &Disks::default().database).unwrap().is_none());
    assert!(!file.with_extension("lock").exists());
    drop(open(&file, &alone).unwrap());
}
