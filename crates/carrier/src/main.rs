//! The carrier's process.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use ringback_carrier::{Config, run};
use ringback_service::Service;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let service = Service {
        name: "ringback-carrier",
        about: "Moves due jobs to ready, brings back jobs whose lease ran out, removes old dead ones",
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    };
    service.main(run)
}
