//! What a walk finds: findings to report, and findings to repair.

use ringback_core::contract::{Audit, Finding, Repair};

use super::repair::{Action, Fix};

/// The most repairs after one walk. If there are more, another walk follows.
const MAX_FIXES: usize = 10_000;

pub(crate) struct Findings {
    pub(crate) repair: Repair,
    pub(crate) audit: Audit,
    pub(crate) fixes: Vec<Fix>,
}

impl Findings {
    /// Adds a finding: to the repairs, if these are wanted and there is an action for it, else to the
    /// report.
    pub(crate) fn add(&mut self, finding: Finding, action: Option<Action>) {
        match action {
            Some(action) if self.repair == Repair::Yes => {
                if self.fixes.len() < MAX_FIXES {
                    self.fixes.push(Fix { finding, action });
                }
            }
            _ => self.audit.find(finding),
        }
    }
}
