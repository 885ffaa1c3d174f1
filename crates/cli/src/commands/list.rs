//! `ringback list`: prints pending and dead jobs, page by page.

use clap::Args;

use super::pages::{self, List};
use super::session::Session;
use crate::args::{Filter, Page};
use crate::failure::Verdict;
use crate::output::{Table, job_row};

const LIST_EXAMPLES: &str = "\
Examples:
  ringback list
  ringback list --topic pay.notify --state dead --all
  ringback list --all --output json | jq -r 'select(.failures > 3) | .id'";

/// The filter and the size of a list.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) page: Page,
}

pub(crate) async fn run(session: &mut Session, args: &ListArgs) -> anyhow::Result<Verdict> {
    let columns = ["TOPIC", "ID", "STATE", "DUE", "", ">ATTEMPTS", ">FAILURES", "REASON"];
    let table = Table::new(columns, session.out.colour);
    let (path, query, limit) = (&["v1", "jobs"], args.filter.query(), args.page.limit());
    let list = List { path, query, limit, of: "jobs", feature: "lists of jobs" };
    pages::print(session, list, table, job_row).await
}
