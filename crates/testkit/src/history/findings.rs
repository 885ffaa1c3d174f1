//! What the checks found: how often each invariant was checked, and what violates it.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::invariant::Invariant;

/// How many violations of each invariant are described.
const MAX_DESCRIBED: u64 = 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Violation {
    pub invariant: Invariant,
    /// The job, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The lines that prove it, from 1.
    pub lines: Vec<u32>,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.invariant)?;
        if let Some(job) = &self.job {
            write!(f, "job {job} ")?;
        }
        write!(f, "{} (", self.what)?;
        for (place, line) in self.lines.iter().enumerate() {
            write!(f, "{}{line}", if place == 0 { "lines " } else { ", " })?;
        }
        f.write_str(")")
    }
}

/// The findings about all invariants.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    checks: [u64; Invariant::VARIANTS.len()],
    violations: [u64; Invariant::VARIANTS.len()],
    described: Vec<Violation>,
}

impl Findings {
    pub(crate) fn checked(&mut self, invariant: Invariant) {
        self.checks[invariant.index()] += 1;
    }

    /// Counts a violation. Describes it, with its lines in order, if it is among the first [`MAX_DESCRIBED`] of its
    /// invariant.
    pub(crate) fn violated(
        &mut self,
        invariant: Invariant,
        job: Option<&str>,
        lines: &[u32],
        what: impl fmt::Display,
    ) {
        let count = &mut self.violations[invariant.index()];
        *count += 1;
        if *count <= MAX_DESCRIBED {
            let job = job.map(str::to_owned);
            let mut lines = lines.to_vec();
            lines.sort_unstable();
            lines.dedup();
            self.described.push(Violation { invariant, job, lines, what: what.to_string() });
        }
    }

    pub(crate) fn checks(&self, invariant: Invariant) -> u64 {
        self.checks[invariant.index()]
    }

    pub(crate) fn violations(&self, invariant: Invariant) -> u64 {
        self.violations[invariant.index()]
    }

    pub(crate) fn into_described(mut self) -> Vec<Violation> {
        self.described.sort_by_key(|violation| violation.invariant);
        self.described
    }
}
