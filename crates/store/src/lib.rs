//! The store, which keeps jobs. [`Store`] has one call per transition of a job's life and passes it to the backend,
//! Redis or embedded. This crate also has what every user of a store needs: its settings, the shared configuration,
//! retries of pull jobs, streams of events and wake-ups, and whether it is nearly full.
//!
//! Every call has a timeout and can fail with any [`StoreError`](ringback_core::store_types::StoreError), and every
//! transition is atomic. Repeating a call does no harm, unless it says otherwise: the store recognises a submit by its
//! content, a reserve by its sequence, a settle by its receipt, a cancel by the job's state, and a reschedule, run or
//! revive by its token.

mod archive;
mod attempts;
mod audit_log;
mod backend;
mod bulks;
mod clock;
mod config_changes;
mod config_entries;
mod dead;
mod destinations;
mod feeds;
mod forecast;
mod limits;
mod order;
mod pressure;
mod pull;
mod pull_retries;
mod reading;
mod schedules;
pub mod settings;
mod shared_config;
mod store;
mod streams;
mod topics;
mod transitions;

pub use ringback_store_embedded::{
    CallFault, CallFaults, Compacted, Memory, SCHEME as EMBEDDED_SCHEME, compact,
};

pub use self::config_entries::{AccessKeys, Credentials, Quotas};
pub use self::forecast::ForecastFirings;
pub use self::pressure::Shortage;
pub use self::pull_retries::Retries;
pub use self::shared_config::{ConfigReadings, ConfigUnknown, SharedConfig};
pub use self::store::Store;
pub use self::streams::{Events, PolicyChanges, Stream, Wakes};
