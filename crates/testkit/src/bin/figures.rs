//! The program `figures`: prints the figures of the last run of the fault suite. Exits with 1 if one is not reached.

use std::process::ExitCode;

use ringback_testkit::figures::{read, table};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]
fn main() -> ExitCode {
    match read() {
        Ok(all) => {
            let (text, is_complete) = table(&all);
            print!("{text}");
            if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("figures: {error:#}");
            ExitCode::from(2)
        }
    }
}
