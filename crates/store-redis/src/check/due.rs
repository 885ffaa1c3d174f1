//! The removal of due times that lead to no delayed job. A transition leaves none behind, unless the server was killed
//! in the middle of a write and has replayed half of it. A promote counts each as a job, so a repair removes them
//! before it counts. They are not findings: until they are due they do no harm, and a check counts them as stale.

use ringback_core::store_types::StoreError;

use super::Walk;
use super::calls::{LANES, RECORDS, Scan};
use super::counts::Lane;
use crate::script;

impl Walk<'_> {
    /// Removes due times that lead to no delayed job, and logs how many. Each is judged in the call that removes it, so
    /// changes meanwhile do no harm.
    pub(super) async fn remove_due(&self) -> Result<(), StoreError> {
        let removed = self.remove_near().await? + self.remove_far().await?;
        if removed > 0 {
            tracing::info!(
                shard = self.shard.number(),
                removed,
                "removed due times that led to no delayed job"
            );
        }
        Ok(())
    }

    async fn remove_near(&self) -> Result<u64, StoreError> {
        let (mut scan, mut removed) = (Scan::start(), 0);
        while !scan.is_over {
            for lane in self.calls.page::<Vec<Lane>>(&script::CHECK_INDEX, &mut scan, LANES).await? {
                let mut entries = Scan::start();
                while !entries.is_over {
                    removed +=
                        self.calls.page_of::<u64>(&script::CHECK_DUE, &lane, &mut entries, RECORDS).await?;
                }
            }
        }
        Ok(removed)
    }

    async fn remove_far(&self) -> Result<u64, StoreError> {
        let (mut scan, mut removed) = (Scan::start(), 0);
        while !scan.is_over {
            for slot in self.calls.page::<Vec<String>>(&script::CHECK_SLOTS, &mut scan, LANES).await? {
                let mut skip = 0;
                loop {
                    let (read, gone) = self.calls.remove_far_due(&slot, skip).await?;
                    if read == 0 {
                        break;
                    }
                    (skip, removed) = (skip + read, removed + gone);
                }
            }
        }
        Ok(removed)
    }
}
