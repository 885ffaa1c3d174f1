//! The archive, without its database: takes the ends of jobs out of the store, makes rows of them, gives these to a sink,
//! and removes from the store what the sink has.
//!
//! `relay` is that work. `sink` is what it needs of a database; the binary `ringback-archiver` has PostgreSQL and SQLite.
//! `pipe` is a sink that is another process, for `ringback up`, whose store no other process can open. `attach` keeps
//! the store informed of what is archived, `start` starts it all, and `config` has the settings.

mod attach;
mod config;
mod metrics;
pub mod pipe;
mod relay;
mod row;
mod sink;
mod start;

pub use self::config::{ArchiveUrl, Config, SETTINGS};
pub use self::row::EndRow;
pub use self::sink::{Sink, SinkError, Written};
pub use self::start::start;
