//! The check of ordered topics: each key with jobs that wait has a head, and the number of such keys is right. A job that
//! waits and is missing from its key is found as one that no index has; rows that lead to no such job are stale.

use std::collections::BTreeMap;

use redb::ReadTransaction;
use ringback_core::lane::Lane;
use ringback_core::store_types::{DamageKind, Finding, Shard};

use super::repair::{Action, Findings};
use crate::error::Result;
use crate::tables::{KeyRow, ShardRow, Stage, Tables};

/// Reads all rows of keys, and compares the number of those with jobs that wait with the rows of shards. `go_on` fails
/// when the walk is to stop.
pub(crate) fn check_keys(
    findings: &mut Findings,
    tables: &Tables<ReadTransaction>,
    shards: &BTreeMap<u16, ShardRow>,
    go_on: impl Fn() -> Result<()>,
) -> Result<()> {
    // The rows of a key follow each other, its head first.
    let (mut led, mut last, mut waiting) = (None, None, BTreeMap::<u16, i64>::new());
    tables.order.each_of_keys(|row| {
        go_on()?;
        let is_right = leads_to_its_job(tables, &row)?;
        findings.check.stale += u64::from(!is_right);
        let key = (row.shard, row.key);
        if row.place.is_none() {
            led = is_right.then_some(key);
        } else if last.as_ref() != Some(&key) {
            *waiting.entry(key.0).or_default() += 1;
            if led.as_ref() != Some(&key) {
                let detail = format!("ready jobs of the key {:?} wait, and none goes before them", key.1);
                let finding = Finding::new(DamageKind::Schedule, Shard(key.0), detail);
                let finding = finding.of_topic(Lane::topic_of(&key.1));
                findings.add(finding, Some(Action::PassOn(key.1.as_str().into())));
            }
            last = Some(key);
        }
        Ok(())
    })?;
    for (shard, row) in shards {
        let (keys, counted) = (waiting.get(shard).copied().unwrap_or(0), row.waiting_keys.cast_signed());
        if keys != counted {
            let detail = format!("{counted} keys are counted with jobs that wait, and {keys} have some");
            let finding = Finding::new(DamageKind::Ledger, Shard(*shard), detail);
            findings.add(finding, Some(Action::ShiftKeys(keys - counted)));
        }
    }
    Ok(())
}

/// Whether a row of a key leads to a job of the key: one that is its head, or waits at the place of the row.
fn leads_to_its_job(tables: &Tables<ReadTransaction>, row: &KeyRow) -> Result<bool> {
    let Some(job) = tables.records.get(row.number)?.filter(|job| job.shard == row.shard) else {
        return Ok(false);
    };
    let is_right = match row.place {
        Some(place) => job.stage == Stage::Waiting(place),
        // Until the order holds for all jobs, some heads may be those of a former order.
        None => tables.order.topic(row.shard, &job.topic)?.is_some_and(|order| {
            order.keeps(&job) || order.since.is_none() && matches!(job.stage, Stage::Dead { .. })
        }),
    };
    Ok(is_right && tables.order_key(&job)?.as_ref() == Some(&row.key))
}
