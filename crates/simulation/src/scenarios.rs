//! The scenarios: what clients, receivers and faults do in a simulation.

mod control;
mod default_tiers;
mod jobs;
mod pull;
mod repeatable;
mod schedules;
mod under_faults;
mod without_faults;
mod year;
