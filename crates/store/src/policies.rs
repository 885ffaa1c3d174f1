//! Policies of topics: putting, reading and deleting them.

use std::sync::Arc;

use ringback_core::contract::{PolicyPut, PolicyVersion, StoreError};
use ringback_core::job::Topic;
use ringback_core::policy::{Policies, Policy};
use ringback_core::wire::parse_policy;

use crate::backend::{Store, dispatch};

impl Store {
    /// Puts the policy of a topic, and notifies every [`PolicyBook`](crate::PolicyBook).
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn put_policy(&self, topic: &Topic, policy: &Policy) -> Result<PolicyPut, StoreError> {
        dispatch!(self.put_policy(topic, policy.written()))
    }

    /// The policy of a topic.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn policy(&self, topic: &Topic) -> Result<Option<Policy>, StoreError> {
        let written = dispatch!(self.policy(topic))?;
        let read =
            |text: String| parse_policy(text.as_bytes()).map_err(|_| StoreError::Unreadable("a policy"));
        written.map(read).transpose()
    }

    /// Deletes the policy of a topic; `None` if it had none.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        dispatch!(self.delete_policy(topic))
    }

    /// All policies, and a version that they have at least; `None` if the version is still `known`, which
    /// takes only one small read.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Policies)>, StoreError> {
        let read = dispatch!(self.policies(known))?;
        Ok(read.map(|(version, rows)| (version, rows.into_iter().filter_map(row).collect())))
    }
}

/// A policy that cannot be read is skipped, so that it does not affect other topics.
fn row((topic, written): (String, String)) -> Option<(Topic, Arc<Policy>)> {
    match (topic.parse(), parse_policy(written.as_bytes())) {
        (Ok(topic), Ok(policy)) => Some((topic, Arc::new(policy))),
        _ => {
            tracing::error!(topic, "the policy of a topic cannot be read and is ignored");
            None
        }
    }
}
