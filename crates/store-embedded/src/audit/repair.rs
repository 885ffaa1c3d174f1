//! What a walk finds, and the repairs of it, which the writer applies.

use ringback_core::contract::{Audit, Finding, Repair};
use ringback_core::state::State;

use crate::error::Result;
use crate::tables::{LaneCounts, ShardSums};
use crate::txn::Txn;

/// The most repairs after one walk. If there are more, another walk follows.
const MAX_FIXES: usize = 10_000;

/// What a walk finds: findings to report, and findings to repair.
pub(crate) struct Findings {
    pub(crate) repair: Repair,
    pub(crate) audit: Audit,
    pub(crate) fixes: Vec<Fix>,
}

impl Findings {
    /// Adds a finding: to the repairs, if these are wanted and there is an action for it, else to the
    /// report.
    pub(crate) fn add(&mut self, finding: Finding, action: Option<Action>) {
        match action {
            Some(action) if self.repair == Repair::Yes => {
                if self.fixes.len() < MAX_FIXES {
                    self.fixes.push(Fix { finding, action });
                }
            }
            _ => self.audit.find(finding),
        }
    }
}

/// A finding, and how to repair it.
pub(crate) struct Fix {
    pub(crate) finding: Finding,
    pub(crate) action: Action,
}

/// One repair. Counts are corrected by a difference, which stays right however much moves meanwhile.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Restores the links of a job, by its number.
    RelinkJob(u64),
    /// Puts a topic into the schedule.
    RelinkTopic(Box<str>),
    /// Gives a lane its turn.
    RelinkLane(Box<str>),
    /// Corrects the ledger.
    ShiftLedger(Vec<(State, i64)>),
    /// Corrects the number of tombstones.
    ShiftTombstones(i64),
    /// Corrects the counts of a lane.
    ShiftLane(Box<str>, LaneCounts),
    /// Corrects the number of lanes of a topic.
    ShiftTopic(Box<str>, i64),
    /// Corrects the sums over the topics of the shard.
    ShiftSums(ShardSums),
    /// Lists a topic.
    RegisterTopic(Box<str>),
}

impl Action {
    /// Returns whether there was something to repair.
    pub(crate) fn apply(&self, txn: &mut Txn<'_>) -> Result<bool> {
        let shard = txn.shard();
        match self {
            Self::RelinkJob(number) => return txn.relink(*number),
            Self::RelinkTopic(topic) => return txn.relink_topic(topic),
            Self::RelinkLane(lane) => return txn.relink_lane(lane),
            Self::ShiftLedger(counts) => {
                counts.iter().for_each(|(state, by)| txn.row.ledger.shift(*state, *by));
            }
            Self::ShiftTombstones(by) => {
                txn.row.tombstones = txn.row.tombstones.saturating_add_signed(*by);
            }
            Self::ShiftLane(lane, by) => txn.tables.counts.shift_lane(shard, lane, *by)?,
            Self::ShiftTopic(topic, by) => txn.tables.counts.shift_topic(shard, topic, *by)?,
            Self::ShiftSums(by) => txn.tables.counts.shift_sums(shard, *by)?,
            Self::RegisterTopic(topic) => txn.tables.due.register(shard, topic)?,
        }
        Ok(true)
    }
}
