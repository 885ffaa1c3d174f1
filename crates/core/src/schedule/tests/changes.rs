//! Tests of changes of a schedule while times of it have come and have not fired yet.

use strum::VariantArray as _;

use super::{at, cron, every, time};
use crate::clock::Timestamp;
use crate::schedule::{MAX_CATCHUP, MAX_MISSED, Missed, Schedule, ScheduleState};

const NOW: &str = "2026-11-28T09:30:30Z";
/// The first time that has not fired, half an hour ago.
const DUE: &str = "2026-11-28T09:00:00Z";

fn overdue() -> ScheduleState {
    at(cron("*/10 * * * *", "UTC"), DUE)
}

fn set(mut state: ScheduleState, schedule: Schedule, paused: Option<bool>) -> (Option<Timestamp>, u64) {
    state.set(schedule, paused, time(NOW));
    (state.progress.next, state.progress.missed)
}

#[test]
fn a_time_that_has_come_stays_if_the_schedule_set_has_it_however_it_is_written() {
    let until = |schedule: Schedule, until| Schedule { until: Some(time(until)), ..schedule };
    let from = |schedule: Schedule, from| Schedule { from: Some(time(from)), ..schedule };
    let same = cron("*/10 * * * *", "UTC");
    for (what, schedule, next, missed) in [
        ("the same", same.clone(), DUE, 0),
        ("a list", cron("0,10,20,30,40,50 * * * *", "UTC"), DUE, 0),
        ("other spaces", cron("*/10  * *\t* *", "UTC"), DUE, 0),
        ("each day of the week by name", cron("*/10 * * JAN-DEC SUN-SAT", "UTC"), DUE, 0),
        ("another name of its zone", cron("*/10 * * * *", "Etc/UTC"), DUE, 0),
        ("a zone with the same minutes", cron("*/10 * * * *", "Europe/Berlin"), DUE, 0),
        ("a period", every(600, "2026-01-01T00:00:00Z"), DUE, 0),
        ("an end", until(same.clone(), "2030-01-01T00:00:00Z"), DUE, 0),
        ("a beginning before", from(same.clone(), "2026-01-01T00:00:00Z"), DUE, 0),
        ("the weekdays of these times", cron("*/10 * * * SAT", "UTC"), DUE, 0),
        // The first two are not times of these.
        ("a beginning between", from(same.clone(), "2026-11-28T09:15:00Z"), "2026-11-28T09:20:00Z", 2),
        ("twice an hour", cron("*/30 * * * *", "UTC"), "2026-11-28T09:30:00Z", 3),
        // Nothing before these fires: they were not the times then.
        ("each minute", cron("* * * * *", "UTC"), "2026-11-28T09:30:00Z", 3),
        ("another minute", cron("5 * * * *", "UTC"), "2026-11-28T10:05:00Z", 4),
        ("another day", cron("*/10 * * * SUN", "UTC"), "2026-11-29T00:00:00Z", 4),
        ("a beginning after", from(same.clone(), "2026-12-01T00:00:00Z"), "2026-12-01T00:00:00Z", 4),
    ] {
        assert_eq!(set(overdue(), schedule, None), (Some(time(next)), missed), "{what}");
    }
    assert_eq!(set(overdue(), same, Some(true)), (None, 4), "a pause");
}

#[test]
fn a_period_that_is_written_otherwise_keeps_what_has_come() {
    let state = at(every(60, "2026-01-01T00:00:00Z"), DUE);
    for (schedule, next, missed) in [
        (every(60, "2026-11-28T09:17:00Z"), DUE, 0),
        (every(60, "2026-11-28T09:17:01Z"), "2026-11-28T09:31:01Z", 31),
        (every(120, "2026-01-01T00:00:00Z"), "2026-11-28T09:30:00Z", 30),
    ] {
        assert_eq!(set(state.clone(), schedule, None), (Some(time(next)), missed));
    }
}

#[test]
fn times_are_missed_at_a_pause_and_not_during_it() {
    let mut state = overdue();
    state.pause(time(NOW));
    assert_eq!((state.progress.next, state.progress.missed), (None, 4));
    state.pause(time("2026-11-28T10:30:00Z"));
    state.resume(time("2026-11-28T11:35:00Z"));
    assert_eq!((state.progress.next, state.progress.missed), (Some(time("2026-11-28T11:40:00Z")), 4));
    let running = state.clone();
    state.resume(time("2026-11-28T11:45:00Z"));
    assert_eq!(state, running);
    state.set(running.schedule.clone(), Some(true), time("2026-11-28T11:39:00Z"));
    state.set(running.schedule, Some(false), time("2026-11-28T12:39:00Z"));
    assert_eq!((state.progress.next, state.progress.missed), (Some(time("2026-11-28T12:40:00Z")), 4));
}

#[test]
fn each_time_of_an_outage_has_fired_or_is_missed() {
    let now = time("2026-11-28T09:00:00.500Z");
    for (rule, times) in
        [(cron("* * * * *", "Europe/Berlin"), 7201), (every(60, "2026-01-01T00:00:00Z"), 7201)]
    {
        for &missed in Missed::VARIANTS {
            let mut state = at(rule.clone(), "2026-11-23T09:00:00Z");
            (state.schedule.missed, state.schedule.catchup) = (missed, MAX_CATCHUP);
            let mut counts = (0, 0);
            while let Some(plan) = state.plan(now, 64) {
                counts = (counts.0 + plan.fire.len() as u64, counts.1 + plan.missed);
                state.progress.next = plan.next;
            }
            assert_eq!(counts.0 + counts.1, times, "{missed:?} {counts:?}");
            assert_eq!(counts.0, if missed == Missed::All { MAX_MISSED as u64 } else { 1 });
        }
    }
    let mut state = at(every(1, "2026-01-01T00:00:00Z"), "2026-10-28T09:00:00Z");
    state.set(every(7, "2026-01-01T00:00:00.5Z"), None, now);
    assert_eq!(state.progress.missed, 31 * 86_400 + 1);
}
