//! The flags of every command that calls the API: the server, and the format of the output.

use clap::{Args, ValueEnum};
use reqwest::Url;

use super::values;

/// The server, and the format of the output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server and output")]
pub(crate) struct Remote {
    /// URL of the API
    #[arg(long, global = true, env = "RINGBACK_URL", value_name = "URL",
        default_value = "http://127.0.0.1:7411", value_parser = values::server)]
    pub(crate) server: Url,
    /// Output format: table for people, json for scripts (the API's JSON, unchanged)
    #[arg(long, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // The flag describes them: descriptions here make every help text longer.
    Table,
    Json,
}
