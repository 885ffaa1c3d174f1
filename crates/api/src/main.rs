//! The binary `ringback-api`.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use ringback_api::Config;
use ringback_service::Service;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    Service {
        name: "ringback-api",
        about: "Serves the HTTP API: submit, query and manage jobs, and reserve pull jobs",
        usage: None,
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    }
    .main(ringback_api::run)
}
