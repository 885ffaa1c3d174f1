//! `ringback list`: page after page, shown as they come.

use super::Session;
use super::pages::{self, List};
use crate::args::ListArgs;
use crate::failure::Verdict;
use crate::output::{Align, Table, job_row};

pub(super) async fn run(session: &mut Session, args: &ListArgs) -> anyhow::Result<Verdict> {
    let table = Table::new(
        [
            ("TOPIC", Align::Left),
            ("ID", Align::Left),
            ("STATE", Align::Left),
            ("DUE", Align::Left),
            ("", Align::Left),
            ("ATTEMPTS", Align::Right),
            ("FAILURES", Align::Right),
            ("REASON", Align::Left),
        ],
        session.out.colour,
    );
    let limit = if args.all { u64::MAX } else { args.limit };
    let list = List {
        path: &["v1", "jobs"],
        query: args.filter.query(),
        limit,
        of: "jobs",
        lacking: "lists of jobs",
    };
    pages::show(session, list, table, job_row).await
}
