//! The program `demo [URL]`: runs the demo against the API at `URL`, else `RINGBACK_URL`, else the default local URL.

use std::process::ExitCode;

use ringback_testkit::demo::{DEFAULT_URL, run};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "errors go to the terminal")]
async fn main() -> ExitCode {
    let variable = || std::env::var_os("RINGBACK_URL")?.into_string().ok().filter(|url| !url.is_empty());
    let url = std::env::args().nth(1).or_else(variable).unwrap_or_else(|| DEFAULT_URL.to_owned());
    match run(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
