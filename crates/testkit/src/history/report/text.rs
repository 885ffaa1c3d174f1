//! The report as text.

use std::fmt;

use super::{InvariantResult, Quantiles, Report};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "history of {}", if self.name.is_empty() { "a run" } else { &self.name })?;
        self.write_totals(f)?;
        self.write_times(f)?;
        for standing in &self.invariants {
            let name = format!("{:?}", standing.invariant);
            let (meaning, checks) = (standing.invariant.meaning(), standing.checks);
            match standing.verdict {
                InvariantResult::Held => writeln!(f, "{name:<20}  held         {meaning} ({checks} checks)")?,
                InvariantResult::NotChecked => writeln!(f, "{name:<20}  not checked  {meaning}")?,
                InvariantResult::Violated => {
                    writeln!(f, "{name:<20}  VIOLATED     {meaning} ({} times)", standing.violations)?;
                }
            }
        }
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        writeln!(f, "{}", if self.clean { "clean" } else { "violations" })
    }
}

impl Report {
    fn write_totals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        let rows = [
            ("lines", totals.lines),
            ("jobs", totals.jobs),
            ("submits", totals.submits),
            ("jobs accepted", totals.accepted),
            ("deliveries", totals.deliveries),
            ("leases of consumers", totals.leases),
            ("unknown outcomes", totals.unknown_outcomes),
            ("processes killed", totals.kills),
            ("ms in which the machine stood still", totals.stalled_ms),
            ("ms in which the store was slow to answer", totals.silent_ms),
            ("lost", totals.lost),
            ("lost, as the profile allows", totals.lost_excused),
            ("early", totals.early),
            ("invented", totals.invented),
            ("duplicates after a fault", totals.duplicates_explained),
            ("duplicates without a fault", totals.duplicates_unexplained),
        ];
        rows.iter().try_for_each(|(name, count)| writeln!(f, "{count:>12}  {name}"))
    }

    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lateness(f, "all", &self.lateness_ms)?;
        for (kind, lateness) in &self.lateness_by_fault_ms {
            write_lateness(f, kind, lateness)?;
        }
        for (kind, recovery) in &self.recovery_ms {
            let (median, max) = (recovery.median, recovery.max);
            write!(
                f,
                "recovery from {kind}, {} faults: median {median:.1} ms, max {max:.1} ms",
                recovery.faults
            )?;
            match recovery.without_effect {
                0 => writeln!(f)?,
                count => writeln!(f, "; {count} without an effect afterwards")?,
            }
        }
        Ok(())
    }
}

fn write_lateness(f: &mut fmt::Formatter<'_>, of: &str, lateness: &Quantiles) -> fmt::Result {
    let Quantiles { count, p50, p99, p99_9, max } = lateness;
    writeln!(f, "lateness of {of}, {count} jobs: p50 {p50:.1} p99 {p99:.1} p99.9 {p99_9:.1} max {max:.1} ms")
}
