//! Tests of the checker: it accepts histories that are right, and names what is wrong with others.

mod lines;
mod losses;
mod mutations;
mod reports;
mod right;
mod small;
mod written;

use super::generator::{Plan, generate};
use super::{Report, check};

/// A generated history that is right, as text.
fn history(seed: u64, jobs: u64, has_faults: bool) -> Vec<u8> {
    let mut text = Vec::new();
    generate(Plan { seed, jobs, has_faults }, &mut text).expect("memory can be written");
    text
}

fn report(text: &[u8]) -> Report {
    check(text).unwrap_or_else(|unreadable| panic!("{unreadable}"))
}
