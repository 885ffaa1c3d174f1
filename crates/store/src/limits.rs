//! Limits of destinations and topics over all shards, and places for callbacks under them.

use std::slice;

use ringback_core::flow::Limits;
use ringback_core::job::Topic;
use ringback_core::store_types::{Admission, Admitted, LimitState, LimitTarget, PauseLimit, StoreError};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Limits callbacks, in place of a former limit of the same target; without any limit ends that. If it
    /// would be one limit too many, changes nothing and returns which bound that is. A limit holds from the answer on. It
    /// is marked in all shards before it holds, and after it has ended, so a call that fails half-way may delay callbacks
    /// but exceeds no limit; repeat it.
    pub async fn limit(
        &self,
        of: &LimitTarget,
        limits: &Limits,
    ) -> Result<Result<(), PauseLimit>, StoreError> {
        let mut exceeded = None;
        if limits.is_empty() {
            backend!(self.put_limit(of, limits).await)?;
        } else {
            self.mark_limit(of, true).await?;
            exceeded = backend!(self.put_limit(of, limits).await)?;
        }
        if limits.is_empty() || exceeded.is_some() {
            self.mark_limit(of, false).await?;
        }
        Ok(exceeded.map_or(Ok(()), Err))
    }

    async fn mark_limit(&self, of: &LimitTarget, is_limited: bool) -> Result<(), StoreError> {
        for shard in self.shards() {
            backend!(self.mark_limit(shard, of, is_limited).await)?;
        }
        Ok(())
    }

    /// Makes the limits of a topic those of its stored policy, after the policy was deleted or put. Does nothing if the
    /// topic is not limited.
    pub(crate) async fn follow_policy(&self, topic: &Topic) -> Result<(), StoreError> {
        let of = LimitTarget::Topic(topic.clone());
        // Others may put a policy meanwhile.
        while let Some(LimitState { limits, .. }) = self.limits(slice::from_ref(&of)).await?.pop() {
            let wanted = self.policy(topic).await?.map(|policy| policy.limits).unwrap_or_default();
            if limits == wanted {
                break;
            }
            // There is one already, so it is not one too many.
            let _ = self.limit(&of, &wanted).await?;
        }
        Ok(())
    }

    /// Which callbacks are limited.
    pub async fn limit_names(&self) -> Result<Vec<LimitTarget>, StoreError> {
        backend!(self.limit_names().await)
    }

    /// The limits of these targets, and how much of them is used. Leaves out those that do not exist.
    pub async fn limits(&self, of: &[LimitTarget]) -> Result<Vec<LimitState>, StoreError> {
        backend!(self.limits(of).await)
    }

    /// Takes places back, and gives those that are wanted and free under all limits of their lanes: an answer for each lane
    /// that wants some. If its answer is lost, places that it gave lapse in the time that the call says.
    pub async fn admit(&self, admission: &Admission) -> Result<Vec<Admitted>, StoreError> {
        backend!(self.admit(admission).await)
    }
}
