//! Limits of destinations over all shards, and places for callbacks under them.

use ringback_core::destination::DestinationPause;
use ringback_core::flow::Limits;
use ringback_core::store_types::{Admission, Admitted, LimitState, PauseLimit, StoreError};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Limits callbacks to a destination, in place of a former limit of the same name; without any limit ends that. If it
    /// would be one limit too many, changes nothing and returns which bound that is. A limit holds from the answer on. It
    /// is marked in all shards before it holds, and after it has ended, so a call that fails half-way may delay callbacks
    /// but exceeds no limit; repeat it.
    pub async fn limit_destination(
        &self,
        of: &DestinationPause,
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

    async fn mark_limit(&self, of: &DestinationPause, is_limited: bool) -> Result<(), StoreError> {
        for shard in self.shards() {
            backend!(self.mark_limit(shard, of, is_limited).await)?;
        }
        Ok(())
    }

    /// Whose callbacks to which destinations are limited.
    pub async fn limit_names(&self) -> Result<Vec<DestinationPause>, StoreError> {
        backend!(self.limit_names().await)
    }

    /// The limits with these names, and how much of them is used. Leaves out those that do not exist.
    pub async fn limits(&self, of: &[DestinationPause]) -> Result<Vec<LimitState>, StoreError> {
        backend!(self.limits(of).await)
    }

    /// Takes places back, and gives those that are wanted and free under all limits of their lanes: an answer for each lane
    /// that wants some. If its answer is lost, places that it gave lapse in the time that the call says.
    pub async fn admit(&self, admission: &Admission) -> Result<Vec<Admitted>, StoreError> {
        backend!(self.admit(admission).await)
    }
}
