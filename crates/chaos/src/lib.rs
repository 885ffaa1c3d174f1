//! Runs a whole installation of real processes under load and faults, from a seed, and checks the history of the run:
//! `make chaos`. What is violated is printed with the lines that prove it.
//!
//! `installation` has the processes, `clients` and `receiver` the load, `faults` the schedule of faults, `watch` what
//! is measured meanwhile, `ending` the dump at the end. The checker is in the testkit.

mod clients;
mod clock;
mod ending;
mod fault;
mod faults;
mod installation;
mod logs;
mod options;
mod planted_secret;
mod receiver;
mod redis_client;
mod run;
mod store_kind;
mod store_servers;
mod verdict;
mod watch;
mod world;

use std::process::ExitCode;

pub use crate::fault::Kind;
pub use crate::options::Options;
pub use crate::store_kind::StoreKind;

/// Makes a run on each store, one after the other, and prints the reports. Exits with the highest status.
pub async fn run(options: &Options) -> ExitCode {
    let mut worst = 0;
    for store in &options.stores {
        let path = run::make(*store, options).await;
        worst = worst.max(verdict::judge(*store, options, &path));
    }
    ExitCode::from(worst)
}
