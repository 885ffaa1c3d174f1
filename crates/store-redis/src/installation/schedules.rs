//! The index of schedules, in which they are found by their keys.

use ringback_core::contract::{ScheduleListed, StoreError};
use ringback_core::job::{Tenant, TenantScope, Topic};
use ringback_core::schedule::{MAX_SCHEDULES, ScheduleKey};

use crate::keys::Place;
use crate::redis_store::RedisStore;
use crate::script;

const UNREADABLE: StoreError = StoreError::Unreadable("the index of schedules");

impl RedisStore {
    /// Adds a schedule to the index. `most` is how many its tenant may have.
    pub async fn list_schedule(
        &self,
        key: &ScheduleKey,
        topic: &Topic,
        most: Option<u64>,
    ) -> Result<ScheduleListed, StoreError> {
        let prefix = most.and(key.tenant.as_ref()).map(Tenant::prefix).unwrap_or_default();
        let args = (key.to_string(), topic.as_str(), MAX_SCHEDULES, prefix, most.unwrap_or(MAX_SCHEDULES));
        let answer: String =
            self.call(&script::LIST_SCHEDULE, Place::Installation).confirmed().arg(args).run().await?;
        match answer.as_str() {
            "" => Ok(ScheduleListed::Listed),
            "!" => Ok(ScheduleListed::TooMany),
            other => Topic::from_stored(other).map(ScheduleListed::OtherTopic).ok_or(UNREADABLE),
        }
    }

    /// Removes a schedule from the index.
    pub async fn unlist_schedule(&self, key: &ScheduleKey, topic: &Topic) -> Result<(), StoreError> {
        let args = (key.to_string(), topic.as_str());
        self.call(&script::UNLIST_SCHEDULE, Place::Installation)
            .confirmed()
            .arg(args)
            .run::<u64>()
            .await
            .map(drop)
    }

    pub async fn topic_of_schedule(&self, key: &ScheduleKey) -> Result<Option<Topic>, StoreError> {
        let name = format!("{key} ");
        let members: Vec<String> =
            self.call(&script::LIST_SCHEDULES, Place::Installation).arg((&name, "", 1, 0)).run().await?;
        match members.first().and_then(|member| member.strip_prefix(&name)) {
            Some(topic) => Topic::from_stored(topic).map(Some).ok_or(UNREADABLE),
            None => Ok(None),
        }
    }

    /// The schedules of the index whose keys come after one, in order.
    pub async fn listed_schedules(
        &self,
        scope: &TenantScope,
        after: Option<&(ScheduleKey, Topic)>,
        limit: usize,
    ) -> Result<Vec<(ScheduleKey, Topic)>, StoreError> {
        let (prefix, has_no_tenant) = match scope {
            TenantScope::All => (String::new(), 0),
            TenantScope::One(None) => (String::new(), 1),
            TenantScope::One(Some(tenant)) => (tenant.prefix(), 0),
        };
        let after = after.map(|(key, topic)| format!("{key} {}", topic.as_str())).unwrap_or_default();
        let args = (prefix, after, limit, has_no_tenant);
        let members: Vec<String> =
            self.call(&script::LIST_SCHEDULES, Place::Installation).arg(args).run().await?;
        let read = |member: &String| {
            let (key, topic) = member.split_once(' ')?;
            Some((ScheduleKey::from_stored(key)?, Topic::from_stored(topic)?))
        };
        members.iter().map(|member| read(member).ok_or(UNREADABLE)).collect()
    }
}
