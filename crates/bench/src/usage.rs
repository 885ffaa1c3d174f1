//! CPU time and memory of processes and threads, and the memory of the machine, from /proc.

use std::fs;
use std::path::{Path, PathBuf};

/// The seconds of CPU time that a process has used, in user and kernel mode. Panics if the process is gone.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    ticks(Path::new(&format!("/proc/{pid}/stat"))).expect("the process is there")
}

/// A thread whose CPU time another thread can read.
#[derive(Clone, Debug)]
pub(crate) struct Thread(PathBuf);

impl Thread {
    pub(crate) fn this() -> Self {
        Self(Path::new("/proc").join(fs::read_link("/proc/thread-self").expect("Linux has it")))
    }

    /// The seconds of CPU time that the thread has used; zero when it has ended.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        ticks(&self.0.join("stat")).unwrap_or(0.0)
    }
}

/// The resident memory of a process, in MiB.
pub(crate) fn resident_mib(pid: u32) -> f64 {
    mib(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// The highest resident memory that a process has had, in MiB.
pub(crate) fn peak_mib(pid: u32) -> f64 {
    mib(&format!("/proc/{pid}/status"), "VmHWM:")
}

/// The memory that the machine has available, in MiB.
pub(crate) fn available_mib() -> f64 {
    mib("/proc/meminfo", "MemAvailable:")
}

/// The seconds in user and kernel mode in a `stat` file; `None` if it cannot be read.
fn ticks(stat: &Path) -> Option<f64> {
    /// /proc counts in hundredths of a second on every machine.
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
