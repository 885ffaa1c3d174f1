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
        about: "Moves due jobs to ready and brings back expired leases",
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    };
    service.main(run)
}
