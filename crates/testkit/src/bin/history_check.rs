//! The program `history-check [--json] FILE`: checks the history of a test run and prints the report. It exits with 0 if
//! the history is clean, with 1 if an invariant is violated, and with 2 if it cannot be read.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use ringback_testkit::history::{Report, check};

/// The exit status of a history that cannot be read.
const UNREADABLE: u8 = 2;
/// The bytes that are read at once.
const BUFFER: usize = 1 << 20;

#[expect(clippy::print_stderr, reason = "errors go to the terminal")]
fn main() -> ExitCode {
    match run() {
        Ok(report) if report.clean => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("history-check: {error:#}");
            ExitCode::from(UNREADABLE)
        }
    }
}

fn run() -> anyhow::Result<Report> {
    let (mut is_json, mut files) = (false, Vec::new());
    for arg in std::env::args_os().skip(1) {
        if arg == "--json" {
            is_json = true;
        } else {
            files.push(arg);
        }
    }
    let [file] = files.as_slice() else { bail!("usage: history-check [--json] FILE") };
    let name = || file.display().to_string();
    let history = File::open(file).with_context(name)?;
    let report = check(BufReader::with_capacity(BUFFER, history)).with_context(name)?;
    let text = if is_json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(report)
}
