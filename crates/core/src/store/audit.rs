//! What an audit comes to, the same for every backend: whether every job is where its state
//! would be looked for, and every count is right.

use std::collections::BTreeMap;

use super::Shard;

/// The most findings that are told; the others are counted.
pub const MOST_FINDINGS: usize = 100;

/// Whether an audit may put right what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It changes nothing.
    No,
    /// It leads to jobs again that nothing led to, and puts counts right where that is exact. It
    /// never removes a job.
    Yes,
}

/// What kind of damage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// A job that is in no index where its state would be looked for: it would stay for ever.
    Unindexed,
    /// A lane or topic with jobs that nothing leads to.
    Turn,
    /// A word on when a shard is to be looked at next that is later than what it holds.
    Moment,
    /// A ledger that does not add up, or does not agree with the jobs that there are.
    Ledger,
    /// The number of jobs of a lane.
    LaneCount,
    /// What is counted of a topic, of the topics of a shard, or where lists of topics look for one.
    Topic,
    /// How much the logs of attempts take, and in which order they go.
    Attempts,
    /// What is left of a job whose record is gone.
    Run,
    /// A job whose body is missing.
    Body,
    /// A job whose lane is not known: without it nobody can tell where it goes.
    Lane,
    /// A record that cannot be read.
    Unreadable,
}

impl Damage {
    /// Its word in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unindexed => "unindexed",
            Self::Turn => "turn",
            Self::Moment => "moment",
            Self::Ledger => "ledger",
            Self::LaneCount => "lane_count",
            Self::Topic => "topic",
            Self::Attempts => "attempts",
            Self::Run => "run",
            Self::Body => "body",
            Self::Lane => "lane",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One thing that is not right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: Damage,
    /// Where.
    pub shard: Shard,
    /// Of which topic, where it is known.
    pub topic: Option<String>,
    /// Of which job, where it is known.
    pub id: Option<String>,
    /// In words.
    pub detail: String,
    /// Whether it is put right now.
    pub is_repaired: bool,
}

impl Finding {
    /// Of a shard as a whole, and not put right.
    pub(super) fn new(kind: Damage, shard: Shard, detail: impl Into<String>) -> Self {
        Self { kind, shard, topic: None, id: None, detail: detail.into(), is_repaired: false }
    }

    /// The same, put right.
    #[must_use]
    pub(super) fn repaired(self, is_repaired: bool) -> Self {
        Self { is_repaired, ..self }
    }

    /// The same, of a topic, where one is known.
    #[must_use]
    pub(super) fn of_topic(self, topic: &str) -> Self {
        Self { topic: Some(topic).filter(|topic| !topic.is_empty()).map(str::to_owned), ..self }
    }

    /// The same, of a job.
    #[must_use]
    pub(super) fn of_job(self, id: Option<String>) -> Self {
        Self { id, ..self }
    }
}

/// What an audit came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Jobs that have not ended and were looked at.
    pub checked: u64,
    /// Index entries that lead to nothing, or to a job that has moved on: they do no harm. Exact
    /// where nothing moved meanwhile.
    pub stale: u64,
    /// How many shards there are, and in how many the counts could be compared with the jobs.
    pub shards: u16,
    /// See `shards`.
    pub compared: u16,
    /// How many things are not right, by kind.
    pub found: BTreeMap<Damage, u64>,
    /// How many of them are put right now.
    pub repaired: u64,
    /// The first hundred.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Whether nothing is left to be put right.
    pub fn is_clean(&self) -> bool {
        self.total() == self.repaired
    }

    /// How many things were not right.
    pub fn total(&self) -> u64 {
        self.found.values().sum()
    }

    /// How many things were not right of each kind, in words.
    pub fn kinds(&self) -> String {
        let kinds: Vec<_> = self.found.iter().map(|(kind, n)| format!("{}: {n}", kind.name())).collect();
        kinds.join(", ")
    }

    /// The same after what was put right before.
    #[must_use]
    pub(super) fn after(self, mended: Self) -> Self {
        let (told, mut found, mut findings) = (self.findings, self.found, mended.findings);
        mended.found.into_iter().for_each(|(kind, n)| *found.entry(kind).or_default() += n);
        findings.extend(told);
        findings.truncate(MOST_FINDINGS);
        Self { found, repaired: self.repaired + mended.repaired, findings, ..self }
    }

    pub(super) fn find(&mut self, finding: Finding) {
        *self.found.entry(finding.kind).or_default() += 1;
        self.repaired += u64::from(finding.is_repaired);
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// An audit under way. Where it ends before its time, by an error or since nobody waits for it any more,
/// the log tells what it has put right by then: there is no answer that does.
#[derive(Default)]
pub(super) struct Underway(pub(super) Audit);

impl Underway {
    /// One that has just begun.
    pub(super) fn of(shards: u16) -> Self {
        Self(Audit { shards, ..Audit::default() })
    }

    /// It has come to its end.
    pub(super) fn end(mut self) -> Audit {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let Self(audit) = self;
        if audit.repaired > 0 {
            let (found, repaired, kinds) = (audit.total(), audit.repaired, audit.kinds());
            tracing::warn!(
                found,
                repaired,
                kinds,
                "a repair did not come to its end, and has put this right"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_beyond_the_most_are_counted_and_not_told() {
        let mut audit = Audit::default();
        for n in 0..150 {
            audit.find(Finding::new(Damage::Body, Shard(0), format!("{n}")).repaired(n % 2 == 0));
        }
        assert_eq!((audit.total(), audit.repaired, audit.findings.len()), (150, 75, MOST_FINDINGS));
        assert!(!audit.is_clean());
    }

    #[test]
    fn what_was_put_right_before_comes_first() {
        let (mut mended, mut left) = (Audit::default(), Audit { checked: 7, ..Audit::default() });
        mended.find(Finding::new(Damage::Turn, Shard(0), "mended").repaired(true));
        left.find(Finding::new(Damage::Turn, Shard(0), "left"));
        let audit = left.after(mended);
        assert_eq!((audit.checked, audit.total(), audit.repaired), (7, 2, 1));
        let told: Vec<_> = audit.findings.iter().map(|finding| finding.detail.as_str()).collect();
        assert_eq!(told, ["mended", "left"]);
    }

    #[test]
    fn what_is_all_repaired_is_clean() {
        let mut audit = Audit::default();
        assert!(audit.is_clean());
        audit.find(Finding::new(Damage::Turn, Shard(0), "").repaired(true));
        assert!(audit.is_clean());
    }
}
