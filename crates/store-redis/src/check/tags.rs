//! The index of tags in a check: each of its members must lead to a job with the tag.

use ringback_core::store_types::StoreError;

use super::Walk;
use super::answers::Repaired;
use super::calls::{Scan, TAGS};
use crate::script;

impl Walk<'_> {
    /// Removes members of the index of tags that lead to no job, if repairs are asked for; else counts them as stale.
    pub(super) async fn stray_tags(&mut self) -> Result<(), StoreError> {
        let mut scan = Scan::start();
        while !scan.is_over {
            let strays: Vec<Vec<u8>> = self.calls.page(&script::CHECK_TAGS, &mut scan, TAGS).await?;
            let repaired = self.repair("stray_tags", &strays).await?;
            self.check.stale +=
                repaired.iter().filter(|repaired| **repaired == Repaired::Left).count() as u64;
        }
        Ok(())
    }
}
