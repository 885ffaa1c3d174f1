//! The store: what keeps jobs. [`Store`] has one call per edge of a job's life and passes it to the
//! backend, Redis or embedded. This crate also has what every user of a store needs: its settings, the
//! policies of topics, retries of pull jobs, and whether it is nearly full.
//!
//! Every call has a timeout, and every edge is atomic. Repeating a call whose reply was lost does no harm:
//! the store recognises a submit by its content, a reserve by its sequence, a settle by its receipt, a
//! cancel by the job's state, and a reschedule, run or revive by its token.

mod archive;
mod attempts;
mod audit_log;
mod backend;
mod book_changes;
mod book_entries;
mod bulks;
mod clock;
mod dead;
mod destinations;
mod draws;
mod edges;
mod failing;
mod feeds;
mod forecast;
mod gauges;
mod moves;
mod policy_book;
mod pressure;
mod pull;
mod reading;
mod retries;
mod schedules;
pub mod settings;
mod streams;
mod topics;

pub use ringback_store_embedded::{
    CallFault, CallFaults, Compacted, Memory, SCHEME as EMBEDDED_SCHEME, compact,
};

pub use self::backend::Store;
pub use self::book_entries::{AccessKeys, Credentials, Quotas};
pub use self::forecast::ForecastFirings;
pub use self::policy_book::{BookReadings, PoliciesUnknown, PolicyBook};
pub use self::pressure::Shortage;
pub use self::retries::Retries;
pub use self::streams::{Events, PolicyChanges, Stream, Wakes};
