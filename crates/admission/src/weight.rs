//! How much of a call to the store a job fills.

use ringback_core::job::NewJob;
use ringback_core::limits::{MAX_BATCH, MAX_BATCH_BYTES};

/// The least weight of a job, so that the weight limit also limits a call to [`MAX_BATCH`] jobs.
const MIN_WEIGHT: usize = MAX_BATCH_BYTES / MAX_BATCH;

/// About how many bytes a job adds to a call, of which one takes [`MAX_BATCH_BYTES`].
pub fn weight(job: &NewJob) -> usize {
    let entries = |list: &[(String, String)]| list.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
    let delivery = &job.delivery;
    let bytes = delivery.body.bytes.len()
        + delivery.callback.origin().len()
        + delivery.callback.path().len()
        + entries(delivery.headers.entries())
        + entries(delivery.context.entries());
    bytes.max(MIN_WEIGHT)
}
