//! The answers of a check's calls, as values.

use ringback_core::store_types::StoreError;

use super::counts::{Jobs, Lane, Rows};
use crate::record::{self, RECORD};

/// The bytes of the counts of a lane's states.
const COUNTS: usize = 16;
/// The bytes of a lane's row before its name.
pub(crate) const LANE_ROW: usize = COUNTS + 12;
/// The place in a topic's row of the flag for paused.
pub(crate) const PAUSED: usize = 8;

/// A shard's own counts, as of one moment.
pub(crate) struct Overview {
    /// accepted, delayed, ready, reserved, dead, done, cancelled, purged, missing, the last lease, how often a topic
    /// was paused or resumed, and how many jobs were replaced. No job can move and leave all of them unchanged: every
    /// way back to the same counts needs a lease or a replacement.
    pub(crate) ledger: [i64; 12],
    /// Lanes with jobs, topics that have jobs or are paused, and paused topics.
    pub(crate) sums: [i64; 3],
    /// The number of records.
    pub(crate) jobs: u64,
    pub(crate) dead_entries: u64,
    /// The entries of the two lists of topics: by name, and by hour.
    pub(crate) index_entries: u64,
    pub(crate) topic_entries: u64,
    /// Tombstones of jobs that count as waiting, which transitions that failed half-way have left.
    pub(crate) uncounted_tombstones: u64,
    pub(crate) wrong_times: Vec<String>,
}

impl Overview {
    /// Returns accepted, delayed, ready, reserved, dead, done, cancelled, purged, missing.
    pub(crate) fn jobs_by_end(&self) -> [i64; 9] {
        let [jobs @ .., _lease, _pauses, _replaced] = self.ledger;
        jobs
    }

    pub(crate) fn states(&self) -> Jobs {
        let [_, delayed, ready, reserved, dead, ..] = self.ledger;
        [delayed, ready, reserved, dead]
    }
}

pub(crate) const UNREADABLE: StoreError = StoreError::Unreadable("a check's answer");

/// A page of records: counts, waiting jobs, and problems.
pub(crate) struct Records {
    pub(crate) states: Jobs,
    pub(crate) ready: Vec<u8>,
    pub(crate) slots: Vec<u8>,
    pub(crate) lanes: Vec<(Lane, Jobs)>,
    pub(crate) problems: Vec<Problem>,
}

/// A problem with a record: what is wrong, locator, state, lane name, and the record without its payload.
pub(crate) type Problem = (String, Vec<u8>, u8, Vec<u8>, Vec<u8>);

/// Returns the id in a record; `None` if the record is too short.
pub(crate) fn id_of(record: &[u8]) -> Option<String> {
    let length = usize::from(*record.get(RECORD - 1)?);
    record.get(RECORD..RECORD + length).map(lossy)
}

/// Returns the name of a state by its code; `unknown` for another number.
pub(crate) fn state_name(code: u8) -> &'static str {
    record::state(code).map_or("unknown", <&str>::from)
}

pub(crate) struct Lanes {
    pub(crate) rows: Rows,
    /// Members that are missing in the lists of topics.
    pub(crate) unlisted: Vec<Vec<u8>>,
    /// Lanes with missing links to their jobs, with their names.
    pub(crate) unlinked: Vec<(Lane, Vec<u8>)>,
}

/// The result of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repaired {
    /// The problem was gone when it was judged again.
    MovedOn,
    Done,
    /// The problem stays: it cannot be repaired, or only a report was asked for.
    Left,
}

impl From<u8> for Repaired {
    fn from(code: u8) -> Self {
        match code {
            0 => Self::MovedOn,
            1 => Self::Done,
            _ => Self::Left,
        }
    }
}

/// Reads the counts at the begin of a lane's row. Fails if the row is too short.
pub(crate) fn counts(row: &[u8]) -> Result<Jobs, StoreError> {
    let mut jobs = [0; 4];
    let (numbers, _) = row.get(..COUNTS).ok_or(UNREADABLE)?.as_chunks();
    jobs.iter_mut().zip(numbers).for_each(|(jobs, raw)| *jobs = i32::from_be_bytes(*raw).into());
    Ok(jobs)
}

/// Returns bytes as text, with damaged parts replaced.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the topic in a lane's name or in a member of `index`.
pub(crate) fn topic_of(name: &[u8]) -> String {
    ringback_core::lane::Lane::topic_of(&lossy(name)).to_owned()
}
