//! Tests of the times of schedules: against a table that another program has computed, and against what is to become of
//! missed firings.

use super::*;
use crate::job::{Body, Tags};
use crate::written_time::{Zone, parse_time};

mod changes;
mod cron_texts;

/// Computed by `tests/times.py`.
const TIMES: &str = include_str!("tests/times.txt");

fn time(text: &str) -> Timestamp {
    parse_time(text).unwrap()
}

fn schedule(rule: Rule) -> Schedule {
    let body = Body { bytes: "1".into(), content_type: None };
    let delivery = Delivery::new(Callback::parse("https://m.example/notify").unwrap(), body);
    let job = ScheduledJob { topic: "t".parse().unwrap(), delivery, to_url_of_topic: false };
    let (missed, overlap, jitter) = (Missed::One, Overlap::Allow, Duration::ZERO);
    Schedule { rule, job, missed, catchup: DEFAULT_CATCHUP, overlap, jitter, from: None, until: None }
}

fn cron(expression: &str, zone: &str) -> Schedule {
    schedule(Rule::Cron(Cron::parse(expression, Zone::named(zone).unwrap()).unwrap().into()))
}

fn every(seconds: u64, anchor: &str) -> Schedule {
    schedule(Rule::Every { period: Duration::from_secs(seconds), anchor: time(anchor) })
}

fn at(schedule: Schedule, next: &str) -> ScheduleState {
    ScheduleState { schedule, progress: Progress { next: Some(time(next)), ..Progress::default() } }
}

fn of_table(text: &str) -> Timestamp {
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap();
    time(&format!("{}-{}-{}T{}:{}:00Z", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13)))
}

#[test]
fn the_times_of_a_year_are_those_of_the_table() {
    let (mut cases, mut times) = (0, 0);
    for case in TIMES.split('\n').collect::<Vec<_>>().chunk_by(|_, line| line.starts_with(' ')) {
        let mut head = case[0].splitn(3, ' ');
        let (Some(zone), Some(year), Some(expression)) = (head.next(), head.next(), head.next()) else {
            continue;
        };
        let year: u16 = year.parse().unwrap();
        let expected: Vec<_> =
            case[1..].iter().flat_map(|line| line.split_whitespace()).map(of_table).collect();
        let (start, end) =
            (time(&format!("{year}-01-01T00:00:00Z")), time(&format!("{}-01-01T00:00:00Z", year + 1)));
        let just_before = Timestamp::from_millis(start.as_millis() - 1);
        let schedule = cron(expression, zone);
        let first = schedule.next_after(just_before);
        let all = std::iter::successors(first, |time| schedule.next_after(*time));
        let found: Vec<_> = all.take_while(|time| *time < end).collect();
        let differs = found.iter().zip(&expected).find(|(a, b)| a != b);
        assert_eq!(differs, None, "{zone} {expression}");
        assert_eq!(found.len(), expected.len(), "{zone} {expression}");
        cases += 1;
        times += found.len();
    }
    assert_eq!(cases, 70);
    assert!(times > 10_000, "{times}");
}

#[test]
fn a_time_is_found_from_any_time_before_it() {
    // The hour around the changes of clocks, in which a search may begin.
    for (zone, change) in [
        ("Europe/Berlin", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-10-25T01:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ] {
        for expression in ["30 2 * * *", "*/20 * * * *", "15,45 1-2 * * *", "0 0 * * *"] {
            let schedule = cron(expression, zone);
            let start = time(change).as_millis() - 3 * 3_600_000;
            let all = schedule.upcoming(Timestamp::from_millis(start), 100);
            for minute in 0..6 * 60 {
                let from = Timestamp::from_millis(start + minute * 60_000);
                let expected = all.iter().find(|time| **time > from).copied();
                assert_eq!(schedule.next_after(from), expected, "{zone} {expression} after {from}");
            }
        }
    }
}

#[test]
fn a_period_counts_from_its_anchor_in_both_directions() {
    let schedule = every(90, "2026-01-01T00:00:00Z");
    for (from, next) in [
        ("2025-12-31T23:58:29.999Z", "2025-12-31T23:58:30Z"),
        ("2025-12-31T23:58:30Z", "2026-01-01T00:00:00Z"),
        ("2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"),
        ("2026-01-01T00:01:29.999Z", "2026-01-01T00:01:30Z"),
    ] {
        assert_eq!(schedule.next_after(time(from)), Some(time(next)), "{from}");
    }
}

#[test]
fn a_schedule_fires_within_its_bounds_alone() {
    let mut schedule = cron("0 8 * * *", "UTC");
    schedule.from = Some(time("2026-01-03T08:00:00Z"));
    schedule.until = Some(time("2026-01-04T08:00:00Z"));
    let times = schedule.upcoming(time("2026-01-01T00:00:00Z"), 5);
    assert_eq!(times, [time("2026-01-03T08:00:00Z"), time("2026-01-04T08:00:00Z")]);
    let every = Schedule { rule: every(86_400, "2026-01-03T08:00:00Z").rule, ..schedule };
    assert_eq!(every.upcoming(time("2026-01-01T00:00:00Z"), 5), times);
}

#[test]
fn one_time_that_has_come_fires_and_the_next_one_follows() {
    let state = at(every(60, "2026-01-01T00:00:00Z"), "2026-01-01T00:05:00Z");
    assert_eq!(state.plan(time("2026-01-01T00:04:59.999Z"), 10), None);
    let plan = state.plan(time("2026-01-01T00:05:00.003Z"), 10).unwrap();
    let (fire, next) = (vec![time("2026-01-01T00:05:00Z")], Some(time("2026-01-01T00:06:00Z")));
    assert_eq!(plan, Plan { fire, missed: 0, is_overlapped: false, next });
}

#[test]
fn missed_firings_are_skipped_made_up_for_once_or_all_made_up_for() {
    let now = time("2026-01-01T03:00:30Z");
    let of = |missed, catchup| {
        let mut state = at(every(60, "2026-01-01T00:00:00Z"), "2026-01-01T00:01:00Z");
        (state.schedule.missed, state.schedule.catchup) = (missed, Duration::from_secs(catchup));
        state
    };
    let next = Some(time("2026-01-01T03:01:00Z"));
    // The last one is on time.
    for missed in [Missed::Skip, Missed::One] {
        let plan = of(missed, 3600).plan(now, 100).unwrap();
        assert_eq!(
            plan,
            Plan { fire: vec![time("2026-01-01T03:00:00Z")], missed: 179, is_overlapped: false, next }
        );
    }
    let all = of(Missed::All, 3600).plan(now, 100).unwrap();
    assert_eq!((all.fire.len(), all.fire[0], all.missed), (60, time("2026-01-01T02:01:00Z"), 120));
    let part = of(Missed::All, 3600).plan(now, 7).unwrap();
    assert_eq!((part.fire.len(), part.missed, part.next), (7, 120, Some(time("2026-01-01T02:08:00Z"))));

    let late = |missed, catchup| {
        let mut state = of(missed, catchup);
        state.schedule.rule = every(86_400, "2026-01-01T00:01:00Z").rule;
        state.plan(now, 100).unwrap()
    };
    let next = Some(time("2026-01-02T00:01:00Z"));
    assert_eq!(late(Missed::Skip, 3600), Plan { fire: vec![], missed: 1, is_overlapped: false, next });
    assert_eq!(late(Missed::One, 3600), Plan { fire: vec![], missed: 1, is_overlapped: false, next });
    let fire = vec![time("2026-01-01T00:01:00Z")];
    assert_eq!(late(Missed::One, 4 * 3600), Plan { fire, missed: 0, is_overlapped: false, next });
}

#[test]
fn at_most_a_thousand_missed_firings_are_made_up_for() {
    let mut state = at(every(1, "2026-01-01T00:00:00Z"), "2026-01-01T00:00:01Z");
    (state.schedule.missed, state.schedule.catchup) = (Missed::All, MAX_CATCHUP);
    let now = time("2026-01-01T12:00:00Z");
    let (mut made, mut rounds) = (Vec::new(), 0);
    while let Some(plan) = state.plan(now, 64) {
        made.extend(plan.fire);
        state.progress.next = plan.next;
        rounds += 1;
    }
    assert_eq!((made.len(), rounds), (MAX_MISSED, 16));
    assert!(made.is_sorted() && made[0] == time("2026-01-01T11:43:21Z") && *made.last().unwrap() == now);
}

#[test]
fn a_schedule_without_another_time_ends() {
    let mut state = at(cron("0 8 * * *", "UTC"), "2026-01-01T08:00:00Z");
    state.schedule.until = Some(time("2026-01-01T09:00:00Z"));
    let plan = state.plan(time("2026-01-01T08:00:00Z"), 1).unwrap();
    assert_eq!((plan.fire.len(), plan.next), (1, None));
    let overlapped = state.plan_of_overlap(time("2026-01-01T08:00:00Z")).unwrap();
    assert_eq!((overlapped.fire.len(), overlapped.next), (0, None));
}

#[test]
fn a_job_of_a_firing_is_due_within_the_jitter_and_always_at_the_same_time() {
    let mut schedule = cron("0 8 * * *", "UTC");
    let (id, at) = ("daily".parse::<ScheduleId>().unwrap(), time("2026-01-01T08:00:00Z"));
    assert_eq!(schedule.firing(&id, at, None, None).due, Due::At(at));
    schedule.jitter = Duration::from_secs(60);
    let due = |time: Timestamp| match schedule.firing(&id, time, None, None).due {
        Due::At(due) => due.since(time),
        Due::In(_) => panic!(),
    };
    let mut all: Vec<_> = (0..100).map(|day| due(at.plus(Duration::from_secs(day * 86_400)))).collect();
    assert_eq!(due(at), all[0]);
    assert!(all.iter().all(|late| *late <= schedule.jitter));
    all.sort_unstable();
    all.dedup();
    assert!(all.len() > 90, "{}", all.len());
}

#[test]
fn a_job_without_a_target_goes_where_its_topic_says_then() {
    let mut schedule = cron("0 8 * * *", "UTC");
    let id = "daily".parse::<ScheduleId>().unwrap();
    let url = Callback::parse("https://topic.example/").unwrap();
    let policy = Policy { url: Some(url), ..Policy::default() };
    let url = |schedule: &Schedule, policy| {
        schedule.firing(&id, time("2026-01-01T08:00:00Z"), policy, None).delivery.callback.to_string()
    };
    assert_eq!(url(&schedule, Some(&policy)), "https://m.example/notify");
    schedule.job.to_url_of_topic = true;
    assert_eq!(url(&schedule, Some(&policy)), "https://topic.example/");
    assert_eq!(url(&schedule, None), "");
}

#[test]
fn a_schedule_is_unpacked_as_it_was_packed() {
    let mut state = at(cron("0 8 * * MON", "Europe/Berlin"), "2026-01-01T08:00:00Z");
    state.schedule.job.delivery.timeout = Some(Duration::from_secs(3));
    state.schedule.until = Some(time("2027-01-01T08:00:00Z"));
    state.progress.last = Some(Firing { time: time("2026-01-01T07:00:00Z"), id: "a~1".parse().unwrap() });
    (state.progress.fired, state.progress.missed, state.progress.overlapped) = (1, 2, 3);
    let mut other = at(every(90, "2026-01-01T00:00:00Z"), "2026-01-01T08:00:00Z");
    (other.schedule.missed, other.schedule.overlap) = (Missed::All, Overlap::Skip);
    other.progress.paused = true;
    let mut tagged = state.clone();
    tagged.schedule.job.delivery.tags = Tags::from_stored("customer:42 order:7").unwrap();
    for state in [state, other, tagged] {
        let packed = state.pack();
        assert_eq!(ScheduleState::unpack(&packed).unwrap(), state);
        for n in 0..packed.len() {
            assert!(ScheduleState::unpack(&packed[..n]).is_err(), "{n} bytes");
        }
        assert!(ScheduleState::unpack(&[&[3], &packed[1..]].concat()).is_err());
    }
}
