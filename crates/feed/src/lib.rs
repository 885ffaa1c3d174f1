//! The feed process: turns rows of a business database into jobs. Any number of feed processes share the feeds of a
//! file by leases in the store.
//!
//! `config` reads the file, `command` the command line. `run` holds the `lease` of a feed and works on it: `pass` reads
//! the rows that are due soon, again and again, and `outbox` takes rows out of a table as they come. `source` reads the
//! database by a `query`, `row` makes a submit of a row, and `load` has it admitted and stored, as the API does. `seen`
//! remembers which rows are in the store. `check` shows what would be loaded, and `seek_command` sets where a feed goes
//! on.

mod check;
pub mod command;
mod config;
mod lease;
mod load;
mod metrics;
mod outbox;
mod pass;
mod query;
mod row;
mod run;
mod seek_command;
mod seen;
mod source;
mod trouble;

pub use self::config::Config;
pub use self::metrics::METRICS;
pub use self::run::run;
