//! The arguments of `ringback import` and `ringback export`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::list::Filter;
use super::values;

const IMPORT_EXAMPLES: &str = "\
Examples:
  ringback import jobs.ndjson
  ringback export | ringback import - --server http://other:7411
  ringback import jobs.ndjson --output json 2> refused.ndjson

A line is a job as `submit` takes it, or one that an export wrote. Running the same import again does no harm: jobs \
that exist already count as repeated.";

/// The file of an import.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// File with one JSON job per line; - is standard input
    pub(crate) file: PathBuf,
    /// How long to retry while the server does not answer
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::patience)]
    pub(crate) patience: Duration,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  ringback export -o jobs.ndjson
  ringback export --state dead --topic pay.notify | jq -r .reason | sort | uniq -c

A file is written as FILE.part and renamed when it is complete.";

/// The filter and the destination of an export.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// File to write [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How long to retry while the server does not answer; an export that has begun is not retried
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::patience)]
    pub(crate) patience: Duration,
}
