//! The policies of topics. They lie in keys of the installation's own: a hash of topic and
//! policy, and the version of all of them, which a script of each change raises after it. So
//! what is read after the version is of that version or a later one.

use std::sync::Arc;

use rand::rngs::StdRng;
use redis::{Cmd, Value};
use ringback_core::contract::{PolicyPut, PolicyRows, PolicyVersion, StoreError};
use ringback_core::job::Topic;
use ringback_core::policy::MAX_POLICIES;

use super::RedisStore;
use super::script::{self, Script, reply};
use super::wake::{Heard, Messages};

/// So many policies are read with one command: a MiB at most.
const PAGE: usize = 64;

impl RedisStore {
    pub async fn put_policy(&self, topic: &Topic, written: &str) -> Result<PolicyPut, StoreError> {
        let answer = self.of_installation(&script::PUT_POLICY, |cmd| {
            cmd.arg(topic.as_str()).arg(written).arg(MAX_POLICIES);
        });
        let parts = reply::list(answer.await?)?;
        match parts.as_slice() {
            [] => Ok(PolicyPut::TooMany),
            [had, version] => {
                let version = PolicyVersion(reply::number(version)?);
                let is_new = reply::int(had)? == 0;
                Ok(if is_new { PolicyPut::Created(version) } else { PolicyPut::Replaced(version) })
            }
            _ => Err(StoreError::Unreadable("a put's answer")),
        }
    }

    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        let answer = self.of_installation(&script::DELETE_POLICY, |cmd| {
            cmd.arg(topic.as_str());
        });
        let version = reply::number(&answer.await?)?;
        Ok((version > 0).then_some(PolicyVersion(version)))
    }

    async fn of_installation(&self, script: &Script, args: impl Fn(&mut Cmd)) -> Result<Value, StoreError> {
        self.prepared_once()?;
        self.run_at(script, &self.keys.installation(), args).await
    }

    pub async fn policy(&self, topic: &Topic) -> Result<Option<String>, StoreError> {
        self.prepared_once()?;
        let mut cmd = redis::cmd("HGET");
        text(self.topology.call(cmd.arg(self.keys.policies()).arg(topic.as_str())).await?)
    }

    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, PolicyRows)>, StoreError> {
        self.prepared_once()?;
        let version = self.topology.call(redis::cmd("GET").arg(self.keys.policies_version())).await?;
        let number = text(version)?.map_or(Ok(0), |text| text.parse());
        let version =
            PolicyVersion(number.map_err(|_| StoreError::Unreadable("the version of the policies"))?);
        if known == Some(version) {
            return Ok(None);
        }
        let topics = self.topology.call(redis::cmd("HKEYS").arg(self.keys.policies())).await?;
        let topics = reply::list(topics)?.into_iter().map(reply::text).collect::<Result<Vec<_>, _>>()?;
        let mut rows = PolicyRows::with_capacity(topics.len());
        for page in topics.chunks(PAGE) {
            let values = self.topology.call(redis::cmd("HMGET").arg(self.keys.policies()).arg(page)).await?;
            for (topic, value) in page.iter().zip(reply::list(values)?) {
                // One that has gone meanwhile is gone.
                rows.extend(text(value)?.map(|written| (topic.clone(), written)));
            }
        }
        Ok(Some((version, rows)))
    }

    pub fn policy_changes(self: &Arc<Self>, rng: StdRng) -> PolicyChanges {
        PolicyChanges(Messages::new(Arc::clone(self), self.keys.policies_channel(), rng))
    }
}

fn text(value: Value) -> Result<Option<String>, StoreError> {
    match value {
        Value::Nil => Ok(None),
        value => reply::text(value).map(Some),
    }
}

/// The stream of changes, on a channel of its own: the wake-ups are many, and are nothing to
/// an API.
pub struct PolicyChanges(Messages);

impl PolicyChanges {
    pub async fn next(&mut self) {
        while matches!(self.0.next().await, Heard::Lost) {}
    }
}
