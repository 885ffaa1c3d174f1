//! Renders dead jobs as rows of a table.

use ringback_wire::DeadJobDetails;

use super::job::failure;
use super::{Cell, View};

pub(crate) fn dead_row(dead: &DeadJobDetails, view: &View) -> [Cell; 7] {
    [
        Cell::from(&dead.job.id),
        Cell::from(view.time(&dead.died_at)),
        Cell::from(view.relative(&dead.died_at)),
        Cell::from(dead.job.attempts),
        Cell::from(dead.job.reason.as_deref().unwrap_or_default()),
        Cell::from(dead.job.last.as_ref().map(failure).unwrap_or_default()),
        Cell::from(dead.job.tags.join(" ")),
    ]
}
