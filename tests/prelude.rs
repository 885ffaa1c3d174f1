//! The names that most tests import: sample jobs, receivers, stacks and waits.

pub(crate) use std::time::Duration;

pub(crate) use ringback_core::outcome::Outcome;
pub(crate) use ringback_core::state::State;
pub(crate) use ringback_testkit::{Answer, Sink, Stack, StackOptions, eventually};
pub(crate) use serde_json::{Value, json};

pub(crate) use crate::sample_jobs::{SOON, TOPIC, half_noise, job, noise, with, with_all};
