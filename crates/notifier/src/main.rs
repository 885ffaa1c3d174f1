//! The binary `ringback-notifier`.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use ringback_notifier::{Config, run};
use ringback_service::Service;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let service = Service {
        name: "ringback-notifier",
        about: "Delivers ready jobs: POSTs each to its callback URL and settles the outcome",
        usage: None,
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    };
    service.main(run)
}
