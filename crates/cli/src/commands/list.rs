//! `ringback list`: prints pending and dead jobs, page by page.

use clap::Args;
use ringback_wire::InspectedJob;

use super::get_full::include;
use super::pages::{self, List};
use super::session::Session;
use crate::args::{Filter, Page};
use crate::failure::CommandOutcome;
use crate::output::{Cell, JOB_COLUMNS, REQUEST_COLUMNS, Table, View, job_row, request_cells, whose};

const LIST_EXAMPLES: &str = "\
Examples:
  ringback list
  ringback list --topic pay.notify --state dead --all
  ringback list --state dead --tenant '~all'
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

pub(crate) async fn run(session: &mut Session, args: &ListArgs) -> anyhow::Result<CommandOutcome> {
    let (path, query, limit) = (&["v1", "jobs"], args.filter.query(), args.page.limit());
    let mut list = List { path, query, limit, of: "jobs", feature: "lists of jobs" };
    let mut columns = JOB_COLUMNS.to_vec();
    if args.full {
        list.query.push(include());
        columns.extend(REQUEST_COLUMNS);
    }
    let row = |job: &InspectedJob, view: &View| {
        let mut row = job_row(&job.job, view).to_vec();
        row[0] = Cell::from(whose(job.tenant.as_deref(), &job.job.topic));
        if args.full {
            row.extend(request_cells(job.request.as_deref()));
        }
        row
    };
    let table = Table::new(columns, session.out.colour);
    pages::print(session, list, table, row).await
}
