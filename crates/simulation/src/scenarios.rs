//! The scenarios: tests that each run a simulation with certain clients, receivers and faults, and check the outcome.

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
