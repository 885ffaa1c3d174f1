//! Pauses of destinations, and the counts of destinations. Both are read a part at a time.

use bytes::Bytes;
use ringback_core::contract::{
    DESTINATION_STEP, DestinationCounts, DestinationPart, LaneSpan, MAX_PAUSED_DESTINATIONS,
    MAX_PAUSED_DESTINATIONS_OF_TENANT, MAX_RESUMED_LANES, PauseLimit, Shard, StoreError,
};
use ringback_core::destination::DestinationPause;

use crate::queries::stats::{begin, behind, end};
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Pauses a destination in a shard. Returns the limit that this would exceed.
    pub async fn pause_destination(
        &self,
        shard: Shard,
        pause: &DestinationPause,
    ) -> Result<Option<PauseLimit>, StoreError> {
        let prefix = pause.tenant_prefix().unwrap_or_default();
        let args = (pause.name(), prefix, MAX_PAUSED_DESTINATIONS, MAX_PAUSED_DESTINATIONS_OF_TENANT);
        match self.call(&script::PAUSE_DESTINATION, shard).confirmed().arg(args).run().await? {
            1 => Ok(None),
            0 => Ok(Some(PauseLimit::Installation)),
            2 => Ok(Some(PauseLimit::Tenant)),
            _ => Err(StoreError::Unreadable(script::PAUSE_DESTINATION.name())),
        }
    }

    /// Resumes a destination in a shard. Returns whether it was paused there.
    pub async fn resume_destination(
        &self,
        shard: Shard,
        pause: &DestinationPause,
    ) -> Result<bool, StoreError> {
        let name = pause.name();
        loop {
            match self
                .call(&script::RESUME_DESTINATION, shard)
                .confirmed()
                .arg((&name, MAX_RESUMED_LANES))
                .run()
                .await?
            {
                0 => return Ok(false),
                1 => return Ok(true),
                _ => {}
            }
        }
    }

    pub async fn paused_destinations(&self, shard: Shard) -> Result<Vec<DestinationPause>, StoreError> {
        let names: Vec<String> = self.call(&script::PAUSED_DESTINATIONS, shard).run().await?;
        let unreadable = StoreError::Unreadable("a paused destination");
        names.iter().map(|name| DestinationPause::from_name(name).ok_or(unreadable.clone())).collect()
    }

    /// The counts of a part of the lanes of a shard, by origin.
    pub async fn destinations(
        &self,
        shard: Shard,
        span: &LaneSpan,
        after: Option<&[u8]>,
    ) -> Result<DestinationPart, StoreError> {
        let (first, till) = match span {
            LaneSpan::Topic(topic) => (begin(topic), end(topic)),
            LaneSpan::Of(scope) => {
                let (least, below) = scope.bounds();
                let till = below.map_or_else(|| "+".to_owned(), |below| format!("({below}"));
                (format!("[{least}").into_bytes(), till.into_bytes())
            }
        };
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
