//! Jobs that wait in lists: ready queues, and slots of later due times. A list cannot be searched, so the check
//! reads it and marks the jobs that it finds. This file keeps the jobs and the marks; it makes no calls.
//!
//! This is exact although jobs move. When its record was read, the job was waiting and in no index that can be
//! looked up, so its list had to hold it. A job leaves its list only for another attempt, another due time, or an
//! index. The list is read later, from its end to its beginning. Entries are added at both ends and removed at the
//! beginning, so the reading finds every entry that stays. So the entry was missing if the reading did not find it, and
//! the job still has the same attempts and due time, and is in no index. A cleaning of a list can move an entry past the
//! position that is being read. The shard counts cleanings, and the list is read again if there was one.

use std::collections::BTreeSet;

use ringback_core::store_types::StoreError;

use crate::record::number;

/// The bytes that scripts return for each job: locator, due time, lane, attempts.
const KNOWN: usize = 30;
/// The time of a slot, in ms.
const SLOT: u64 = 600_000;
/// How many jobs one call confirms.
const AT_ONCE: usize = 100;

/// The kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum List {
    Slot = 1,
    Ready = 2,
}

impl List {
    /// Returns the code of the state of the jobs in a list of this kind.
    pub(crate) const fn state(self) -> u8 {
        self as u8
    }

    /// Returns the length of an entry in bytes: locator, due time, and in a slot the lane.
    const fn entry(self) -> usize {
        match self {
            Self::Slot => 26,
            Self::Ready => 18,
        }
    }
}

struct Job {
    known: [u8; KNOWN],
    list: List,
    is_met: bool,
}

/// Jobs to search for in lists.
#[derive(Default)]
pub(crate) struct Waiting(Vec<Job>);

/// The verdict on a job that was not found.
pub(crate) enum SearchResult {
    MovedOn,
    Again(List),
    Lost { state: u8, lane: Vec<u8>, record: Vec<u8> },
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the jobs in parts of at most [`AT_ONCE`]: the [`KNOWN`] bytes of each, and the state whose list must hold
    /// it.
    pub(crate) fn some(&self) -> impl Iterator<Item = Vec<(Vec<u8>, u8)>> {
        let known = |job: &Job| (job.known.to_vec(), job.list.state());
        self.0.chunks(AT_ONCE).map(move |jobs| jobs.iter().map(known).collect())
    }

    /// Adds a job that must be in the list `list` now. Ignores `known` of a wrong length.
    pub(crate) fn again(&mut self, known: &[u8], list: List) {
        if let Ok(known) = known.try_into() {
            self.0.push(Job { known, list, is_met: false });
        }
    }

    /// Adds the waiting jobs of a page of records. Fails if their bytes cannot be read.
    pub(crate) fn add(&mut self, ready: &[u8], slots: &[u8]) -> Result<(), StoreError> {
        for (bytes, list) in [(ready, List::Ready), (slots, List::Slot)] {
            let (jobs, rest) = bytes.as_chunks::<KNOWN>();
            if !rest.is_empty() {
                return Err(StoreError::Unreadable("jobs that wait"));
            }
            self.0.extend(jobs.iter().map(|known| Job { known: *known, list, is_met: false }));
        }
        Ok(())
    }

    /// Marks a job as found, if the entry has its list, lane and due time. The jobs must be sorted.
    fn mark(&mut self, list: List, lane: &[u8], entry: &[u8]) {
        let found = self.0.binary_search_by(|job| job.known[..12].cmp(&entry[..12]));
        if let Ok(index) = found
            && let Some(job) = self.0.get_mut(index)
            && job.list == list
            && job.known[12..18] == entry[12..18]
            && job.known[18..26] == *lane
        {
            job.is_met = true;
        }
    }

    /// Sorts the jobs, for `mark`, and removes duplicates, since a scan can return a job twice.
    pub(crate) fn sort(&mut self) {
        self.0.sort_unstable_by_key(|job| job.known);
        self.0.dedup_by(|a, b| a.known[..12] == b.known[..12]);
    }

    /// Marks the jobs of a list's entries as found. The name of a ready queue is its lane.
    pub(crate) fn mark_all(&mut self, list: List, name: &[u8], entries: &[u8]) {
        for entry in entries.chunks_exact(list.entry()) {
            let lane = if list == List::Ready { name } else { &entry[18..26] };
            self.mark(list, lane, entry);
        }
    }

    /// Removes the jobs that were found.
    pub(crate) fn retain_unmet(&mut self) {
        self.0.retain(|job| !job.is_met);
    }

    /// Returns the names of the lists of a kind that must hold jobs: lanes, or the numbers of slots in digits.
    pub(crate) fn names(&self, list: List) -> BTreeSet<Vec<u8>> {
        let of_kind = self.0.iter().filter(|job| job.list == list);
        of_kind
            .map(|job| match list {
                List::Ready => job.known[18..26].to_vec(),
                List::Slot => (number(&job.known[12..18]) / SLOT).to_string().into_bytes(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(n: u8) -> [u8; KNOWN] {
        let mut known = [0; KNOWN];
        (known[0], known[17], known[18]) = (n, n, n);
        known
    }

    #[test]
    fn a_job_is_met_by_its_own_entry_alone() {
        let mut waiting = Waiting::default();
        waiting.add(&[known(1), known(2)].concat(), &[]).unwrap();
        let (lane, entry) = (&known(2)[18..26], &known(2)[..18]);
        let mut other_due = entry.to_vec();
        other_due[17] = 9;
        waiting.mark(List::Ready, lane, &other_due);
        waiting.mark(List::Ready, &known(1)[18..26], entry);
        waiting.mark(List::Slot, lane, entry);
        assert!(waiting.0.iter().all(|job| !job.is_met));
        waiting.mark(List::Ready, lane, entry);
        assert!(!waiting.0[0].is_met && waiting.0[1].is_met);
    }

    #[test]
    fn bytes_that_are_no_list_of_jobs_are_unreadable() {
        assert!(Waiting::default().add(&[0; KNOWN + 1], &[]).is_err());
    }

    #[test]
    fn a_job_takes_as_much_memory_as_documented() {
        assert_eq!(size_of::<Job>(), 32);
    }
}
