//! Copies the epochs that carriers log into a history: which process claimed a shard, and what it did under the claim.

use jiff::Timestamp;
use serde_json::Value;

use super::Recorded;
use crate::history::{Entry, History, LockUse};

/// Writes the fields of a log line as a claim or an effect, if they are about an epoch, and returns whether they are.
/// `t` is the time of the line, `pid` the process that logged it.
pub fn write_epoch(fields: &Value, t: u64, pid: u32, history: &History) -> bool {
    let is_claim = match fields["message"].as_str() {
        Some("epoch begins") => true,
        Some("epoch used") => false,
        _ => return false,
    };
    let number = |name: &str| fields[name].as_u64().unwrap_or_else(|| panic!("{name} of {fields}"));
    let epoch = fields["epoch"].as_str().and_then(|epoch| epoch.parse().ok());
    let used = LockUse {
        t,
        asked: number("asked").saturating_sub(history.wall()),
        lock: &format!("shard-{}", number("shard")),
        token: epoch.unwrap_or_else(|| panic!("epoch of {fields}")),
        pid,
        fenced: fields["fenced"] == true,
    };
    history.write(&if is_claim { Entry::Claim(used) } else { Entry::Effect(used) });
    true
}

impl Recorded {
    /// Writes the epochs in the whole JSON log of a process, which counts as one process over its restarts. Returns
    /// how many uses were fenced.
    pub fn epochs(&self, log: &str, pid: u32) -> usize {
        let mut fenced = 0;
        // A line that a killed process has left incomplete is not JSON.
        for line in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let fields = line.get("fields").unwrap_or(&line);
            let logged = line["timestamp"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
            let logged =
                logged.and_then(|time| u64::try_from(time.as_microsecond()).ok()).unwrap_or_default();
            let is_epoch =
                write_epoch(fields, logged.saturating_sub(self.history.wall()), pid, &self.history);
            fenced += usize::from(is_epoch && fields["fenced"] == true);
        }
        fenced
    }
}
