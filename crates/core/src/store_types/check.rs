//! The result of a consistency check: which jobs, indexes and counts disagree, and what was repaired.

use std::collections::BTreeMap;

use super::loss::Loss;
use super::shard::Shard;

/// The most findings in a result. The others are only counted.
pub const MAX_FINDINGS: usize = 100;

/// Whether a check repairs what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It changes nothing.
    No,
    /// It restores missing index entries, and corrects counts that it knows exactly. It never removes a
    /// job.
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum DamageKind {
    /// A job that is missing from the index of its state. It would stay for ever.
    Unindexed,
    /// A job that filters by its tag do not find.
    Tag,
    /// A lane or topic with jobs that is missing from the schedule.
    #[strum(serialize = "turn")]
    Schedule,
    /// The time of a shard's next wake-up is later than its first job is due.
    #[strum(serialize = "moment")]
    WakeAt,
    /// A schedule that does not fire, because the times of schedules do not have it, or that no list shows.
    #[strum(serialize = "schedule")]
    Recurring,
    /// The counts of jobs by state do not add up, or differ from the jobs.
    Ledger,
    /// The job count of a lane is wrong.
    LaneCount,
    /// The counts of a topic, or its place in the lists of topics, are wrong.
    Topic,
    /// The size of the attempt logs, or the order in which they are evicted, is wrong.
    Attempts,
    /// The state of a job whose record is gone.
    #[strum(serialize = "run")]
    StateRecord,
    /// The body of a job is missing.
    Body,
    /// The name of a job's lane is missing, and with it the job's destination.
    Lane,
    /// A record cannot be read.
    Unreadable,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: DamageKind,
    pub shard: Shard,
    /// The topic, if it is known.
    pub topic: Option<String>,
    /// The job's id, if it is known.
    pub id: Option<String>,
    pub detail: String,
    /// Whether it is repaired now.
    pub is_repaired: bool,
}

impl Finding {
    /// A finding about a shard, without topic and job, that is not repaired.
    pub fn new(kind: DamageKind, shard: Shard, detail: impl Into<String>) -> Self {
        Self { kind, shard, topic: None, id: None, detail: detail.into(), is_repaired: false }
    }

    #[must_use]
    pub fn repaired(self, is_repaired: bool) -> Self {
        Self { is_repaired, ..self }
    }

    /// This finding with a topic; an empty name means none.
    #[must_use]
    pub fn of_topic(self, topic: &str) -> Self {
        Self { topic: Some(topic).filter(|topic| !topic.is_empty()).map(str::to_owned), ..self }
    }

    #[must_use]
    pub fn of_job(self, id: Option<String>) -> Self {
        Self { id, ..self }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Jobs that were checked: all that have not ended.
    pub checked: u64,
    /// Index entries without a job, or of a job that has changed its state since. They do no harm. The
    /// number is exact if nothing moved meanwhile.
    pub stale: u64,
    pub shards: u16,
    /// The number of shards in which no job moved meanwhile, so that the counts could be compared.
    pub compared: u16,
    /// Waiting jobs that could not be judged, because their lists moved each time they were read.
    pub unverified: u64,
    /// The number of findings by kind.
    pub found: BTreeMap<DamageKind, u64>,
    /// How many of them are repaired now.
    pub repaired: u64,
    /// The first [`MAX_FINDINGS`] of them.
    pub findings: Vec<Finding>,
    /// Accepted jobs that repairs, this one included, have found to have no record and no end.
    pub missing: u64,
    /// A loss that was not accepted yet.
    pub loss: Option<Loss>,
}

impl Check {
    /// Whether no damage is left unrepaired, every job was judged, and no loss waits to be accepted.
    pub fn is_clean(&self) -> bool {
        self.total() == self.repaired && self.unverified == 0 && self.loss.is_none()
    }

    /// The number of findings.
    pub fn total(&self) -> u64 {
        self.found.values().sum()
    }

    /// The number of findings of each kind, as `kind: number` joined by commas.
    pub fn kinds(&self) -> String {
        let kinds: Vec<_> = self.found.iter().map(|(kind, n)| format!("{kind}: {n}")).collect();
        kinds.join(", ")
    }

    /// This result with the findings of a repair that ran before it: their numbers are added, their list comes first.
    #[must_use]
    pub fn after(self, repaired: Self) -> Self {
        let (later, mut found, mut findings) = (self.findings, self.found, repaired.findings);
        repaired.found.into_iter().for_each(|(kind, n)| *found.entry(kind).or_default() += n);
        findings.extend(later);
        findings.truncate(MAX_FINDINGS);
        Self { found, repaired: self.repaired + repaired.repaired, findings, ..self }
    }

    pub fn find(&mut self, finding: Finding) {
        *self.found.entry(finding.kind).or_default() += 1;
        self.repaired += u64::from(finding.is_repaired);
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// Jobs that are in no count of a ledger, or in more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// How many were accepted and are in no state, not purged and not missing; below zero, how many are counted
    /// beyond those that were accepted.
    pub jobs: i64,
    /// How many count as missing.
    pub missing: i64,
    /// Tombstones of jobs that do not count as ended.
    pub tombstones: u64,
}

impl Uncounted {
    /// Describes what is wrong and what a repair does about it; `None` if each accepted job is counted once.
    pub fn finding(self) -> Option<String> {
        let jobs = self.jobs.unsigned_abs();
        let (what, first, first_as, rest_as) = match self.jobs {
            0 => return None,
            1.. => {
                let ended = jobs.min(self.tombstones);
                ("were accepted than are there or have ended", ended, "ended, by their tombstones", "missing")
            }
            ..0 => {
                let back = jobs.min(self.missing.max(0).unsigned_abs());
                ("are there or have ended than were accepted", back, "missing no longer", "accepted")
            }
        };
        let counts = match (first, jobs - first) {
            (0, _) => format!("them as {rest_as}"),
            (_, 0) => format!("them as {first_as}"),
            (first, rest) => format!("{first} of them as {first_as}, and {rest} as {rest_as}"),
        };
        Some(format!("{jobs} more jobs {what}; a repair counts {counts}"))
    }
}

/// A check that is running. Dropping it early, after an error or because the caller has left, logs the repairs made so
/// far, as no result reports them.
#[derive(Default)]
pub struct RunningCheck(pub Check);

impl RunningCheck {
    /// A check of this many shards that has just begun.
    pub fn of(shards: u16) -> Self {
        Self(Check { shards, ..Check::default() })
    }

    pub fn end(mut self) -> Check {
        std::mem::take(&mut self.0)
    }
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        let Self(check) = self;
        if check.repaired > 0 {
            let (found, repaired, kinds) = (check.total(), check.repaired, check.kinds());
            tracing::warn!(found, repaired, kinds, "a repair was interrupted; these findings are repaired");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_beyond_the_limit_are_only_counted() {
        let mut check = Check::default();
        for n in 0..150 {
            check.find(Finding::new(DamageKind::Body, Shard(0), format!("{n}")).repaired(n % 2 == 0));
        }
        assert_eq!((check.total(), check.repaired, check.findings.len()), (150, 75, MAX_FINDINGS));
        assert!(!check.is_clean());
    }

    #[test]
    fn earlier_repairs_come_first() {
        let (mut repaired, mut left) = (Check::default(), Check { checked: 7, ..Check::default() });
        repaired.find(Finding::new(DamageKind::Schedule, Shard(0), "repaired").repaired(true));
        left.find(Finding::new(DamageKind::Schedule, Shard(0), "left"));
        let check = left.after(repaired);
        assert_eq!((check.checked, check.total(), check.repaired), (7, 2, 1));
        let details: Vec<_> = check.findings.iter().map(|finding| finding.detail.as_str()).collect();
        assert_eq!(details, ["repaired", "left"]);
    }

    #[test]
    fn a_finding_about_uncounted_jobs_says_what_they_count_as_after_a_repair() {
        let finding = |jobs, missing, tombstones| {
            let finding = Uncounted { jobs, missing, tombstones }.finding().unwrap_or_default();
            finding.split_once("; a repair counts ").map(|(_, counts)| counts.to_owned()).unwrap_or_default()
        };
        assert_eq!(finding(0, 7, 1), "");
        assert_eq!(finding(2, 7, 0), "them as missing");
        assert_eq!(finding(2, 7, 2), "them as ended, by their tombstones");
        assert_eq!(finding(3, 7, 2), "2 of them as ended, by their tombstones, and 1 as missing");
        assert_eq!(finding(-2, 0, 1), "them as accepted");
        assert_eq!(finding(-2, 7, 1), "them as missing no longer");
        assert_eq!(finding(-3, 1, 1), "1 of them as missing no longer, and 2 as accepted");
    }

    #[test]
    fn a_fully_repaired_audit_is_clean() {
        let mut check = Check::default();
        assert!(check.is_clean());
        check.find(Finding::new(DamageKind::Schedule, Shard(0), "").repaired(true));
        assert!(check.is_clean());
    }
}
