//! Jobs that wait in lists: ready queues, and slots of due times that are far off. A list
//! cannot be searched, so it is read, and the jobs that are met are struck out.
//!
//! That it is exact while jobs move rests on this. A job was waiting when its record was read, and
//! in nothing that can be looked up: so it was in its list. It leaves that only by another attempt,
//! for another due time, or to be looked up. Its list is read afterwards, from the end to the
//! beginning: entries come at both ends and go at the beginning, so none that stays is missed.
//! Of a job that was not met and still has the same attempts and due time, and is in nothing that
//! can be looked up, the entry was not there.

use std::collections::BTreeSet;

use ringback_core::contract::StoreError;

use super::Walk;

/// Bytes that the scripts tell of each: locator, due time, lane, attempts.
const KNOWN: usize = 30;
/// The time of a slot, in ms.
const SLOT: u64 = 600_000;
/// So many are asked about in one call.
const AT_ONCE: usize = 100;

/// Which kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Slot,
    Ready,
}

impl List {
    /// The state of the jobs in it, as the scripts number them.
    pub(crate) const fn state(self) -> u8 {
        match self {
            Self::Slot => 1,
            Self::Ready => 2,
        }
    }

    /// The bytes of an entry: locator, due time, and in a slot the lane.
    const fn entry(self) -> usize {
        match self {
            Self::Slot => 26,
            Self::Ready => 18,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Ready => "ready",
        }
    }
}

struct Job {
    known: [u8; KNOWN],
    list: List,
    is_met: bool,
}

/// Jobs to look for.
#[derive(Default)]
pub(crate) struct Waiting(Vec<Job>);

/// What is still known of a job that was not met.
pub(crate) enum Word {
    MovedOn,
    Again(List),
    Lost { state: u8, words: String, record: Vec<u8> },
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The jobs, some at a time: what is known of each, and the state that it was to be found in.
    pub(crate) fn some(&self) -> impl Iterator<Item = Vec<(Vec<u8>, u8)>> {
        let told = |job: &Job| (job.known.to_vec(), job.list.state());
        self.0.chunks(AT_ONCE).map(move |jobs| jobs.iter().map(told).collect())
    }

    /// Takes in a job that another list has now.
    pub(crate) fn again(&mut self, known: &[u8], list: List) {
        if let Ok(known) = known.try_into() {
            self.0.push(Job { known, list, is_met: false });
        }
    }

    /// Takes in what a page of records has told.
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

    /// Strikes out a job that was met; the lane of a ready queue is known by its name.
    fn strike(&mut self, list: List, lane: &[u8], entry: &[u8]) {
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

    /// What the lists are named by: lanes, or the numbers of slots in digits.
    fn names(&self, list: List) -> BTreeSet<Vec<u8>> {
        let of_kind = self.0.iter().filter(|job| job.list == list);
        of_kind
            .map(|job| match list {
                List::Ready => job.known[18..26].to_vec(),
                List::Slot => {
                    let due = job.known[12..18].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
                    (due / SLOT).to_string().into_bytes()
                }
            })
            .collect()
    }
}

/// Reads the lists that jobs have to be in, and leaves those that were not met.
pub(crate) async fn unmet(walk: &Walk<'_>, mut waiting: Waiting) -> Result<Waiting, StoreError> {
    // A scan can meet a job twice.
    waiting.0.sort_unstable_by_key(|job| job.known);
    waiting.0.dedup_by(|a, b| a.known[..12] == b.known[..12]);
    for list in [List::Slot, List::Ready] {
        read(walk, &mut waiting, list).await?;
    }
    waiting.0.retain(|job| !job.is_met);
    Ok(waiting)
}

/// Reads all lists of a kind that a job has to be in.
async fn read(walk: &Walk<'_>, waiting: &mut Waiting, list: List) -> Result<(), StoreError> {
    let names: Vec<_> = waiting.names(list).into_iter().collect();
    let (mut from, mut skip) = (0, 0);
    while from < names.len() {
        let read = walk.read_lists(list, skip, &names[from..]).await?;
        for (name, entries) in names[from..].iter().zip(&read.entries) {
            for entry in entries.chunks_exact(list.entry()) {
                let lane = if list == List::Ready { name } else { &entry[18..26] };
                waiting.strike(list, lane, entry);
            }
        }
        (from, skip) = (from + read.lists, read.skip);
    }
    Ok(())
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
    fn a_job_is_struck_out_by_its_own_entry_alone() {
        let mut waiting = Waiting::default();
        waiting.add(&[known(1), known(2)].concat(), &[]).unwrap();
        let (lane, entry) = (&known(2)[18..26], &known(2)[..18]);
        let mut other_due = entry.to_vec();
        other_due[17] = 9;
        waiting.strike(List::Ready, lane, &other_due);
        waiting.strike(List::Ready, &known(1)[18..26], entry);
        waiting.strike(List::Slot, lane, entry);
        assert!(waiting.0.iter().all(|job| !job.is_met));
        waiting.strike(List::Ready, lane, entry);
        assert!(!waiting.0[0].is_met && waiting.0[1].is_met);
    }

    #[test]
    fn what_is_no_list_of_jobs_is_unreadable() {
        assert!(Waiting::default().add(&[0; KNOWN + 1], &[]).is_err());
    }

    #[test]
    fn a_job_takes_no_more_memory_than_is_told() {
        assert_eq!(size_of::<Job>(), 32);
    }
}
