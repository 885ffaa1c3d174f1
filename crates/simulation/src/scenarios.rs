//! The scenarios: tests that each run a simulation with certain clients, receivers and faults, and check the outcome.

mod cancels;
mod client_interventions;
mod default_tiers;
mod jobs_over_a_year;
mod notices;
mod pull;
mod random_jobs;
mod repeatable;
mod schedules;
mod under_faults;
mod without_faults;
