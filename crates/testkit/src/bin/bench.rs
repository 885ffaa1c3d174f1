//! The benchmarks as a program: `bench [--quick] [--shards=N] [--profile=always|everysec] [--growth=N] [scenario …]`;
//! all of them without a name. It fails when a scenario breaks.

use std::process::ExitCode;

use ringback_testkit::bench::{parse, run, serve};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "whoever started it is told what is wrong")]
async fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    if serve(&words).await {
        return ExitCode::SUCCESS;
    }
    let (setup, names) = match parse(words.into_iter()) {
        Ok(parsed) => parsed,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(64);
        }
    };
    let broken = tokio::select! {
        broken = run(&names, &setup) => broken,
        // What was started ends with the scenario that is dropped here.
        () = told_to_stop() => {
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

/// Returns at SIGTERM or SIGINT.
async fn told_to_stop() {
    let mut terminate = signal(SignalKind::terminate()).expect("a runtime that takes signals");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a runtime that takes signals");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
