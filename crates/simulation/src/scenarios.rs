//! The scenarios: what clients, receivers and faults do in a simulation.

mod cancels;
mod control;
mod default_tiers;
mod jobs;
mod notices;
mod pull;
mod repeatable;
mod schedules;
mod under_faults;
mod without_faults;
mod year;
