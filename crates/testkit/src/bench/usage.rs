//! CPU time and memory of processes and threads, and the memory of the machine, from /proc.

use std::fs;
use std::path::{Path, PathBuf};

/// Seconds of CPU time that a process has used, in user and kernel mode.
///
/// # Panics
/// When there is no such process.
pub(super) fn cpu_seconds(pid: u32) -> f64 {
    ticks(Path::new(&format!("/proc/{pid}/stat"))).expect("the process is there")
}

/// A thread, to ask for its CPU time from another one.
#[derive(Clone, Debug)]
pub(super) struct Thread(PathBuf);

impl Thread {
    /// The calling one.
    ///
    /// # Panics
    /// When /proc is not mounted.
    pub(super) fn this() -> Self {
        Self(Path::new("/proc").join(fs::read_link("/proc/thread-self").expect("Linux tells its threads")))
    }

    /// Seconds of CPU time that it has used; none when it has ended.
    pub(super) fn cpu_seconds(&self) -> f64 {
        ticks(&self.0.join("stat")).unwrap_or(0.0)
    }
}

/// How much of a process is in memory now, in MiB.
///
/// # Panics
/// When there is no such process.
pub(super) fn resident_mib(pid: u32) -> f64 {
    mib(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// How much of a process was in memory at most, in MiB.
///
/// # Panics
/// When there is no such process.
pub(super) fn peak_mib(pid: u32) -> f64 {
    mib(&format!("/proc/{pid}/status"), "VmHWM:")
}

/// What the machine could still give, in MiB.
///
/// # Panics
/// When /proc is not mounted.
pub(super) fn available_mib() -> f64 {
    mib("/proc/meminfo", "MemAvailable:")
}

/// Time in user and kernel mode, of a `stat` file.
fn ticks(stat: &Path) -> Option<f64> {
    /// Linux counts in hundredths of a second wherever it is asked through /proc.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(stat).ok()?;
    // The name in parentheses may hold spaces.
    let fields: Vec<_> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

fn mib(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
