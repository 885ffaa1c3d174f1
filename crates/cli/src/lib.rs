//! The command line `ringback`. `up` runs a complete Ringback, `listen` a receiver to try it with; the other commands
//! are in `commands`, and nearly all call the HTTP API, by `client`. `args` has the arguments that commands share,
//! `backup_file` the format of backups, `output` prints results, and `failure` errors.

mod access;
mod args;
mod backup_file;
mod client;
mod commands;
mod failure;
mod listen;
mod output;
mod progress;
mod response_lines;
mod up;

pub use crate::commands::{command, main};
