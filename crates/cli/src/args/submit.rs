//! The arguments of `ringback submit`.

use std::path::PathBuf;

use clap::Args;

use super::values::{self, Pair, Retry, Wait};

const SUBMIT_EXAMPLES: &str = "\
Examples:
  ringback submit --topic pay.notify --id order-1 --delay 10m \\
      --url https://merchant.example/notify --body '{\"status\":\"PAID\"}'
  ringback submit --topic remind --at 2026-11-20T09:30:00Z --url http://127.0.0.1:8080/hook \\
      --header x-tenant:a7 --context key=value --retry '15s 3m 10m' --timeout 5s
  ringback submit --topic files --url http://127.0.0.1:8080/hook --content-type image/png --body-file a.png
  ringback submit job.json
  echo '{\"topic\":\"t\",\"url\":\"http://127.0.0.1:8080/hook\"}' | ringback submit -

Submitting the same topic and id with the same content again changes nothing and is not an error.";

/// A job, made from flags or given as JSON.
#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// File with one JSON job, as the API takes it; - is standard input
    #[arg(conflicts_with_all = ["topic", "id", "delay", "at", "url", "body", "body_file",
        "content_type", "header", "context", "retry", "timeout", "ttr", "on_dead"])]
    pub(crate) file: Option<PathBuf>,
    /// Topic of the job
    #[arg(long, required_unless_present = "file", value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Id of the job, unique in its topic [default: made by the server]
    #[arg(long, value_parser = values::id)]
    pub(crate) id: Option<String>,
    /// Delay until the job is due: 10m, "1h 30m", 250ms, or a number of seconds
    #[arg(long, value_name = "DURATION", conflicts_with = "at", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// Due time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) at: Option<String>,
    /// URL (http or https) to deliver the job to [default: that of the topic's policy, else a pull job that
    /// consumers reserve]
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Body: JSON, or any text together with --content-type
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// File with the body; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Media type of a body that is not JSON
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Header of the delivery; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    /// Context entry, delivered as the header ringback-context-KEY; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::context)]
    pub(crate) context: Vec<Pair>,
    /// Delays after each failure, such as "15s 3m 10m", or a preset: default, standard-webhooks, none
    #[arg(long, value_name = "DELAYS")]
    pub(crate) retry: Option<Retry>,
    /// Time limit of one attempt, 100ms to 10m [default: that of the topic, else 10s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    /// Lease of a pull job, 100ms to 12h; not with --url [default: that of the topic, else 30s]
    #[arg(long, value_name = "DURATION", conflicts_with = "url")]
    pub(crate) ttr: Option<Wait>,
    /// URL (http or https) for a dead-letter notice if the job dies
    #[arg(long, value_name = "URL")]
    pub(crate) on_dead: Option<String>,
}
