//! Checks the invariants: job by job, then for the run as a whole.

mod cancel;
mod content;
mod counts;
mod due;
mod end;
mod job;
mod keys;
mod leases;
mod locks;
mod process;
mod repeat;
mod retries;
mod states;
mod store;

use std::collections::{BTreeMap, HashMap};

pub use self::counts::Totals;
pub(crate) use self::counts::{Counts, Lateness};
use self::job::Jobs;
use super::entry::{FaultClass, Loss};
use super::findings::Findings;
use super::parsed_lines::{FaultRecord, Tables};
use super::records::{NEVER, Span};
use super::windows::Windows;

/// For how long after its end a fault explains what is unusual, where the start line has no bound, in µs.
const DEFAULT_GRACE: u64 = 30_000_000;
/// The kind of fault that replaces a master which works.
const FAIL_OVER: &str = "fail-over";

/// The history and when its faults were, in a form that answers quickly.
pub(crate) struct Run<'a> {
    pub(crate) tables: &'a Tables,
    /// When a fault or the unexpected end of a process explains what is unusual.
    disturbed: Windows,
    /// When a fault of a network or a receiver explains a failure that no receiver saw.
    unreachable: Windows,
    /// When the store may lose what it has accepted.
    lossy: Windows,
    /// While a master that still answers is replaced: a process may read from it and not know of its successor.
    replaced: Windows,
    /// The faults by kind, for the lateness in each.
    by_kind: BTreeMap<&'a str, Windows>,
    has_policies_with_jitter: bool,
    /// The idempotency keys whose jobs are known, and those jobs.
    used_keys: HashMap<u32, u32>,
}

impl<'a> Run<'a> {
    fn new(tables: &'a Tables) -> Self {
        let grace = tables.settings.live.unwrap_or(DEFAULT_GRACE);
        let faults = &tables.run.faults;
        let window = |fault: &FaultRecord| (fault.begin, fault.end.saturating_add(grace));
        // A process that ends with 0 has released its jobs before.
        let exits = tables.run.exits.iter().filter(|exit| exit.status != Some(0));
        let exits = exits.map(|exit| (exit.time, exit.time.saturating_add(grace)));
        let of = |classes: &[FaultClass]| {
            Windows::new(faults.iter().filter(|fault| classes.contains(&fault.class)).map(window))
        };
        let store = faults.iter().filter(|fault| fault.class.is_store());
        let replaced = faults.iter().filter(|fault| fault.kind == FAIL_OVER);
        let replaced = Windows::new(replaced.map(|fault| (fault.begin, fault.end)));
        let lossy = store.map(|fault| (fault.begin.saturating_sub(tables.settings.loss), fault.end));
        let mut by_kind = BTreeMap::<_, Vec<_>>::new();
        for fault in faults {
            by_kind.entry(fault.kind.as_str()).or_default().push(window(fault));
        }
        Self {
            tables,
            disturbed: Windows::new(faults.iter().map(window).chain(exits)),
            replaced,
            unreachable: of(&[FaultClass::Network, FaultClass::Receiver]),
            lossy: if tables.settings.loss == 0 { Windows::default() } else { Windows::new(lossy) },
            by_kind: by_kind.into_iter().map(|(kind, windows)| (kind, Windows::new(windows))).collect(),
            has_policies_with_jitter: tables.run.policies.values().any(|policy| policy.jitter > 0.0),
            used_keys: keys::used(tables),
        }
    }

    /// Whether a fault or the unexpected end of a process explains what is unusual between two times.
    fn explains(&self, first: u64, last: u64) -> bool {
        self.disturbed.overlap(first, last)
    }

    /// Whether the history has a final line for every job that is pending or dead.
    fn is_dumped(&self) -> bool {
        self.tables.run.end.as_ref().is_some_and(|end| end.dumped)
    }

    /// Whether the store may have lost what a call was answered with: by its profile, or by a loss in the history.
    fn may_lose(&self, call: &Span) -> bool {
        let (sent, ended) = (call.sent, call.ended);
        let is_in = |loss: &Loss| loss.has_calls() && loss.since <= ended && sent <= loss.t;
        self.lossy.overlap(ended, ended) || self.tables.run.losses.iter().any(is_in)
    }

    /// Whether the store may lose what clients were answered.
    fn is_lossy(&self) -> bool {
        !self.lossy.is_empty() || self.tables.run.losses.iter().any(Loss::has_calls)
    }

    /// Whether the store lost, at a time from `first` to `last`, what clients had been answered.
    fn forgets(&self, first: u64, last: u64) -> bool {
        let mut losses = self.tables.run.losses.iter().filter(|loss| loss.has_calls());
        losses.any(|loss| (first..=last).contains(&loss.t))
    }

    fn is_drained(&self) -> bool {
        self.tables.run.end.as_ref().is_some_and(|end| end.drained)
    }
}

/// The findings in a history, and its counts.
pub(crate) struct Judgement {
    pub(crate) findings: Findings,
    pub(crate) counts: Counts,
}

/// Checks all invariants, and counts what the history has.
pub(crate) fn judge(tables: &Tables) -> Judgement {
    let run = Run::new(tables);
    let mut found = Judgement { findings: Findings::default(), counts: Counts::new(&run) };
    let mut spread = retries::Spread::default();
    for job in Jobs::new(tables) {
        content::check(&run, &job, &mut found);
        repeat::check(&run, &job, &mut found);
        due::check(&run, &job, &mut found);
        cancel::check(&run, &job, &mut found);
        retries::check(&run, &job, &mut found, &mut spread);
        leases::check(&run, &job, &mut found);
        states::check(&run, &job, &mut found);
        end::check(&run, &job, &mut found);
        found.counts.job(&run, &job);
    }
    if run.has_policies_with_jitter {
        spread.check(&mut found.findings);
    }
    keys::check(&run, &mut found.findings);
    leases::check_unknown_receipts(tables, &mut found.findings);
    locks::check(tables, &mut found.findings);
    process::check(&run, &mut found);
    store::check(&run, &mut found);
    found
}

/// Microseconds as milliseconds; infinite for [`NEVER`].
fn millis(micros: u64) -> f64 {
    if micros == NEVER { f64::INFINITY } else { micros as f64 / 1_000.0 }
}
