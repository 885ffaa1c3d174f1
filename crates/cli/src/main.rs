//! `ringback`, the command line. `up` runs a complete Ringback, `listen` a receiver to try it with; every other command
//! calls the HTTP API. The commands and their arguments are in `commands`.

mod access;
mod args;
mod backup_file;
mod client;
mod commands;
mod failure;
mod listen;
mod output;
mod progress;
mod response_lines;
mod up;

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    commands::main()
}
