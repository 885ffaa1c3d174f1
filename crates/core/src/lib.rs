//! What a job is, how it may move, and the store that keeps it.
//!
//! ```text
//!              reschedule                      ┌────────────────── revive ───────────────────────┐
//!                    ┌─────┐                   │                                                 │
//!            submit  │     ▼    promote, run   ▼          reserve              complete          │
//!  (nothing) ──────▶ delayed ─────────────────▶ ready ─────────────▶ reserved ─────────▶ done    │
//!                      ▲  │                      │ ▲                  │ │ │ │                    │
//!                      │  │ cancel        cancel │ └── recover ───────┘ │ │ └─ bury ──▶ dead ────┤
//!                      │  └─────▶ cancelled ◀────┘     release          │ │              │       └ expire, purge ▶ (gone)
//!                      └────────────── retry ───────────────────────────┘ └─▶ cancelled ◀┘ cancel
//! ```
//!
//! Modules in reading order. All but [`store`] are synchronous and do no I/O.

pub mod clock;
pub mod job;
pub mod notice;
pub mod outcome;
pub mod policy;
pub mod retry;
pub mod state;
pub mod store;
pub mod wire;
