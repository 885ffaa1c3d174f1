//! The shared model: what a job is, how it may move, and what a store promises. No I/O.
//!
//! ```text
//!              reschedule                      ┌────────────────── revive ───────────────────────┐
//!                    ┌─────┐                   │                                                 │
//!            submit  │     ▼    promote, run   ▼          reserve              complete          │
//!  (nothing) ──────▶ delayed ─────────────────▶ ready ─────────────▶ reserved ─────────▶ done    │
//!                      ▲  │                      │ ▲                  │ │ │ │                    │
//!                      │  │ cancel        cancel │ └── recover ───────┘ │ │ └─ bury ──▶ dead ────┤
//!                      │  └─────▶ cancelled ◀────┘     release          │ │              │       └ evict, purge ▶ (gone)
//!                      └────────────── retry ───────────────────────────┘ └─▶ cancelled ◀┘ cancel
//! ```
//!
//! The main modules, in reading order: [`job`], [`state`], [`outcome`], [`retry`], [`topic_policy`], [`schedule`],
//! [`lane`], [`destination`], [`store_types`] (arguments and results of the store's transitions).

pub mod access;
pub mod backoff;
pub mod breaker;
pub mod clock;
pub mod connection_url;
pub mod credential;
pub mod destination;
pub mod duration;
pub mod encoding;
pub mod enum_names;
pub mod fault;
pub mod flow;
pub mod hex;
pub mod job;
pub mod lane;
pub mod limits;
pub mod outcome;
pub mod retry;
pub mod schedule;
pub mod state;
pub mod store_types;
pub mod token;
pub mod topic_policy;
pub mod written_time;
