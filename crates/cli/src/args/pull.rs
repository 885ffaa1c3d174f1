//! What consumers say: which jobs they reserve, and what became of each.

use clap::Args;

use super::values::{self, Wait};

const RESERVE_EXAMPLES: &str = "\
Examples:
  ringback reserve thumbnails
  ringback reserve thumbnails --max 10 --ttr 2m --wait 20s --output json | jq -r '.jobs[].receipt'

Exit codes: 0 also where there was nothing.";

/// Of each word on a reserved job.
pub(super) const RECEIPT_EXAMPLES: &str = "\
Examples:
  ringback finish \"$receipt\"
  ringback retry \"$receipt\" --delay 5m --error 'the printer is out of paper'
  ringback renew \"$receipt\" --ttr 10m
  ringback bury \"$receipt\" --reason unwanted
  ringback release \"$receipt\"";

/// What to reserve.
#[derive(Debug, Args)]
#[command(after_help = RESERVE_EXAMPLES)]
pub(crate) struct ReserveArgs {
    /// Jobs of this topic
    #[arg(value_parser = values::topic)]
    pub(crate) topic: String,
    /// At most so many, 1 to 100
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) max: u32,
    /// For how long; without it as long as each job or its topic says, else 30 s
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
    /// How long to wait where there are none, at most 60s
    #[arg(long, value_name = "DURATION")]
    pub(crate) wait: Option<Wait>,
}

/// A reserved job, by its receipt.
#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    /// The receipt that the reserve gave
    pub(crate) receipt: String,
}

/// A failure.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// How long to wait; without it as the job's retry policy says
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// A renewal.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// For how long from now on; without it 30 s
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
}

/// An end.
#[derive(Debug, Args)]
pub(crate) struct BuryArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Why, as one word; without it buried
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// A job given back.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// How long it is to wait; without it it is ready at once
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
}
