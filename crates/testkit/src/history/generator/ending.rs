//! The end of a history: what is left, and what the product says of itself.

use super::scene::Scene;
use crate::history::entry::{Check, End, Entry, Exit, Metric, Scan};

/// Adds the lines of the end at a time.
pub(super) fn end(scene: &mut Scene, t: u64, has_faults: bool) {
    scene.push_finals(t);
    let checked = scene.ledger.delayed + scene.ledger.dead;
    scene.push(t, &Entry::Check(Check { t, checked, findings: 0, miscounts: 0, foreign: 0 }));
    let mut ledger = scene.ledger.clone();
    ledger.t = t;
    scene.push(t, &Entry::Ledger(ledger));
    if !has_faults {
        for (name, label, value) in [
            ("ringback_api_submitted_jobs_total", "created", scene.created),
            ("ringback_notifier_attempts_total", "complete", scene.completed),
            ("ringback_notifier_lateness_seconds_count", "", scene.deliveries),
        ] {
            scene.push(t, &Entry::Metric(Metric { t, pid: 201, name, label, value }));
        }
    }
    scene.push(t, &Entry::Scan(Scan { t, bytes: 1_000_000, found: 0 }));
    scene.push(t, &Entry::Exit(Exit { t, pid: 101, status: Some(0), signal: None }));
    scene.push(t, &Entry::End(End { t, dumped: true, drained: true }));
}
