//! Simulations of a whole Ringback: the API, carriers and notifiers in one thread, on the store in memory, in
//! virtual time. A seed decides everything that is random, so that a run can be repeated.
//!
//! `world` starts and crashes the roles and makes time pass, `receiver` answers callbacks by a script,
//! `calls` lets calls of the store fail, `history` keeps what happened, `properties` checks what must hold, `seeds`
//! runs a scenario with many seeds, and `scenarios` are the tests. docs/internals/testing.md describes how to run them.

#![cfg(test)]

mod calls;
mod clock;
mod history;
mod properties;
mod receiver;
mod scenarios;
mod seeds;
mod world;
