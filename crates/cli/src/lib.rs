//! The command line. `up` runs a complete Ringback, `listen` a receiver to try it with; every other command calls the
//! HTTP API. The commands and their arguments are in `commands`. The binary `ringback` is [`main`].

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
