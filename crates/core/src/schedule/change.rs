//! Changes of a schedule: replacing, pausing and resuming it. Of the times that have come and have not fired yet, the
//! last ones that the new schedule has too still fire; the others count as missed.

use std::time::Duration;

use super::{MAX_MISSED, Schedule, ScheduleState};
use crate::clock::Timestamp;

impl ScheduleState {
    /// Replaces the schedule. It is then paused as `paused` says, or as before with `None`. Of the times that have come
    /// and have not fired yet, those `kept` stay due unless it is paused; the others count as missed.
    pub fn set(&mut self, schedule: Schedule, paused: Option<bool>, now: Timestamp) {
        if paused.unwrap_or(self.progress.paused) {
            self.pause(now);
            self.schedule = schedule;
            return;
        }
        let next = schedule.next_after(now);
        self.progress.next = match self.overdue(now) {
            // A time may be too late, if the clock was once ahead or the rules of its zone were others.
            Some(due) if self.schedule.has_times_of(&schedule) => Some(due),
            Some(due) => self.kept(&schedule, due, now).or(next),
            None => next,
        };
        self.progress.paused = false;
        self.schedule = schedule;
    }

    pub fn pause(&mut self, now: Timestamp) {
        if let Some(due) = self.overdue(now) {
            self.progress.missed += self.schedule.count(due, just_after(now));
        }
        (self.progress.paused, self.progress.next) = (true, None);
    }

    /// Ends a pause: the next time is the first one after `now`. Does nothing if the schedule is not paused.
    pub fn resume(&mut self, now: Timestamp) {
        if self.progress.paused {
            (self.progress.paused, self.progress.next) = (false, self.schedule.next_after(now));
        }
    }

    /// The next time, if it has come and has not fired yet.
    fn overdue(&self, now: Timestamp) -> Option<Timestamp> {
        self.progress.next.filter(|next| *next <= now)
    }

    /// Returns the first of the own times from `due` to `now` from which on `other` has the same times; `None` if the
    /// last ones differ. Counts the own times before it as missed. Compares the last [`MAX_MISSED`] times.
    fn kept(&mut self, other: &Schedule, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let own = self.schedule.last_times(due, due, now, MAX_MISSED);
        let others = other.last_times(due, due, now, MAX_MISSED);
        let same = own.iter().rev().zip(others.iter().rev()).take_while(|(own, other)| own == other);
        let first = same.last().map(|(own, _)| *own);
        if first != Some(due) {
            self.progress.missed += self.schedule.count(due, first.unwrap_or_else(|| just_after(now)));
        }
        first
    }
}

fn just_after(time: Timestamp) -> Timestamp {
    time.plus(Duration::from_millis(1))
}
