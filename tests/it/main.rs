//! End-to-end tests: real processes, a private redis-server each, receivers on loopback.
//!
//! Build the binaries first (`cargo build --bins`, or `make test`, which does).

mod sample;

mod attempts;
mod bad_input;
mod batch;
mod books;
mod cancel;
mod cli;
mod cluster;
mod crash;
mod dead;
mod demo;
mod deploy;
mod docs;
mod events;
mod installation;
mod lifecycle;
mod listing;
mod load;
mod moves;
mod moving;
mod observe;
mod on_dead;
mod openapi;
mod outage;
mod policies;
mod pull;
mod race;
mod retry;
mod shutdown;
mod store;
mod testkit;
mod topics;
mod trace;
mod up;
