//! The arguments of the commands of consumers: reserve a pull job, settle it, extend its lease.

use clap::Args;

use super::topics::TopicArgs;
use super::values::Wait;

const RESERVE_EXAMPLES: &str = "\
Examples:
  ringback reserve thumbnails
  ringback reserve thumbnails --max 10 --ttr 2m --wait 20s --output json | jq -r '.jobs[].receipt'

The exit code is 0 also when no job is ready.";

/// The examples of all commands that take a receipt.
pub(crate) const RECEIPT_EXAMPLES: &str = "\
Examples:
  ringback finish \"$receipt\"
  ringback retry \"$receipt\" --delay 5m --error 'the printer is out of paper'
  ringback renew \"$receipt\" --ttr 10m
  ringback bury \"$receipt\" --reason unwanted
  ringback release \"$receipt\"";

/// The jobs to reserve.
#[derive(Debug, Args)]
#[command(after_help = RESERVE_EXAMPLES)]
pub(crate) struct ReserveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Maximum number of jobs, 1 to 100
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) max: u32,
    /// Lease, 100ms to 12h [default: that of the job or of its topic, else 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
    /// How long to wait when no job is ready, at most 60s [default: 0s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) wait: Option<Wait>,
}

/// A reserved job, by its receipt.
#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    /// Receipt that `reserve` printed
    pub(crate) receipt: String,
}

/// A failure of a reserved job.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Delay until the next attempt [default: that of the retry policy]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// Error message to record
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// A new lease.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Lease from now, 100ms to 12h [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
}

/// A job to make dead.
#[derive(Debug, Args)]
pub(crate) struct BuryArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Reason, as one word [default: buried]
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// Error message to record
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// A job to release.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Delay until the job is ready again [default: none]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
}
