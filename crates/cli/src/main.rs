//! `ringback`: the command line. It speaks to the HTTP API alone; what each command does is
//! in `commands`, what they are told in `args`.

mod args;
mod client;
mod commands;
mod failure;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match args::Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => failure::usage(&error),
    }
}
