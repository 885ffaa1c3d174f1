//! The audit: walks all tables of a snapshot and compares them with each other and with the
//! ledger. Each record is in exactly one state, indexed for it, and nothing else is indexed.

use std::collections::{BTreeMap, BTreeSet};

use redb::ReadTransaction;

use super::tables::{self, Entry, Hold, Jobs, Known, Record, Stage};
use crate::state::State;
use crate::store::{Audit, StoreError};

/// The most findings that are told.
const MOST: usize = 100;

/// Reads everything; takes a while for a large store, and blocks. Needs memory in proportion
/// to the number of jobs.
pub(super) fn audit(snapshot: &ReadTransaction) -> Result<Audit, StoreError> {
    let mut books = Books { entries: tables::entries(snapshot)?, ..Books::default() };
    tables::each_record(snapshot, |number, record| {
        books.checked += 1;
        match record {
            Some(record) => books.record(&record),
            None => books.find(format!("record {number} cannot be read")),
        }
    })?;
    tables::audit_attempts(snapshot)?.into_iter().for_each(|finding| books.find(finding));
    for (shard, row) in tables::rows(snapshot)? {
        books.times.insert(shard, row.time_us / 1000);
        if !row.ledger.adds_up() {
            books.find(format!("the ledger of shard {shard} does not add up: {:?}", row.ledger));
        }
        for state in State::ALL {
            let kept = books.states.remove(&(shard, state.name())).unwrap_or(0);
            let counted = row.ledger.of(state);
            // Tombstones are forgotten, so fewer are kept than were counted.
            if kept > counted || (kept < counted && !state.is_terminal()) {
                books.find(format!("shard {shard} keeps {kept} {state} jobs and counts {counted}"));
            }
        }
        let tombstones = books.tombstones.remove(&shard).unwrap_or(0);
        if tombstones != row.ended {
            books.find(format!("shard {shard} keeps {tombstones} tombstones and counts {}", row.ended));
        }
    }
    let (jobs, known) = tables::counts(snapshot)?;
    books.counts(jobs, known);
    Ok(books.close())
}

#[derive(Default)]
struct Books {
    entries: BTreeSet<Entry>,
    /// Topics and lanes that something waits in.
    topics: BTreeMap<(u16, String), u64>,
    lanes: BTreeSet<(u16, String)>,
    /// The last time that each shard has seen.
    times: BTreeMap<u16, u64>,
    states: BTreeMap<(u16, &'static str), u64>,
    tombstones: BTreeMap<u16, u64>,
    /// Jobs that have not ended, by lane and state.
    open: BTreeMap<(u16, String), BTreeMap<&'static str, i64>>,
    checked: u64,
    findings: Vec<String>,
}

impl Books {
    fn find(&mut self, what: String) {
        if self.findings.len() < MOST {
            self.findings.push(what);
        }
    }

    fn record(&mut self, record: &Record) {
        let Record { number, shard, .. } = *record;
        *self.states.entry((shard, record.state().name())).or_default() += 1;
        self.expect(&Entry::Id(record.locator, number));
        if record.ended().is_none() {
            self.expect(&Entry::Body(number));
        }
        if record.ended().is_none() {
            let lane = self.open.entry((shard, record.lane())).or_default();
            *lane.entry(record.state().name()).or_default() += 1;
        }
        match &record.stage {
            Stage::Delayed => {
                let topic = record.topic.to_string();
                self.expect(&Entry::Due(shard, topic.clone(), record.due, number));
                let first = self.topics.entry((shard, topic)).or_insert(record.due);
                *first = record.due.min(*first);
            }
            Stage::Ready { position } => {
                self.expect(&Entry::Ready(shard, record.lane(), *position, number));
                self.lanes.insert((shard, record.lane()));
            }
            Stage::Reserved { deadline, .. } => self.expect(&Entry::Lease(shard, *deadline, number)),
            Stage::Dead { since, .. } => self.expect(&Entry::Dead(shard, *since, number)),
            Stage::Done { at } | Stage::Cancelled { at, .. } => {
                *self.tombstones.entry(shard).or_default() += 1;
                self.expect(&Entry::Ended(shard, *at, number));
            }
        }
    }

    /// The counts by lane, and of lanes by topic, against the records.
    fn counts(&mut self, mut jobs: BTreeMap<(u16, String), Jobs>, mut known: BTreeMap<(u16, String), Known>) {
        let mut topics: BTreeMap<(u16, String), u64> = BTreeMap::new();
        for ((shard, lane), kept) in std::mem::take(&mut self.open) {
            let topic = lane.split(' ').next().unwrap_or_default().to_owned();
            *topics.entry((shard, topic)).or_default() += 1;
            *topics.entry((shard, String::new())).or_default() += 1;
            let counted = jobs.remove(&(shard, lane.clone())).unwrap_or_default();
            let agrees = |state: State| kept.get(state.name()).copied().unwrap_or(0) == counted.of(state);
            if !State::ALL.into_iter().all(agrees) {
                self.find(format!("lane {lane} of shard {shard} keeps {kept:?} and counts {counted:?}"));
            }
        }
        for ((shard, lane), counted) in jobs {
            self.find(format!("lane {lane} of shard {shard} has no jobs and counts {counted:?}"));
        }
        for (shard, topic) in known.iter().filter(|(_, known)| known.hold != Hold::None).map(|(key, _)| key) {
            topics.entry((*shard, topic.clone())).or_default();
            topics.entry((*shard, String::new())).or_default();
        }
        for ((shard, _), sums) in known.iter().filter(|((_, topic), _)| topic.is_empty()) {
            let held = known.iter().filter(|((s, _), known)| s == shard && known.hold != Hold::None).count();
            if sums.paused != held as u64 {
                self.find(format!("shard {shard} has {held} paused topics and counts {sums:?}"));
            }
        }
        let of_shard = |shard| topics.keys().filter(|(s, topic)| *s == shard && !topic.is_empty()).count();
        for ((shard, topic), lanes) in &topics {
            let counted = known.remove(&(*shard, topic.clone())).unwrap_or_default();
            let with_jobs = if topic.is_empty() { of_shard(*shard) as u64 } else { 0 };
            if (counted.lanes, counted.topics) != (*lanes, with_jobs) {
                self.find(format!(
                    "topic {topic:?} of shard {shard} has {lanes} lanes and counts {counted:?}"
                ));
            }
        }
        for ((shard, topic), counted) in known {
            if (counted.lanes, counted.topics) != (0, 0) {
                self.find(format!("topic {topic:?} of shard {shard} has no lanes and counts {counted:?}"));
            }
        }
    }

    fn expect(&mut self, entry: &Entry) {
        if !self.entries.remove(entry) {
            self.find(format!("{entry:?} is missing"));
        }
    }

    /// Turns come last: they are of what waits. Whatever is left over points nowhere.
    fn close(mut self) -> Audit {
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Topic(shard, topic, at) => {
                    let first = self.topics.remove(&(shard, topic.clone()));
                    // One that is due already stands behind those that were due in the same pass.
                    let seen = self.times.get(&shard).copied().unwrap_or(0);
                    if first.is_none_or(|first| at > first.max(seen)) {
                        self.find(format!(
                            "topic {topic} of shard {shard} has its turn at {at}, not {first:?}"
                        ));
                    }
                }
                Entry::Lane(shard, lane, turn) => {
                    if !self.lanes.remove(&(shard, lane.clone())) {
                        self.find(format!("lane {lane} of shard {shard} has turn {turn} for nothing"));
                    }
                }
                other => self.find(format!("{other:?} points to nothing")),
            }
        }
        for (shard, topic) in std::mem::take(&mut self.topics).into_keys() {
            self.find(format!("topic {topic} of shard {shard} has no turn"));
        }
        for (shard, lane) in std::mem::take(&mut self.lanes) {
            self.find(format!("lane {lane} of shard {shard} has no turn"));
        }
        for (shard, state) in std::mem::take(&mut self.states).into_keys() {
            self.find(format!("shard {shard} keeps {state} jobs and has no ledger"));
        }
        Audit { checked: self.checked, findings: self.findings }
    }
}
