//! A job to be submitted.

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

The same topic and id with the same content again changes nothing and is no error.";

/// A job, by flags or as JSON.
#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// A file with one JSON job, as the API takes it; - is standard input
    #[arg(conflicts_with_all = ["topic", "id", "delay", "at", "url", "body", "body_file",
        "content_type", "header", "context", "retry", "timeout", "ttr", "on_dead"])]
    pub(crate) file: Option<PathBuf>,
    /// What kind of job it is
    #[arg(long, required_unless_present = "file", value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Which job of the topic; without it the server makes one
    #[arg(long, value_parser = values::id)]
    pub(crate) id: Option<String>,
    /// How long to wait: 10m, "1h 30m", 250ms, or seconds as a number
    #[arg(long, value_name = "DURATION", conflicts_with = "at", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// When it is due, by RFC 3339
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) at: Option<String>,
    /// Where it is handed over: an http or https URL; without it as its topic's policy says, else consumers
    /// reserve it
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The body: JSON, or anything together with --content-type
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// The body from a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// The body's media type, where it is not JSON
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// A header to deliver with; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    /// An entry of the context, delivered as a header ringback-context-KEY; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::context)]
    pub(crate) context: Vec<Pair>,
    /// The waits after each failure, such as "15s 3m 10m", or default, standard-webhooks or none
    #[arg(long, value_name = "WAITS")]
    pub(crate) retry: Option<Retry>,
    /// The deadline of one attempt
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    /// How long a consumer has the job; only without --url
    #[arg(long, value_name = "DURATION", conflicts_with = "url")]
    pub(crate) ttr: Option<Wait>,
    /// Where it is told if the job dies: an http or https URL
    #[arg(long, value_name = "URL")]
    pub(crate) on_dead: Option<String>,
}
