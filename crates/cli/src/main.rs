//! `ringback`, the command line. `up` runs a complete Ringback; every other command calls the HTTP API. The commands and
//! their arguments are in `commands`.

mod args;
mod client;
mod commands;
mod failure;
mod output;
mod progress;
mod up;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match commands::Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => failure::usage(&error),
    }
}
