//! The program `chaos`: one run under faults on each store that the command line names. Its exit status is that of
//! `history-check`: 0 if nothing is violated, 1 if something is, 2 if the run itself failed; 64 for a wrong argument.

use std::process::ExitCode;

use ringback_chaos::{Asked, parse, run};

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]
async fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Asked::Help(text)) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Asked::Run(options)) => run(&options).await,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(64)
        }
    }
}
