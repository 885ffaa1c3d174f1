//! The program `history-generate JOBS [SEED]`: prints a right history of that many jobs, with faults, to measure
//! `history-check` by.

use std::io::{self, BufWriter};

use anyhow::Context as _;
use ringback_testkit::history::generator::{Plan, generate};

fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>().context(arg));
    let jobs = numbers.next().context("usage: history-generate JOBS [SEED]")??;
    let seed = numbers.next().transpose()?.unwrap_or(1);
    generate(Plan { seed, jobs, has_faults: true }, &mut BufWriter::new(io::stdout().lock()))?;
    Ok(())
}
