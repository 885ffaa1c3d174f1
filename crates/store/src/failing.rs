//! Failing destinations: takes in what a process reports of them, together with what others have reported.

use ringback_core::contract::{DestinationReport, FailingDestination, StoreError};
use ringback_core::job::TenantScope;

use crate::backend::backend;
use crate::store::Store;

/// How often a call begins again because another process has changed the same destination meanwhile.
const TRIES: usize = 8;

impl Store {
    /// Takes reports in. Returns false if other processes changed the same destinations each time, so that nothing was
    /// taken in.
    /// Reporting the same again can count its failures twice.
    pub async fn report_destinations(&self, reports: &[DestinationReport]) -> Result<bool, StoreError> {
        for _ in 0..TRIES {
            let mut shared = backend!(self.failing().await)?;
            let changes = shared.report(reports);
            if changes.is_empty() || backend!(self.change_failing(&changes).await)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The destinations that fail for the jobs of a scope.
    pub async fn failing_destinations(
        &self,
        scope: &TenantScope,
    ) -> Result<Vec<FailingDestination>, StoreError> {
        Ok(backend!(self.failing().await)?.destinations(scope))
    }
}
