//! Processes: what they use is bounded (`ResourcesBounded`), they end as expected (`ProcessesHealthy`) and tell no
//! secrets (`SecretsHidden`); and a hostile tenant does not delay the others (`TenantsApart`).

use super::{Judgement, Run, millis};
use crate::history::entry::LogLevel;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::{ProcessesHealthy, ResourcesBounded, SecretsHidden, TenantsApart};
use crate::history::parsed_lines::{ExitRecord, Tables};

/// How much later than twice its lateness alone a tenant's may be, in µs.
const TENANT_SLACK: u64 = 1_000_000;

pub(super) fn check(run: &Run<'_>, found: &mut Judgement) {
    let tables = run.tables;
    check_samples(tables, &mut found.findings);
    for exit in &tables.run.exits {
        found.findings.checked(ProcessesHealthy);
        check_exit(tables, exit, &mut found.findings);
    }
    for log in &tables.run.logs {
        found.findings.checked(ProcessesHealthy);
        let text = &log.text;
        match log.level {
            LogLevel::Panic => {
                let what = format_args!("a process panicked: {text}");
                found.findings.violated(ProcessesHealthy, None, &[log.line], what);
            }
            LogLevel::Error if !log.is_known => {
                let what = format_args!("a process logged an unknown error: {text}");
                found.findings.violated(ProcessesHealthy, None, &[log.line], what);
            }
            LogLevel::Error => {}
        }
    }
    check_secrets(tables, &mut found.findings);
    check_tenants(tables, found);
}

fn check_samples(tables: &Tables, findings: &mut Findings) {
    for ((name, of), series) in &tables.run.series {
        let Some(limit) = tables.run.limits.get(name) else { continue };
        findings.checked(ResourcesBounded);
        if series.most > limit.most {
            let what =
                format_args!("{name} of {of} reached {}, but its limit is {}", series.most, limit.most);
            findings.violated(ResourcesBounded, None, &[series.lines[1]], what);
        }
        let Some(leak) = limit.leak else { continue };
        if series.last.saturating_mul(100) > series.first.saturating_mul(100 + leak) {
            let (first, last) = (series.first, series.last);
            let what = format_args!("{name} of {of} was {first} at first and {last} at the end");
            findings.violated(ResourcesBounded, None, &[series.lines[0], series.lines[2]], what);
        }
    }
}

/// Checks that a process ended with status 0, by a signal during or after a fault that hit it, or with another status
/// after a fault of the kind `crash…`.
fn check_exit(tables: &Tables, exit: &ExitRecord, findings: &mut Findings) {
    let hit_by =
        tables.run.faults.iter().find(|fault| fault.pid == Some(exit.pid) && fault.begin <= exit.time);
    let is_expected = match (exit.status, exit.signal) {
        (Some(0), None) => true,
        (_, Some(_)) => hit_by.is_some(),
        (Some(_), None) => hit_by.is_some_and(|fault| fault.kind.starts_with("crash")),
        (None, None) => false,
    };
    if !is_expected {
        let mut lines = vec![exit.line];
        lines.extend(tables.run.starts.get(&exit.pid));
        let (pid, status, signal) = (exit.pid, exit.status, exit.signal);
        let what = format_args!("process {pid} ended with status {status:?} and signal {signal:?}");
        findings.violated(ProcessesHealthy, None, &lines, what);
    }
}

fn check_secrets(tables: &Tables, findings: &mut Findings) {
    if tables.run.canaries > 0 {
        findings.checked(SecretsHidden);
    }
    let (lines, count) = &tables.run.leaks;
    if *count > 0 {
        let what = format_args!("{count} lines of the history have a planted secret");
        findings.violated(SecretsHidden, None, lines, what);
    }
    for (line, leaks) in &tables.run.scans {
        findings.checked(SecretsHidden);
        if *leaks > 0 {
            let what = format_args!("{leaks} planted secrets are in logs, metrics or answers");
            findings.violated(SecretsHidden, None, &[*line], what);
        }
    }
}

fn check_tenants(tables: &Tables, found: &mut Judgement) {
    for (topic, alone) in &tables.run.tenants {
        let Some(p99) = found.counts.p99_of_topic(topic) else { continue };
        found.findings.checked(TenantsApart);
        if p99 > alone.saturating_mul(2) + TENANT_SLACK {
            let (p99, alone) = (millis(p99), millis(*alone));
            let what =
                format_args!("topic {topic} was {p99} ms late at the 99th percentile, and {alone} ms alone");
            found.findings.violated(TenantsApart, None, &[], what);
        }
    }
}
