//! The plan of a schedule whose time has come: which firings to make, which were missed, and when the next one is. Also
//! the time that a schedule waits for.

use std::time::Duration;

use super::{Missed, Schedule, ScheduleState};
use crate::clock::{MAX_DIFFERENCE, Timestamp};

/// A firing that is not later than this counts as on time: a carrier whose work another one takes over is away for some
/// seconds.
pub const ON_TIME: Duration = Duration::from_secs(60);
/// The most missed firings that are made up for at a time.
pub const MAX_MISSED: usize = 1000;
/// As many missed firings of a cron expression are counted at a time: a week of minutes, nearly.
const MAX_COUNTED: u64 = 10_000;
/// How far back the last firings are looked for at first, and by which factor further each time.
const FIRST_SPAN: Duration = Duration::from_secs(3600);
const SPAN_FACTOR: u32 = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The firings to make now, in order.
    pub fire: Vec<Timestamp>,
    /// How many firings were missed and are not made up for.
    pub missed: u64,
    /// Whether a firing was left out because the last job has not ended.
    pub is_overlapped: bool,
    /// Its time after these. It has come already if more are to be made up for than are made now.
    pub next: Option<Timestamp>,
}

impl ScheduleState {
    /// The plan for now, with at most `most` firings (one if that is 0). Which missed firings are made up for follows
    /// from `missed` and `catchup` of the schedule. `None` if the schedule's next time has not come, or there is none.
    pub fn plan(&self, now: Timestamp, most: usize) -> Option<Plan> {
        let Self { schedule, progress } = self;
        let due = progress.next.filter(|next| *next <= now)?;
        let (window, limit) = match schedule.missed {
            Missed::Skip => (ON_TIME, 1),
            Missed::One => (schedule.catchup.max(ON_TIME), 1),
            Missed::All => (schedule.catchup.max(ON_TIME), MAX_MISSED),
        };
        let earliest = Timestamp::from_millis(now.as_millis().saturating_sub(window.as_millis() as u64));
        let fire = schedule.last_times(due, earliest, now, limit);
        let first = fire.first().copied();
        let missed = schedule.count(due, first.unwrap_or_else(|| now.plus(Duration::from_millis(1))));
        let mut plan = Plan { fire, missed, is_overlapped: false, next: schedule.next_after(now) };
        plan.limit(most.max(1));
        Some(plan)
    }

    /// The time that the schedule waits for; `None` if it is paused or has none. If a wrong clock has put the stored
    /// time too far ahead, this is the first time after `now`, unless the schedule has just fired for that one.
    pub fn waits_for(&self, now: Timestamp) -> Option<Timestamp> {
        let Self { schedule, progress } = self;
        let (next, first) = (progress.next?, schedule.next_after(now));
        let has_fired = |time: Timestamp| {
            let last = progress.last.as_ref().map(|last| last.time);
            last == Some(time) && time.since(now) <= MAX_DIFFERENCE
        };
        Some(first.filter(|first| *first < next && !has_fired(*first)).unwrap_or(next))
    }

    /// The plan if the last job has not ended and the schedule does not fire meanwhile: no firings, and the first time
    /// after `now`. `None` if the schedule's next time has not come.
    pub fn plan_of_overlap(&self, now: Timestamp) -> Option<Plan> {
        let plan = self.plan(now, 1)?;
        let is_overlapped = !plan.fire.is_empty();
        Some(Plan { fire: Vec::new(), is_overlapped, next: self.schedule.next_after(now), ..plan })
    }
}

impl Plan {
    /// Keeps the first `most` firings. The first of the others becomes the next time.
    pub fn limit(&mut self, most: usize) {
        if let Some(first) = self.fire.get(most).copied() {
            self.fire.truncate(most);
            self.next = Some(first);
        }
    }
}

impl Schedule {
    /// The last times of the schedule up to `now`, in order: none before `earliest` or `due`, and no more than `limit`.
    pub(super) fn last_times(
        &self,
        due: Timestamp,
        earliest: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Vec<Timestamp> {
        let earliest = earliest.max(due);
        let mut span = FIRST_SPAN;
        loop {
            let from =
                Timestamp::from_millis(now.as_millis().saturating_sub(span.as_millis() as u64)).max(earliest);
            let just_before = Timestamp::from_millis(from.as_millis().saturating_sub(1));
            let first = self.next_after(just_before);
            let times: Vec<_> = std::iter::successors(first, |time| self.next_after(*time))
                .take_while(|time| *time <= now)
                .collect();
            if times.len() >= limit || from == earliest {
                let skipped = times.len().saturating_sub(limit);
                return times[skipped..].to_vec();
            }
            span *= SPAN_FACTOR;
        }
    }

    /// How many times the schedule has at or after `from` and before `end`. `from` must be one of them. Of a cron
    /// expression no more than [`MAX_COUNTED`] are counted.
    pub(super) fn count(&self, from: Timestamp, end: Timestamp) -> u64 {
        if from >= end {
            return 0;
        }
        1 + self.count_between(from.plus(Duration::from_millis(1)), end, MAX_COUNTED - 1)
    }
}
