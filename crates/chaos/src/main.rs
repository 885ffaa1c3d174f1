//! The program `chaos`: one run under faults on each store that the command line names. Its exit status is that of
//! `history-check`: 0 if nothing is violated, 1 if something is, 2 if the run itself failed; 64 for a wrong argument.

use std::process::ExitCode;

use clap::Parser as _;
use ringback_chaos::{Options, run};

#[tokio::main]
async fn main() -> ExitCode {
    match Options::try_parse() {
        Ok(options) => run(&options).await,
        Err(error) => {
            error.print().ok();
            ExitCode::from(if error.use_stderr() { 64 } else { 0 })
        }
    }
}
