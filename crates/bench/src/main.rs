//! The program `bench`: runs the scenarios named on the command line, or all of them. It fails when a scenario panics.

use std::process::ExitCode;

use ringback_bench::{parse, run, serve};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "errors of the command line go to the terminal")]
async fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if serve(&args).await {
        return ExitCode::SUCCESS;
    }
    let (setup, scenarios) = match parse(args.into_iter()) {
        Ok(parsed) => parsed,
        Err(error) => {
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { 64 } else { 0 });
        }
    };
    let broken = tokio::select! {
        broken = run(&scenarios, &setup) => broken,
        // Servers and processes end with the scenario that is dropped here.
        () = stop_signal() => {
            eprintln!("bench: stopped");
            return ExitCode::FAILURE;
        }
    };
    if broken.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("bench: broken: {}", broken.join(", "));
    ExitCode::FAILURE
}

/// Waits for SIGTERM or SIGINT.
async fn stop_signal() {
    let mut terminate = signal(SignalKind::terminate()).expect("a runtime that takes signals");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a runtime that takes signals");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
