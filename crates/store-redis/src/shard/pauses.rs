//! Pauses and resumes topics and destinations, and lists paused destinations.

use ringback_core::destination::DestinationPause;
use ringback_core::job::Topic;
use ringback_core::store_types::{
    Limit, MAX_PAUSED_DESTINATIONS, MAX_PAUSED_DESTINATIONS_OF_TENANT, MAX_RESUMED_LANES, PauseLimit, Shard,
    StoreError, TopicCapacity,
};

use crate::redis_store::RedisStore;
use crate::script::{self, Script};
use crate::transitions::submit::pack_limits;

impl RedisStore {
    /// Pauses a topic in a shard. If `capacity` asks for a check and the pause would exceed a limit, changes nothing and
    /// returns the limit.
    pub async fn pause(
        &self,
        shard: Shard,
        topic: &Topic,
        capacity: TopicCapacity,
    ) -> Result<Option<Limit>, StoreError> {
        let (is_limited, limits) = match capacity {
            TopicCapacity::Needed(limits) => (true, pack_limits(limits)),
            TopicCapacity::Given => (false, Vec::new()),
        };
        match self
            .call(&script::PAUSE, shard)
            .confirmed()
            .arg((topic.as_str(), is_limited, limits))
            .run()
            .await?
        {
            1 => Ok(None),
            0 => Ok(Some(Limit::Topics)),
            2 => Ok(Some(Limit::TenantTopics)),
            _ => Err(StoreError::Unreadable(script::PAUSE.name())),
        }
    }

    /// Resumes a topic in a shard. Returns whether the topic is known there, paused or not.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        self.resume_lanes(&script::RESUME, shard, topic.as_str()).await
    }

    /// Pauses a destination in a shard. If that would exceed a limit, changes nothing and returns the limit.
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
        self.resume_lanes(&script::RESUME_DESTINATION, shard, &pause.name()).await
    }

    /// Resumes a bounded number of lanes with each call, until none is left. Returns false if the script knows no `name`.
    async fn resume_lanes(&self, script: &Script, shard: Shard, name: &str) -> Result<bool, StoreError> {
        loop {
            match self.call(script, shard).confirmed().arg((name, MAX_RESUMED_LANES)).run().await? {
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
}
