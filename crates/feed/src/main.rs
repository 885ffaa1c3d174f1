//! The binary `ringback-feed`.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use ringback_feed::command;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    command::main(std::env::args_os())
}
