//! Pages of lists and purges, put together from several store calls, and their cursors.

mod dead;
mod jobs;

pub(crate) use self::dead::{PurgeCursor, list_dead, purge_dead};
pub(crate) use self::jobs::{ListCursor, list_jobs};
