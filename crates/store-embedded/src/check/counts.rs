//! The check of ledgers, and of counts by lane, topic, tenant and shard. Ledgers and the counts of lanes are compared
//! with the records; the counts of a topic with the rows of its lanes, and the sums of a tenant or shard with the rows
//! of topics. A transition changes all of them together, so a difference stays the same until it is repaired. Sums are
//! repaired first, since a repair of the rows below them changes them too.

use std::collections::{BTreeMap, BTreeSet};

use redb::ReadTransaction;
use ringback_core::lane::Lane;
use ringback_core::state::State;
use ringback_core::store_types::{DamageKind, Finding, Shard};
use strum::VariantArray as _;

use super::repair::{Action, Findings};
use crate::error::Result;
use crate::tables::{ByName, LaneCounts, ShardRow, Sums, Tables, TopicRow, is_sum, tenant_of};

/// The number of records by shard and name of the state.
pub(crate) type StateCounts = BTreeMap<(u16, &'static str), i64>;

/// Compares each shard's ledger and tombstones with the records. Adds the jobs that repairs found missing to the check.
pub(crate) fn check_ledgers(
    findings: &mut Findings,
    mut rows: BTreeMap<u16, ShardRow>,
    counts: &StateCounts,
) {
    // A record that cannot be read is not missing.
    let can_balance = !findings.check.found.contains_key(&DamageKind::Unreadable);
    for (shard, _) in counts.keys() {
        rows.entry(*shard).or_default();
    }
    for (shard, row) in rows {
        let count = |state: State| counts.get(&(shard, <&str>::from(state))).copied().unwrap_or(0);
        findings.check.missing += row.ledger.missing();
        check_ledger(findings, Shard(shard), &row, count, can_balance);
    }
}

fn check_ledger(
    findings: &mut Findings,
    shard: Shard,
    row: &ShardRow,
    count: impl Fn(State) -> i64,
    can_balance: bool,
) {
    let (mut off, mut wrong, mut after) = (Vec::new(), Vec::new(), row.ledger.clone());
    for &state in State::VARIANTS {
        let (jobs, counted) = (count(state), i64::try_from(row.ledger.of(state)).unwrap_or(i64::MAX));
        // Tombstones are evicted, so there are fewer than jobs that ever ended.
        if jobs > counted || (jobs < counted && !state.is_terminal()) {
            wrong.push(format!("the ledger counts {counted} {state} jobs, and there are {jobs}"));
            off.push((state, jobs - counted));
            after.shift(state, jobs - counted);
        }
    }
    let uncounted = after.uncounted().finding();
    let can_repair = can_balance || uncounted.is_none();
    wrong.extend(uncounted);
    if !wrong.is_empty() {
        let finding = Finding::new(DamageKind::Ledger, shard, wrong.join("; "));
        findings.add(finding, can_repair.then_some(Action::ShiftLedger(off)));
    }
    let tombstones = count(State::Done) + count(State::Cancelled);
    let counted = i64::try_from(row.tombstones).unwrap_or(i64::MAX);
    if tombstones != counted {
        let detail = format!("{counted} tombstones are counted, and there are {tombstones}");
        let finding = Finding::new(DamageKind::Ledger, shard, detail);
        findings.add(finding, Some(Action::ShiftTombstones(tombstones - counted)));
    }
}

pub(crate) fn check_lanes(findings: &mut Findings, stored: &ByName<LaneCounts>, jobs: &ByName<LaneCounts>) {
    let lanes: BTreeSet<_> = jobs.keys().chain(stored.keys()).collect();
    for key in lanes {
        let [stored, jobs] = [stored, jobs].map(|rows| rows.get(key).copied().unwrap_or_default());
        let (shard, lane) = key;
        let by = jobs.minus(stored);
        if by != LaneCounts::default() {
            let detail = format!("lane {lane:?} is counted with {stored} jobs, and has {jobs}");
            let finding =
                Finding::new(DamageKind::LaneCount, Shard(*shard), detail).of_topic(Lane::topic_of(lane));
            findings.add(finding, Some(Action::ShiftLane(lane.as_str().into(), by)));
        }
    }
    // An empty row does no harm: the next job of the lane changes or removes it.
    findings.check.stale += stored.values().filter(|jobs| jobs.is_empty()).count() as u64;
}

/// Compares the sums of each shard and tenant with the rows of topics, and the number of lanes of each topic with the
/// stored rows of lanes. Checks that each topic with jobs or a pause is listed.
pub(crate) fn check_topics(
    findings: &mut Findings,
    tables: &Tables<ReadTransaction>,
    stored_lanes: &ByName<LaneCounts>,
) -> Result<()> {
    let rows = tables.counts.topics.all()?;
    let row_of = |key: &(u16, String)| rows.get(key).copied().unwrap_or_default();
    let mut lanes: ByName<u64> = BTreeMap::new();
    for ((shard, lane), _) in stored_lanes.iter().filter(|(_, jobs)| !jobs.is_empty()) {
        *lanes.entry((*shard, Lane::topic_of(lane).to_owned())).or_default() += 1;
    }
    let keys = lanes.keys().chain(rows.keys());
    let (sums, topics): (BTreeSet<_>, BTreeSet<_>) = keys.partition(|(_, topic)| is_sum(topic));
    let mut sums: BTreeMap<_, _> = sums.into_iter().map(|row| (row.clone(), Sums::default())).collect();
    for key in &topics {
        for name in [Some(""), tenant_of(&key.1)].into_iter().flatten() {
            sums.entry((key.0, name.to_owned())).or_default().add(row_of(key));
        }
    }
    for ((shard, name), counted) in sums {
        let stored = Sums::stored(row_of(&(shard, name.clone())));
        let by = counted.minus(stored);
        if by != Sums::default() {
            let what =
                if name.is_empty() { "the shard".to_owned() } else { format!("tenant {:?}", &name[1..]) };
            let detail = format!("{what} is counted with {stored}, and has {counted}");
            let finding = Finding::new(DamageKind::Topic, Shard(shard), detail);
            findings.add(finding, Some(Action::ShiftSums(name.into(), by)));
        }
    }
    for key in topics {
        check_topic(findings, tables, key, row_of(key), lanes.get(key).copied().unwrap_or(0))?;
    }
    Ok(())
}

fn check_topic(
    findings: &mut Findings,
    tables: &Tables<ReadTransaction>,
    (shard, topic): &(u16, String),
    stored: TopicRow,
    lanes: u64,
) -> Result<()> {
    let finding = |detail| Finding::new(DamageKind::Topic, Shard(*shard), detail).of_topic(topic);
    if stored.lanes != lanes {
        let counted = stored.lanes;
        let detail = format!("topic {topic:?} is counted with {counted} lanes with jobs, and has {lanes}");
        let by = lanes.cast_signed().wrapping_sub(counted.cast_signed());
        findings.add(finding(detail), Some(Action::ShiftTopic(topic.as_str().into(), by)));
    }
    // A topic with delayed jobs was checked with the schedule.
    let is_in_use = lanes > 0 || stored.is_paused();
    if is_in_use
        && tables.due.time_of(*shard, topic)?.is_none()
        && tables.due.first_of(*shard, topic)?.is_none()
    {
        let detail = format!("the topics of the shard do not list {topic:?}");
        findings.add(finding(detail), Some(Action::RegisterTopic(topic.as_str().into())));
    }
    Ok(())
}
