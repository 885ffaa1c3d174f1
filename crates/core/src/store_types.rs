//! What the store promises: the arguments and results of every transition of a job's life, the same for all backends,
//! and the packed forms that backends share. Plain values without I/O. `ringback_store::Store` has the calls that take
//! and return these values, and the backend crates implement the calls.

mod admission;
mod archive;
pub mod attempt_log;
mod attempts;
mod audit_log;
mod bulk;
mod check;
mod clock_gap;
mod dead;
mod destinations;
mod error;
mod events;
mod failing;
mod failures;
mod feeds;
mod filter;
mod forced_breakers;
mod forecast;
mod gauges;
mod lateness;
mod lease;
mod loss;
mod moves;
mod options;
mod order;
mod outbox;
mod page;
mod pass;
pub mod payload;
mod quota_grant;
mod receipt;
mod reserve;
mod schedules;
mod shard;
mod stats;
mod submit_results;
mod topics;
pub mod transition_log;
mod wake;

pub use self::{
    admission::*,
    archive::*,
    attempts::*,
    audit_log::*,
    bulk::*,
    check::*,
    clock_gap::*,
    dead::*,
    destinations::*,
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
    order::*,
    outbox::*,
    page::*,
    pass::*,
    quota_grant::*,
    receipt::*,
    reserve::*,
    schedules::*,
    shard::*,
    stats::*,
    submit_results::*,
    topics::*,
    transition_log::{LoggedTransition, TransitionName},
    wake::*,
};
