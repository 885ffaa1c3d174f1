//! The counts of jobs by destination, a part at a time.

use bytes::Bytes;
use ringback_core::store_types::{
    DESTINATION_STEP, DestinationCounts, DestinationPart, LaneSpan, Shard, StoreError,
};

use super::stats::{behind, lanes};
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Counts up to [`DESTINATION_STEP`] topics and lanes by origin. Returns also where to go on, `None` at the end.
    pub async fn destinations(
        &self,
        shard: Shard,
        span: &LaneSpan,
        after: Option<&[u8]>,
    ) -> Result<DestinationPart, StoreError> {
        let (first, till) = lanes(span);
        let from = after.map_or(first, behind);
        let (last, parts): (Bytes, Vec<(String, [i64; 4])>) =
            self.call(&script::DESTINATIONS, shard).arg((from, till, DESTINATION_STEP)).run().await?;
        let parts = parts.into_iter().map(|(origin, counts)| {
            // A count below zero would be a bug of a script; it shows as zero.
            let [delayed, ready, reserved, dead] = counts.map(|n| u64::try_from(n).unwrap_or(0));
            (origin, DestinationCounts { delayed, ready, reserved, dead })
        });
        Ok((parts.collect(), (!last.is_empty()).then(|| last.to_vec().into())))
    }
}
