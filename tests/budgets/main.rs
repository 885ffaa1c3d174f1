//! Costs of a job against written bounds: calls to Redis, memory, allocations and instructions. None depends on the
//! speed of the machine.
//!
//! The bounds are in [`bounds`]. `make guard` runs only this and prints the tables.

mod allocations;
mod bounds;
mod calls;
mod instructions;
mod life;
mod memory;
mod receiver;
mod redis_instructions;
mod sample;
mod table;
mod together;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::sync::{Mutex, MutexGuard};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Waits for the turn to allocate: allocations are counted for the whole process, so such tests run one at a time.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}
