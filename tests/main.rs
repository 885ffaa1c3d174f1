//! End-to-end tests: real processes, a private store each, receivers on loopback.
//!
//! The tests start the binaries of the workspace, so build those first: `cargo build --workspace --bins`, or
//! `make test`, which does.

mod archive;
mod cli;
mod contract;
mod embedded;
mod faults;
mod feeds;
mod flow;
mod guides;
mod http;
mod prelude;
mod raw_post;
mod redis_layout;
mod sample_jobs;
mod testkit;
mod ui;
