//! The audit's part on what is counted by lane and by topic. The counts of a lane are compared with
//! its jobs; those of a topic and of the shard with the rows below them, which every edge changes
//! together. So each is off by as much as long as nobody puts it right, however much moves; and the
//! sums are put right first, so that what is below them keeps them right.

use std::collections::{BTreeMap, BTreeSet};

use ringback_core::contract::{DamageKind, Finding, Shard, StoreError};

use super::super::tables::{Hold, Jobs, Known, Sums, topic_in};
use super::{Action, Books};

impl Books {
    /// The counts of each lane, against its jobs.
    pub(crate) fn lanes(&mut self, told: &BTreeMap<(u16, String), Jobs>) {
        let kept = std::mem::take(&mut self.open);
        let lanes: BTreeSet<_> = kept.keys().chain(told.keys()).collect();
        for key in lanes {
            let of = |rows: &BTreeMap<_, Jobs>| rows.get(key).copied().unwrap_or_default();
            let (shard, lane) = key;
            let by = of(&kept).minus(of(told));
            if by == Jobs::default() {
                continue;
            }
            let detail = format!("lane {lane:?} is said to have {} jobs, and has {}", of(told), of(&kept));
            let finding = Finding::new(DamageKind::LaneCount, Shard(*shard), detail).of_topic(topic_in(lane));
            self.find(finding, Some(Action::Jobs(lane.as_str().into(), by)));
        }
        // A row that counts nothing does no harm: it is written anew or removed with the next job.
        self.audit.stale += told.values().filter(|jobs| jobs.is_none()).count() as u64;
    }

    /// The sums of each shard, and how many lanes each topic has, against what lanes are told of.
    pub(crate) fn topics(&mut self, told: &BTreeMap<(u16, String), Jobs>) -> Result<(), StoreError> {
        let known = std::mem::take(&mut self.known);
        let mut lanes: BTreeMap<(u16, String), u64> = BTreeMap::new();
        for ((shard, lane), _) in told.iter().filter(|(_, jobs)| !jobs.is_none()) {
            *lanes.entry((*shard, topic_in(lane).to_owned())).or_default() += 1;
        }
        let mut sums: BTreeMap<u16, Sums> = BTreeMap::new();
        let is_topic = |(_, topic): &&(u16, String)| !topic.is_empty();
        let topics: BTreeSet<_> = lanes.keys().chain(known.keys()).filter(is_topic).collect();
        let told = |key: &(u16, String)| known.get(key).copied().unwrap_or_default();
        for key in &topics {
            sums.entry(key.0).or_default().add(told(key));
        }
        for (shard, _) in known.keys().filter(|(_, topic)| topic.is_empty()) {
            sums.entry(*shard).or_default();
        }
        for (shard, counted) in sums {
            let told = Sums::told(known.get(&(shard, String::new())).copied().unwrap_or_default());
            let by = counted.minus(told);
            if by != Sums::default() {
                let detail = format!("the shard is said to have {told}, and has {counted}");
                self.find(Finding::new(DamageKind::Topic, Shard(shard), detail), Some(Action::Sums(by)));
            }
        }
        for key in topics {
            self.topic(key, told(key), lanes.get(key).copied().unwrap_or(0))?;
        }
        Ok(())
    }

    fn topic(&mut self, key: &(u16, String), told: Known, lanes: u64) -> Result<(), StoreError> {
        let (shard, topic) = key;
        let finding = |detail| Finding::new(DamageKind::Topic, Shard(*shard), detail).of_topic(topic);
        if told.lanes != lanes {
            let finding = finding(format!(
                "topic {topic:?} is said to have {} lanes with jobs, and has {lanes}",
                told.lanes
            ));
            let by = lanes.cast_signed().wrapping_sub(told.lanes.cast_signed());
            self.find(finding, Some(Action::Lanes(topic.as_str().into(), by)));
        }
        // One with delayed jobs was looked for with its turn.
        let is_used = lanes > 0 || told.hold != Hold::None;
        if is_used
            && self.look.topic_turn(*shard, topic)?.is_none()
            && self.look.first_due(*shard, topic)?.is_none()
        {
            let finding = finding(format!("lists of topics do not show {topic:?}"));
            self.find(finding, Some(Action::Known(topic.as_str().into())));
        }
        Ok(())
    }
}
