//! Pages of lists and purges, put together from several store calls, and their cursors.

mod dead;
mod jobs;

pub(crate) use self::dead::{PurgeCursor, list_dead, purge_dead, with_deliveries};
pub(crate) use self::jobs::{ListCursor, PageLimits, list_jobs};

/// A page of whole jobs ends soon after they have this many bytes in the answer.
pub(crate) const MAX_PAGE_BYTES: usize = 1024 * 1024;
