//! The end of a run: what is left, the counts and the check.

use std::time::Duration;

use ringback_wire::{CheckResponse, StatsResponse};
use serde_json::Value;

use super::Recorded;
use crate::history::{Check, End, Entry, Final, Ledger, millis, state};
use crate::stack::Stack;
use crate::time::eventually;

/// The findings of a check that are about counts.
const COUNTS: [&str; 2] = ["ledger", "lane_count"];

impl Recorded {
    /// Waits until all jobs that are left in some topics are dead. Panics if that takes longer than `within`.
    pub async fn drain(&self, stack: &Stack, topics: &[&str], within: Duration) {
        eventually(within, "everything drains", async || {
            let jobs = exported(stack, topics).await;
            let left: Vec<_> = jobs.into_iter().filter(|job| job["state"] != "dead").collect();
            match left.first() {
                None => Ok(()),
                Some(job) => Err(format!("{} are left, such as {job}", left.len())),
            }
        })
        .await;
    }

    /// Writes the jobs that are left in some topics, the result of the consistency check and the end. With
    /// `has_ledger` it also writes the counts, which are those of all topics. The run must have been drained.
    pub async fn end(&self, stack: &Stack, topics: &[&str], has_ledger: bool) {
        for job in exported(stack, topics).await {
            self.left(&job);
        }
        if has_ledger {
            let stats: StatsResponse = serde_json::from_value(stack.stats().await).expect("the statistics");
            self.ledger(&stats);
        }
        let check = stack.check().await;
        self.write_check(&check);
        self.history.write(&Entry::End(End { t: self.history.t(), dumped: true, drained: true }));
    }

    fn left(&self, job: &Value) {
        let text = |field: &str| job[field].as_str().unwrap_or_default();
        let number =
            |field: &str| job[field].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
        self.history.write(&Entry::Final(Final {
            t: self.history.t(),
            job: &format!("{}/{}", text("topic"), text("id")),
            state: state(&job["state"]).unwrap_or_else(|| panic!("no state in {job}")),
            due: millis(&job["at"]),
            attempts: number("attempts"),
            failures: number("failures"),
            reason: text("reason").into(),
        }));
    }

    fn ledger(&self, stats: &StatsResponse) {
        let states = &stats.states;
        let (delayed, ready, reserved) = (states.delayed, states.ready, states.reserved);
        let (done, dead) = (states.done, states.dead);
        let (cancelled, purged, missing) = (states.cancelled, states.purged, states.missing);
        let accepted = delayed + ready + reserved + done + dead + cancelled + purged + missing;
        let t = self.history.t();
        self.history.write(&Entry::Ledger(Ledger {
            t,
            accepted,
            delayed,
            ready,
            reserved,
            done,
            dead,
            cancelled,
            purged,
            missing,
        }));
    }

    fn write_check(&self, check: &CheckResponse) {
        let miscounts =
            check.findings.iter().filter(|found| COUNTS.contains(&found.kind.as_str())).count() as u64;
        let findings = check.found.saturating_sub(miscounts);
        let (t, checked) = (self.history.t(), check.checked);
        self.history.write(&Entry::Check(Check { t, checked, findings, miscounts, foreign: 0 }));
    }
}

/// The jobs of some topics, from the export of all.
async fn exported(stack: &Stack, topics: &[&str]) -> Vec<Value> {
    let export = stack.get("/v1/export").await;
    let text = String::from_utf8(export.body.to_vec()).expect("JSON");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line of an export"));
    let is_wanted = |job: &Value| job["topic"].as_str().is_some_and(|topic| topics.contains(&topic));
    lines.filter(is_wanted).collect()
}
