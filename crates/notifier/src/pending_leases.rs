//! `PendingLeases`: leased jobs whose callbacks have not begun, because as many of their lane are in flight as may be. They
//! begin in the order of their leases. One that waits too long is given back to the store. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use ringback_core::job::Locator;
use ringback_core::store_types::Lease;
use tokio::time::Instant;

/// A lease that waits longer is given back.
const LONGEST: Duration = Duration::from_millis(200);

/// Leased jobs by lane, with the time since which they wait.
pub(crate) struct PendingLeases<L = Lease> {
    lanes: HashMap<String, VecDeque<(Instant, L)>>,
    longest: Duration,
}

impl<L> PendingLeases<L> {
    /// `margin` is how much longer a lease is than its attempt: waiting takes a tenth of it at most.
    pub(crate) fn new(margin: Duration) -> Self {
        Self { lanes: HashMap::new(), longest: LONGEST.min(margin / 10) }
    }

    /// Returns how many leases of a lane wait.
    pub(crate) fn of(&self, lane: &str) -> usize {
        if self.lanes.is_empty() { 0 } else { self.lanes.get(lane).map_or(0, VecDeque::len) }
    }

    pub(crate) fn add(&mut self, lane: String, lease: L, now: Instant) {
        self.lanes.entry(lane).or_default().push_back((now, lease));
    }

    /// Takes the lease of a lane that has waited longest.
    pub(crate) fn next(&mut self, lane: &str) -> Option<L> {
        let waiting = self.lanes.get_mut(lane)?;
        let (_, lease) = waiting.pop_front()?;
        if waiting.is_empty() {
            self.lanes.remove(lane);
        }
        Some(lease)
    }

    /// Returns when the next lease has waited too long; `None` if none waits.
    pub(crate) fn late_at(&self) -> Option<Instant> {
        self.lanes.values().filter_map(VecDeque::front).map(|(since, _)| *since + self.longest).min()
    }

    /// Takes the leases that have waited too long.
    pub(crate) fn take_late(&mut self, now: Instant) -> Vec<(String, L)> {
        let longest = self.longest;
        self.take(|since, _| now >= since + longest)
    }

    pub(crate) fn take_all(&mut self) -> Vec<(String, L)> {
        self.take(|_, _| true)
    }

    fn take(&mut self, is_taken: impl Fn(Instant, &L) -> bool) -> Vec<(String, L)> {
        let mut taken = Vec::new();
        self.lanes.retain(|lane, waiting| {
            for (since, lease) in std::mem::take(waiting) {
                if is_taken(since, &lease) {
                    taken.push((lane.clone(), lease));
                } else {
                    waiting.push_back((since, lease));
                }
            }
            !waiting.is_empty()
        });
        taken
    }
}

impl PendingLeases {
    /// Takes the leases of these jobs.
    pub(crate) fn take_jobs(&mut self, jobs: &[Locator]) -> Vec<(String, Lease)> {
        if jobs.is_empty() { Vec::new() } else { self.take(|_, lease| jobs.contains(&lease.locator())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pending(margin: Duration) -> (PendingLeases<u32>, Instant) {
        let (mut pending, now) = (PendingLeases::new(margin), Instant::now());
        for (n, lane) in [(1, "a"), (2, "b"), (3, "a")] {
            pending.add(lane.to_owned(), n, now + LONGEST / 4 * n);
        }
        (pending, now)
    }

    #[test]
    fn leases_of_a_lane_begin_in_their_order() {
        let (mut pending, _) = pending(10 * SECOND);
        assert_eq!((pending.of("a"), pending.of("b"), pending.of("c")), (2, 1, 0));
        assert_eq!([pending.next("a"), pending.next("a"), pending.next("a")], [Some(1), Some(3), None]);
        assert_eq!((pending.of("a"), pending.of("b")), (0, 1));
    }

    #[test]
    fn what_waits_too_long_is_taken_and_the_rest_stays() {
        let (mut pending, now) = pending(10 * SECOND);
        assert_eq!(pending.late_at(), Some(now + LONGEST / 4 * 5));
        let mut late = pending.take_late(now + LONGEST / 4 * 6);
        late.sort_unstable();
        assert_eq!(late, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert_eq!(pending.take_all(), [("a".to_owned(), 3)]);
        assert_eq!(pending.late_at(), None);
    }

    #[test]
    fn waiting_takes_little_of_the_margin_of_a_lease() {
        let (pending, now) = pending(SECOND / 5);
        assert_eq!(pending.late_at(), Some(now + LONGEST / 4 + SECOND / 50));
    }
}
