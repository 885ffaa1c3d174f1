//! Very many jobs straight into the store, past the API: for what is measured with them, not how fast they get in.

use std::ops::Range;

use futures_util::future::try_join_all;
use ringback_core::contract::StoreError;
use ringback_core::job::NewJob;
use ringback_store::Store;
use serde_json::{Value, json};

use super::job::{URL, job, parse};

/// Jobs in a call.
const PER_CALL: usize = 500;
/// Jobs in all calls that run side by side.
const SIDE_BY_SIDE: usize = 4 * PER_CALL;
/// Nothing that is far becomes due before this many seconds have passed.
const FAR: f64 = 86_400.0;
/// The seconds over which the far jobs are spread: a day.
const SPREAD: f64 = 86_400.0;

/// Puts jobs in that are due evenly over a day, from tomorrow on: they stay while anything is measured.
///
/// # Panics
/// When the store does not accept them all.
pub(super) async fn far(store: &Store, numbers: Range<usize>) {
    let (first, count) = (numbers.start, numbers.len() as f64);
    let delay = |n: usize| json!({ "delay": FAR + ((n - first) as f64 / count * SPREAD).floor() });
    fill(store, numbers, delay).await;
}

/// Puts jobs in that are due now: ready, all of one lane.
///
/// # Panics
/// When the store does not accept them all.
pub(super) async fn ready(store: &Store, numbers: Range<usize>) {
    fill(store, numbers, |_| json!({})).await;
}

/// `more` says when each is due.
async fn fill(store: &Store, numbers: Range<usize>, more: impl Fn(usize) -> Value) {
    let mut left = numbers;
    while !left.is_empty() {
        let end = left.end.min(left.start + SIDE_BY_SIDE);
        submit(store, (left.start..end).map(|n| parse(&job(n, URL, &more(n))))).await;
        left.start = end;
    }
}

/// Submits jobs, the shards side by side.
async fn submit(store: &Store, jobs: impl Iterator<Item = NewJob>) {
    let mut waiting: Vec<Vec<NewJob>> = store.shards().map(|_| Vec::new()).collect();
    for job in jobs {
        waiting[usize::from(store.shard_of(&job.key).number())].push(job);
    }
    let calls = store.shards().zip(&waiting).map(|(shard, jobs)| async move {
        for call in jobs.chunks(PER_CALL) {
            store.submit(shard, call).await?;
        }
        Ok::<_, StoreError>(())
    });
    try_join_all(calls).await.expect("the store accepts");
}

/// How many jobs wait for their time.
///
/// # Panics
/// When the store does not answer.
pub(super) async fn delayed(store: &Store) -> u64 {
    store.stats().await.expect("the store answers").states.delayed
}
