//! Fills a store with very many jobs, past the API, as the background of a measurement.

use std::ops::Range;

use futures_util::future::try_join_all;
use ringback_core::job::{JobKey, NewJob};
use ringback_core::store_types::{Shard, StoreError};
use ringback_store::Store;
use serde_json::{Value, json};

use crate::job::{URL, job, parse, realistic_body};

const PER_CALL: usize = 500;
/// Jobs in all calls that run side by side.
const SIDE_BY_SIDE: usize = 4 * PER_CALL;
/// The delay of the first far job, in seconds.
const FAR: f64 = 86_400.0;
/// The seconds over which the far jobs are spread: a day.
const SPREAD: f64 = 86_400.0;

/// Adds jobs that are due evenly over a day that begins in 24 hours, so that none is due while anything is measured.
pub(crate) async fn far(store: &Store, numbers: Range<usize>) {
    let (first, count) = (numbers.start, numbers.len() as f64);
    let delay = |n: usize| json!({ "delay": FAR + ((n - first) as f64 / count * SPREAD).floor() });
    fill(store, numbers, delay).await;
}

/// Does the same with [realistic bodies](realistic_body), and returns the bytes of them all.
pub(crate) async fn far_realistic(store: &Store, numbers: Range<usize>) -> usize {
    let mut bytes = 0;
    fill(store, numbers, |n| {
        let body = realistic_body(n);
        bytes += body.to_string().len();
        json!({ "delay": FAR + (n % SPREAD as usize) as f64, "body": body })
    })
    .await;
    bytes
}

/// Adds jobs that are due now: all are ready, in one lane.
pub(crate) async fn ready(store: &Store, numbers: Range<usize>) {
    fill(store, numbers, |_| json!({})).await;
}

/// Adds jobs in groups of [`SIDE_BY_SIDE`]. `more` gives the due time of each.
async fn fill(store: &Store, numbers: Range<usize>, mut more: impl FnMut(usize) -> Value) {
    let mut left = numbers;
    while !left.is_empty() {
        let end = left.end.min(left.start + SIDE_BY_SIDE);
        submit(store, (left.start..end).map(|n| parse(&job(n, URL, &more(n))))).await;
        left.start = end;
    }
}

/// Submits jobs, one shard beside the other.
async fn submit(store: &Store, jobs: impl Iterator<Item = NewJob>) {
    let jobs = by_shard(store, jobs, |job| &job.key);
    let calls = jobs.iter().map(|(shard, jobs)| async move {
        for call in jobs.chunks(PER_CALL) {
            store.submit(*shard, call).await?;
        }
        Ok::<_, StoreError>(())
    });
    try_join_all(calls).await.expect("the store accepts");
}

/// Groups items by the shard of their keys. The result has every shard, in order.
pub(crate) fn by_shard<T>(
    store: &Store,
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> &JobKey,
) -> Vec<(Shard, Vec<T>)> {
    let mut shards: Vec<_> = store.shards().map(|shard| (shard, Vec::new())).collect();
    for item in items {
        shards[usize::from(store.shard_of(key(&item)).number())].1.push(item);
    }
    shards
}

/// The number of delayed jobs.
pub(crate) async fn delayed(store: &Store) -> u64 {
    store.stats().await.expect("the store answers").states.delayed
}
