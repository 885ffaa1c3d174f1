//! The arguments of `ringback audit`.

use std::time::Duration;

use clap::Args;

use super::values;

const AUDIT_EXAMPLES: &str = "\
Examples:
  ringback audit
  ringback audit --repair
  ringback audit --output json | jq '.findings[]'

An audit can run while jobs are submitted and delivered, one at a time per API process. Exit codes: 0 no findings, or \
all are repaired; 1 findings remain.";

/// The options of an audit.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Restore missing index entries and correct counts; no job is removed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Time limit of the audit; the response comes only at its end
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::patience)]
    pub(crate) patience: Duration,
}
