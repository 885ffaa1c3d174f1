//! Faults that are injected inside the processes and between them and Redis: crash points, planted bugs, and errors of
//! Redis. Clients and receivers write histories, which are checked.
//!
//! The binaries must be built with debug assertions, as `cargo build --workspace --bins` does.

mod crash_points;
mod planted_bugs;
mod processes;
mod quotas;
mod redis_errors;
mod release;
mod repairs;
mod seed;
mod sources;
