//! The binary `ringback-carrier`.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use ringback_carrier::{Config, run};
use ringback_service::Service;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let service = Service {
        name: "ringback-carrier",
        about: "Makes due jobs ready, recovers expired leases, evicts old dead jobs, publishes notices",
        usage: None,
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    };
    service.main(run)
}
