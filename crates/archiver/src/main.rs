//! The binary `ringback-archiver`.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use ringback_archiver::{Config, run};
use ringback_service::Service;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let service = Service {
        name: "ringback-archiver",
        about: "Keeps the ended jobs in a database: PostgreSQL or SQLite",
        usage: None,
        version: env!("CARGO_PKG_VERSION"),
        settings: Config::SETTINGS,
        load: Config::load,
    };
    service.main(run)
}
