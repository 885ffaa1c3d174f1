//! Records with fields that this version does not know: their jobs are delivered, moved and replaced as all others.

use redis::aio::MultiplexedConnection;
use ringback_core::contract::{EndedJob, FoundJob, Settled, StoredJob, SubmitResult};
use ringback_core::job::{Callback, IfExists, NewJob, Tags};
use ringback_core::outcome::Outcome;
use ringback_core::state::State;

use crate::contract::jobs::{With, bury};
use crate::contract::workbench::Workbench;
use crate::redis_layout::keys::{ask, bench, key, run};

/// The bytes of a record before the id's length, the place of its flags, and the flags of a token and of such fields.
const ID: usize = 33;
const FLAGS: usize = 12;
const TOKEN: u8 = 4;
const FIELDS: u8 = 16;
/// A field as a later version may write it: its kind, its length and its value.
const UNKNOWN: &[u8] = &[99, 0, 2, 1, 2];

/// Adds the fields to the record of a job.
async fn extend(redis: &mut MultiplexedConnection, job: &NewJob) {
    let (pool, locator) = (key(redis, "pool").await, job.key.locator().0);
    let mut record: Vec<u8> = ask(redis, &[b"HGET", pool.as_bytes(), &locator]).await;
    let token = if record[FLAGS] & TOKEN != 0 { 8 } else { 0 };
    let at = ID + 1 + usize::from(record[ID]) + token;
    // The fields begin with their length. Those of a job with tags are there already.
    if record[FLAGS] & FIELDS == 0 {
        record[FLAGS] |= FIELDS;
        record.splice(at..at, [0, 0]);
    }
    let length = u16::from_be_bytes([record[at], record[at + 1]]) + UNKNOWN.len() as u16;
    record.splice(at..at + 2, length.to_be_bytes().into_iter().chain(UNKNOWN.iter().copied()));
    run(redis, &[b"HSET", pool.as_bytes(), &locator, &record]).await;
}

async fn stored(bench: &Workbench, job: &NewJob) -> StoredJob {
    match bench.store().get_stored(&job.key).await.expect("get") {
        Some(FoundJob::Stored(stored)) => *stored,
        other => panic!("{other:?}"),
    }
}

fn with_token(bench: &Workbench, job: NewJob) -> NewJob {
    NewJob { if_exists: IfExists::Replace { token: bench.token() }, ..job }
}

/// Small and large jobs, without a token and with one.
fn jobs(bench: &Workbench) -> [NewJob; 4] {
    let large = |name: &str| bench.job(name).body(vec![b'x'; 5000]);
    let on_dead = Callback::parse("http://receiver.example/dead").expect("a URL");
    let (small, large_one) =
        (with_token(bench, bench.job("small-token")), with_token(bench, large("large-token")));
    let mut number = 0;
    [bench.job("small"), large("large"), small, large_one].map(|mut job| {
        number += 1;
        if number % 2 == 0 {
            job.delivery.tags = Tags::default();
        }
        job.delivery.on_dead = Some(Box::new(on_dead.clone()));
        job
    })
}

#[tokio::test]
async fn a_record_with_fields_of_a_later_version_is_read_settled_and_replaced() {
    let (bench, mut redis) = bench().await;
    for job in jobs(&bench) {
        bench.accept(job.clone()).await;
        let before = stored(&bench, &job).await;
        assert_eq!(before.job.tags, job.delivery.tags);
        extend(&mut redis, &job).await;
        assert_eq!(stored(&bench, &job).await, before, "{}", job.key);
        let lease = bench.take_one(&job.key).await;
        assert_eq!(lease.delivery, job.delivery);
        assert_eq!(bench.settle(lease, bury()).await, Settled::Applied);
        let pending = bench.store().outbox(bench.shard(), 10).await.expect("outbox").pending;
        let letters: Vec<EndedJob> = pending.into_iter().filter_map(|notice| notice.ended).collect();
        let letter = letters.into_iter().find(|letter| letter.job.key == job.key).expect("a notice");
        assert_eq!(letter.url.map(Box::new), job.delivery.on_dead);
        let again = with_token(&bench, job.clone().content(2));
        assert_eq!(bench.submit(&[again]).await[0].answer, SubmitResult::Replaced);
        let lease = bench.take_one(&job.key).await;
        assert_eq!(bench.settle(lease, Outcome::Complete).await, Settled::Applied);
        assert_eq!(bench.state(&job.key).await, Some(State::Done));
    }
}

#[tokio::test]
async fn a_repeated_submit_finds_its_token_beside_fields_of_a_later_version() {
    let (bench, mut redis) = bench().await;
    for job in jobs(&bench) {
        bench.accept(job.clone()).await;
        extend(&mut redis, &job).await;
        assert_eq!(
            bench.submit(std::slice::from_ref(&job)).await[0].answer,
            SubmitResult::Repeated,
            "{}",
            job.key
        );
        bench.cancel(&job.key).await;
    }
    bench.audit().await;
}
