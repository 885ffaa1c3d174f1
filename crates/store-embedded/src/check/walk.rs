//! The walk over a snapshot: looks up each job in the indexes, each topic and lane with jobs in the schedule and the
//! turns, and each schedule among the times, and checks the logs of attempts. Keeps the counts of every lane and topic
//! in memory; `counts` compares them.

use std::collections::BTreeMap;
use std::sync::Weak;

use redb::ReadTransaction;
use ringback_core::lane::Lane;
use ringback_core::store_types::{Check, DamageKind, Finding, Repair, Shard, StoreError};

use super::counts::{StateCounts, check_lanes, check_ledgers, check_topics};
use super::order::check_keys;
use super::repair::{Action, Findings};
use crate::error::Result;
use crate::tables::{ByName, LaneCounts, PAUSED, Record, Tables, is_of_destination};

/// Reads all tables and returns what is wrong. Blocks for long. Fails with [`StoreError::Closed`] if `caller` is gone.
pub(crate) fn walk(
    tables: &Tables<ReadTransaction>,
    shards: u16,
    repair: Repair,
    caller: &Weak<()>,
) -> Result<Findings> {
    let mut walk = Walk {
        tables,
        caller,
        findings: Findings {
            repair,
            check: Check { shards, compared: shards, ..Check::default() },
            fixes: Vec::new(),
        },
        counts: BTreeMap::new(),
        lanes: BTreeMap::new(),
        entries: 0,
    };
    tables.records.each(|number, record| walk.record(number, record))?;
    walk.schedule()?;
    walk.turns()?;
    walk.recurring()?;
    let Walk { mut findings, counts, lanes, entries, .. } = walk;
    // No two jobs have the same entry, so the entries that were not counted are stale.
    findings.check.stale += tables.index_entries()?.saturating_sub(entries);
    let shards = tables.shards.all()?;
    check_keys(&mut findings, tables, &shards, || check_caller(caller))?;
    check_ledgers(&mut findings, shards, &counts);
    for (shard, detail) in tables.attempts.faults()? {
        findings.add(Finding::new(DamageKind::Attempts, Shard(shard), detail), None);
    }
    let stored = tables.counts.lanes.all()?;
    check_topics(&mut findings, tables, &stored)?;
    check_lanes(&mut findings, &stored, &lanes);
    Ok(findings)
}

struct Walk<'t> {
    tables: &'t Tables<ReadTransaction>,
    caller: &'t Weak<()>,
    findings: Findings,
    /// Jobs and tombstones by state.
    counts: StateCounts,
    /// Jobs that have not ended, by lane.
    lanes: ByName<LaneCounts>,
    /// How many of the index entries and bodies belong to jobs.
    entries: u64,
}

impl Walk<'_> {
    fn record(&mut self, number: u64, record: Option<Record>) -> Result<()> {
        check_caller(self.caller)?;
        let Some(record) = record else {
            let detail = format!("the record of job number {number} cannot be read");
            self.findings.add(Finding::new(DamageKind::Unreadable, Shard(0), detail), None);
            return Ok(());
        };
        let (shard, state, records) = (record.shard, record.state(), &self.tables.records);
        let is_open = !state.is_terminal();
        let is_named = records.number(record.locator)? == Some(number);
        let is_indexed = self.tables.is_indexed(&record)?;
        let has_body = records.has_body(number)?;
        let (tagged, untagged) = self.tables.tagged.count(&record)?;
        self.entries += u64::from(is_named) + u64::from(is_indexed) + u64::from(has_body && is_open);
        self.entries += tagged;
        *self.counts.entry((shard, <&str>::from(state))).or_default() += 1;
        if is_open {
            self.findings.check.checked += 1;
            self.lanes.entry((shard, record.lane().name())).or_default().count(state, 1);
        }
        let finding = |kind, detail| -> Result<Finding> {
            let finding = Finding::new(kind, Shard(shard), detail).of_topic(&record.topic);
            Ok(finding.of_job(records.id(number)?))
        };
        if is_open && !has_body {
            let finding = finding(DamageKind::Body, format!("the body of a {state} job is missing"))?;
            self.findings.add(finding, None);
        }
        if untagged > 0 {
            let finding = finding(DamageKind::Tag, format!("the index of tags does not have a {state} job"))?;
            self.findings.add(finding, Some(Action::RelinkTags(number)));
        }
        if !is_named || !is_indexed {
            let what = if is_open { "job" } else { "tombstone" };
            let finding = finding(DamageKind::Unindexed, format!("no index has a {state} {what}"))?;
            self.findings.add(finding, Some(Action::RelinkJob(number)));
        }
        Ok(())
    }

    /// Checks that each topic with delayed jobs is in the schedule of due times, and counts stale entries there.
    fn schedule(&mut self) -> Result<()> {
        let (due, caller) = (&self.tables.due, self.caller);
        let rows = self.tables.shards.all()?;
        let findings = &mut self.findings;
        due.each_topic(|shard, topic, first| {
            check_caller(caller)?;
            // A topic that is due already may be behind others that were due in the same pass.
            let seen = rows.get(&shard).map_or(0, |row| row.time_us / 1000);
            let at = due.time_of(shard, topic)?.filter(|at| *at <= seen.max(first));
            if !at.map_or(Ok(false), |at| due.is_scheduled(shard, topic, at))? {
                let detail = format!("the delayed jobs of {topic:?} are not in the schedule");
                let finding = Finding::new(DamageKind::Schedule, Shard(shard), detail).of_topic(topic);
                findings.add(finding, Some(Action::RelinkTopic(topic.into())));
            }
            Ok(())
        })?;
        due.each_scheduled(|shard, topic, at| {
            check_caller(caller)?;
            let is_right = due.first_of(shard, topic)?.is_some() && due.time_of(shard, topic)? == Some(at);
            findings.check.stale += u64::from(!is_right);
            Ok(())
        })
    }

    /// Checks that each schedule that fires again is among the times, and counts stale times.
    fn recurring(&mut self) -> Result<()> {
        let (schedules, caller) = (&self.tables.schedules, self.caller);
        let (findings, mut with_time) = (&mut self.findings, 0);
        schedules.each(|shard, name, next, has_time| {
            check_caller(caller)?;
            with_time += u64::from(has_time && next.is_some());
            if !has_time {
                let detail = format!("schedule {name:?}: it does not fire");
                let finding = Finding::new(DamageKind::Recurring, Shard(shard), detail);
                findings.add(finding, Some(Action::RelinkSchedule(name.into())));
            }
            Ok(())
        })?;
        self.findings.check.stale += schedules.len_of_times()?.saturating_sub(with_time);
        Ok(())
    }

    /// Checks that each lane with ready jobs has its turn, and counts stale turns.
    fn turns(&mut self) -> Result<()> {
        let Tables { ready, counts, destinations, .. } = self.tables;
        let caller = self.caller;
        let findings = &mut self.findings;
        ready.each_lane(|shard, lane| {
            check_caller(caller)?;
            let topic = Lane::topic_of(lane);
            let has_turn = match ready.turn_of(shard, lane)? {
                // A resume gives paused lanes their turns, so only lanes of a paused topic may have this one.
                Some(PAUSED) if !counts.topics.stored(shard, topic)?.is_paused() => false,
                Some(turn) if is_of_destination(turn) && !destinations.may_park(shard, lane, turn)? => false,
                Some(turn) => ready.has_turn(shard, lane, turn)?,
                None => false,
            };
            if !has_turn {
                let detail = format!("the ready jobs of {lane:?} have no turn");
                let finding = Finding::new(DamageKind::Schedule, Shard(shard), detail).of_topic(topic);
                findings.add(finding, Some(Action::RelinkLane(lane.into())));
            }
            Ok(())
        })?;
        ready.each_turn(|shard, lane, turn| {
            check_caller(caller)?;
            let is_right = !ready.is_empty(shard, lane)? && ready.turn_of(shard, lane)? == Some(turn);
            findings.check.stale += u64::from(!is_right);
            Ok(())
        })
    }
}

/// Fails with [`StoreError::Closed`] once the caller is gone.
fn check_caller(caller: &Weak<()>) -> Result<()> {
    if caller.strong_count() == 0 { Err(StoreError::Closed.into()) } else { Ok(()) }
}
