//! `ringback list`: prints pending and dead jobs, page by page.

use clap::Args;

use super::inspect::include;
use super::pages::{self, List};
use super::session::Session;
use crate::args::{Filter, Page};
use crate::failure::Verdict;
use crate::output::{Table, job_row, job_row_full};

const LIST_EXAMPLES: &str = "\
Examples:
  ringback list
  ringback list --topic pay.notify --state dead --all
  ringback list --all --output json | jq -r 'select(.failures > 3) | .id'
  ringback list --full --all --output json | jq -r .request.url | sort | uniq -c";

/// The filter and the size of a list.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Show the URL and the body's type and size too; with --output json the whole request
    #[arg(long)]
    pub(crate) full: bool,
}

pub(crate) async fn run(session: &mut Session, args: &ListArgs) -> anyhow::Result<Verdict> {
    let (path, query, limit) = (&["v1", "jobs"], args.filter.query(), args.page.limit());
    let mut list = List { path, query, limit, of: "jobs", feature: "lists of jobs" };
    let [topic, id, state, due, relative, attempts, failures, reason] =
        ["TOPIC", "ID", "STATE", "DUE", "", ">ATTEMPTS", ">FAILURES", "REASON"];
    let colour = session.out.colour;
    if args.full {
        list.query.push(include());
        let columns = [topic, id, state, due, relative, attempts, failures, reason, "URL", "BODY"];
        return pages::print(session, list, Table::new(columns, colour), job_row_full).await;
    }
    let columns = [topic, id, state, due, relative, attempts, failures, reason];
    pages::print(session, list, Table::new(columns, colour), job_row).await
}
