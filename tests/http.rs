//! The public API as callers use it, on real processes: routes, deliveries, events, metrics.

mod attempts;
mod audit;
mod bad_input;
mod batch;
mod cancel;
mod dead_letter_notices;
mod dead_letters;
mod demo;
mod edge_log;
mod events;
mod export_import;
mod gauges;
mod if_exists;
mod lifecycle;
mod list;
mod masks;
mod metrics_and_logs;
mod openapi;
mod policies;
mod pull_jobs;
mod requests;
mod reschedule_run_revive;
mod retries;
mod time_zones;
mod topics;
mod tracing;
