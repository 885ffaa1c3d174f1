//! Tells from /proc whether a process is stopped.

use std::fs;

/// Whether a process is stopped: in the state `T` of its `stat` file.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}
