//! `ringback compact`: makes the file of an embedded store smaller, and prints its sizes before and after.

use std::path::PathBuf;

use clap::Args;
use indicatif::HumanBytes;
use ringback_store::{Compacted, compact};
use serde_json::json;

use crate::args::Format;
use crate::output::Output;

const COMPACT_EXAMPLES: &str = "\
Examples:
  ringback compact ./ringback-data
  ringback compact /var/lib/ringback --prefix shop

The file of an embedded store keeps the room of jobs that have ended, and uses it for new ones. This makes the file as \
small as its jobs allow. No process may have the store open meanwhile. It can be interrupted at any time.";

/// The store to compact.
#[derive(Debug, Args)]
#[command(after_help = COMPACT_EXAMPLES)]
pub(crate) struct CompactArgs {
    /// Directory of the store, which no process has open
    pub(crate) directory: PathBuf,
    /// Name of the store's file, without .redb
    #[arg(long, env = "RINGBACK_PREFIX", value_name = "NAME", default_value = "ringback")]
    pub(crate) prefix: String,
}

pub(crate) fn run(out: &mut Output, args: &CompactArgs) -> anyhow::Result<()> {
    let file = args.directory.join(format!("{}.redb", args.prefix));
    let Compacted { before, after } = compact(&file)?;
    match out.format {
        Format::Json => {
            let result = json!({"file": file.display().to_string(), "before": before, "after": after});
            out.line(result.to_string())?;
        }
        Format::Table => {
            let (before, after) = (HumanBytes(before), HumanBytes(after));
            out.line(format!("{}: {before} before, {after} after", file.display()))?;
        }
    }
    out.flush()
}
