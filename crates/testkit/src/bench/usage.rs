//! CPU time and memory of processes, from /proc.

use std::fs;

/// Seconds of CPU time that a process has used, in user and kernel mode.
///
/// # Panics
/// When there is no such process.
pub(super) fn cpu_seconds(pid: u32) -> f64 {
    /// Linux counts in hundredths of a second wherever it is asked through /proc.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// How much of a process is in memory now, in MiB.
///
/// # Panics
/// When there is no such process.
pub(super) fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
