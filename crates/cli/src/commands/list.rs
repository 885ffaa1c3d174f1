//! `ringback list`: prints pending and dead jobs, page by page.

use super::pages::{self, List};
use super::session::Session;
use crate::args::ListArgs;
use crate::failure::Verdict;
use crate::output::{Align, Table, job_row};

pub(crate) async fn run(session: &mut Session, args: &ListArgs) -> anyhow::Result<Verdict> {
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
    let (path, query, limit) = (&["v1", "jobs"], args.filter.query(), args.page.limit());
    let list = List { path, query, limit, of: "jobs", feature: "lists of jobs" };
    pages::print(session, list, table, job_row).await
}
