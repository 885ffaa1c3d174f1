//! What the store promises: the arguments and results of every edge of a job's life, the same for
//! all backends. Plain values without I/O. `ringback_store::Store` has the calls that take and
//! return them, and the backend crates implement these calls.

mod archive;
mod arrive;
pub mod attempt_log;
mod attempts;
mod audit;
mod audit_log;
mod bulk;
mod clock_gap;
mod dead;
mod destinations;
mod draw;
pub mod edge_log;
mod error;
mod events;
mod failing;
mod failures;
mod feeds;
mod filter;
mod forecast;
mod gauges;
mod lateness;
mod lease;
mod loss;
mod moves;
mod options;
mod outbox;
mod page;
mod pass;
pub mod payload;
mod receipt;
mod reserve;
mod schedules;
mod shard;
mod stats;
mod topics;
mod wake;

pub use self::{
    archive::*,
    arrive::*,
    attempts::*,
    audit::*,
    audit_log::*,
    bulk::*,
    clock_gap::*,
    dead::*,
    destinations::*,
    draw::*,
    edge_log::{EdgeName, TakenEdge},
    error::*,
    events::*,
    failing::*,
    failures::*,
    feeds::*,
    filter::{Filter, FilterIndex, MAX_ERROR_TEXT, TimeRange},
    forecast::*,
    gauges::*,
    lateness::*,
    lease::*,
    loss::*,
    moves::*,
    options::*,
    outbox::*,
    page::*,
    pass::*,
    receipt::*,
    reserve::*,
    schedules::*,
    shard::*,
    stats::*,
    topics::*,
    wake::*,
};
