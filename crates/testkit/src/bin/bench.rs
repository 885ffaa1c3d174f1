//! The benchmarks as a program: `bench [--quick] [--shards=N] [scenario …]`; all of them
//! without a name.

use std::process::ExitCode;

use ringback_testkit::bench::{SCENARIOS, Setup, Size, run};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "a wrong name is told to whoever typed it")]
async fn main() -> ExitCode {
    let (flags, names): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let size = if flags.iter().any(|flag| flag == "--quick") { Size::Quick } else { Size::Full };
    let shards = flags.iter().find_map(|flag| flag.strip_prefix("--shards=")?.parse().ok());
    let setup = Setup { size, shards };
    let all = SCENARIOS.map(|(name, _)| name.to_owned()).to_vec();
    for name in if names.is_empty() { all } else { names } {
        if !run(&name, &setup).await {
            eprintln!("no scenario {name}; there are:");
            SCENARIOS.iter().for_each(|(name, about)| eprintln!("  {name:10} {about}"));
            return ExitCode::from(64);
        }
    }
    ExitCode::SUCCESS
}
