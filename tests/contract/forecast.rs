//! Cases of forecasts of due jobs and firings: exact if everything is read, and within the stated error if samples are.

use ringback_core::clock::Timestamp;
use ringback_core::job::TenantScope;
use ringback_core::schedule::{Cron, Rule};
use ringback_core::store_types::{Filter, Forecast, ForecastSlots, LaneSpan, SlotJobs};
use ringback_core::written_time::Zone;

use super::job_builders::{With, retry, topic};
use super::list;
use super::schedules::{add, schedule_at};
use super::workbench::{Workbench, now};
use crate::prelude::*;

const MINUTE: u64 = 60_000;
const ALL: TenantScope = TenantScope::All;

fn slots(by: u64, until: u64) -> ForecastSlots {
    ForecastSlots::from(now().as_millis(), by, until)
}

async fn of_all(bench: &Workbench, slots: &ForecastSlots) -> Forecast {
    bench.store().forecast(&[LaneSpan::Of(ALL)], slots).await.expect("forecast")
}

async fn of_topic(bench: &Workbench, name: &str, slots: &ForecastSlots) -> Forecast {
    bench.store().forecast(&[LaneSpan::Topic(topic(name))], slots).await.expect("forecast")
}

fn sum(forecast: &Forecast) -> SlotJobs {
    let mut sum = SlotJobs::default();
    for slot in &forecast.slots {
        sum.jobs += slot.jobs;
        sum.retries += slot.retries;
    }
    sum
}

/// The middle of the minute that begins `minutes` minutes after the present one.
fn ahead(minutes: u64) -> Timestamp {
    Timestamp::from_millis((now().as_millis() / MINUTE + minutes) * MINUTE + MINUTE / 2)
}

pub(crate) async fn a_forecast_has_each_delayed_job_in_its_slot(bench: &Workbench) {
    bench.accept(bench.job_of("a", "ready")).await;
    let times = [5, 5, 14, 45, 45, 46, 200].map(ahead);
    for (n, time) in times.iter().enumerate() {
        bench.accept(bench.job_of(["a", "b"][n % 2], &format!("job-{n}")).at(*time)).await;
    }
    bench.accept(bench.job_of("a", "too-far").at(ahead(400))).await;
    let slots = slots(MINUTE, 300 * MINUTE);
    for (name, wanted) in [(None, [0, 1]), (Some("a"), [0, 0]), (Some("b"), [1, 1])] {
        let forecast = match name {
            None => of_all(bench, &slots).await,
            Some(name) => of_topic(bench, name, &slots).await,
        };
        let mut expected = vec![SlotJobs::default(); slots.count];
        for (_, time) in times.iter().enumerate().filter(|(n, _)| wanted.contains(&(n % 2))) {
            expected[slots.slot_of(time.as_millis()).expect("a slot")].jobs += 1.0;
        }
        assert_eq!(forecast.slots, expected, "{name:?}");
        assert_eq!(forecast.error(), None);
        assert_eq!(forecast.ready, u64::from(name != Some("b")), "{name:?}");
    }
}

pub(crate) async fn a_forecast_has_no_cancelled_job_and_tells_retries_apart(bench: &Workbench) {
    let failed = [("near", 5), ("far", 60)].map(|(name, minutes)| (bench.job(name), minutes));
    for (job, minutes) in failed {
        let lease = bench.reserved(job).await;
        bench.settle(lease, retry(Duration::from_secs(minutes * 60))).await;
    }
    for (n, minutes) in [5, 60, 60, 60, 90].into_iter().enumerate() {
        bench.accept(bench.job(&format!("job-{n}")).after(Duration::from_secs(minutes * 60))).await;
    }
    for n in [1, 4] {
        bench.cancel(&bench.job(&format!("job-{n}")).key).await;
    }
    for by in [MINUTE, 10 * MINUTE, 30 * MINUTE] {
        let slots = slots(by, 180 * MINUTE);
        for forecast in
            [of_all(bench, &slots).await, of_topic(bench, super::job_builders::TOPIC, &slots).await]
        {
            assert_eq!((sum(&forecast), forecast.error()), (SlotJobs { jobs: 3.0, retries: 2.0 }, None));
        }
    }
}

pub(crate) async fn a_sampled_forecast_lies_within_its_error(bench: &Workbench) {
    let mut jobs = Vec::new();
    for n in 0..6000_u64 {
        // Every third job is of another topic; the times are spread over the second hour.
        let of = if n * 7 % 3 == 0 { "rare" } else { "common" };
        jobs.push(
            bench.job_of(of, &format!("{n}-")).after(Duration::from_millis(3_600_000 + n * 37 % 3600 * 1000)),
        );
    }
    for part in jobs.chunks(500) {
        bench.submit(part).await;
    }
    // A job that has failed makes the scripts read job states.
    let lease = bench.reserved(bench.job_of("other", "failed")).await;
    bench.settle(lease, retry(Duration::from_secs(5400))).await;
    let slots = slots(10 * MINUTE, 180 * MINUTE);
    let all = of_all(bench, &slots).await;
    let total: f64 = all.slots.iter().map(|slot| slot.jobs + slot.retries).sum();
    assert!((total - 6001.0).abs() < 0.01, "sums of whole lists are exact: {total}");
    let rare = of_topic(bench, "rare", &slots).await;
    let of_rare = Filter { topic: Some(topic("rare")), ..Filter::default() };
    let due: Vec<_> = list::all(bench, &of_rare).await.values().map(|job| job.due).collect();
    lies_within_its_error(&rare, &due, &slots);
    let sum: f64 = rare.slots.iter().map(|slot| slot.jobs).sum();
    assert!((1600.0..2400.0).contains(&sum), "{sum} of 2000");
}

/// Asserts that the jobs of a forecast agree with the due times of all its jobs, within the stated error.
fn lies_within_its_error(forecast: &Forecast, due: &[Timestamp], slots: &ForecastSlots) {
    let mut truth = vec![0.0; slots.count];
    for at in due {
        truth[slots.slot_of(at.as_millis()).expect("a slot")] += 1.0;
    }
    let found: Vec<_> = forecast.slots.iter().map(|slot| slot.jobs + slot.retries).collect();
    let half_width = forecast.error().unwrap_or(0.0) * found.iter().copied().fold(1.0, f64::max);
    let off: Vec<_> = found.iter().zip(&truth).map(|(found, wanted)| (found - wanted).abs()).collect();
    // Each slot is outside of its interval once in 20 times, and beyond twice its width once in 10,000. What is counted
    // whole is off by rounding alone.
    assert!(off.iter().all(|off| *off <= 2.0 * half_width + 0.001), "{off:?}, ±{half_width}");
    let within = off.iter().filter(|off| **off <= half_width + 0.001).count();
    assert!(within * 10 >= off.len() * 7, "{within} of {}: {off:?}, ±{half_width}", off.len());
}

pub(crate) async fn a_forecast_of_many_lanes_lies_within_its_error(bench: &Workbench) {
    // More near jobs than are read in full, and behind them lanes of few jobs, of which samples are read.
    let first = (0..30).map(|n| (format!("first-{n:02}"), 205));
    let lanes = first.chain((0..300).map(|n| (format!("then-{n:03}"), 40)));
    let (mut jobs, mut due, base) = (Vec::new(), Vec::new(), ahead(2).as_millis());
    for (name, size) in lanes {
        for n in 0..size {
            let at = Timestamp::from_millis(base + n * 7919 % 420 * 1000);
            jobs.push(bench.job_of(&name, &format!("{n}-")).at(at));
            due.push(at);
        }
    }
    let lease = bench.reserved(bench.job_of("failed", "failed")).await;
    bench.settle(lease, retry(Duration::from_secs(300))).await;
    due.push(bench.get(&bench.key("failed", "failed")).await.due);
    for part in jobs.chunks(500) {
        bench.submit(part).await;
    }
    let slots = slots(MINUTE, 15 * MINUTE);
    let forecast = of_all(bench, &slots).await;
    let SlotJobs { jobs: total, retries } = sum(&forecast);
    assert!(
        (total + retries - 18_151.0).abs() < 0.01,
        "each lane counts with all its jobs: {total}, {retries}"
    );
    lies_within_its_error(&forecast, &due, &slots);
}

pub(crate) async fn a_forecast_has_the_firings_of_schedules(bench: &Workbench) {
    let every_minute = schedule_at(bench, "a", "minute", Some(ahead(1)));
    add(bench, &every_minute).await;
    let mut hourly = schedule_at(bench, "b", "hour", Some(ahead(1)));
    let mut state = hourly.state().expect("readable");
    let cron = Cron::parse("0 * * * *", Zone::utc()).expect("an expression");
    state.schedule.rule = Rule::Cron(Box::new(cron));
    hourly = ringback_core::store_types::ScheduleRow::new(hourly.key.clone(), 1, &state);
    add(bench, &hourly).await;
    add(bench, &schedule_at(bench, "b", "paused", None)).await;
    let (now, slots) = (now(), slots(60 * MINUTE, 180 * MINUTE));
    let firings = bench.store().forecast_schedules(&ALL, |_| true, now, &slots).await.expect("forecast");
    let left = slots.begin(1).div_ceil(MINUTE) - (now.as_millis() + 1).div_ceil(MINUTE);
    assert_eq!(firings.slots[0], left, "and none of the hour that has begun");
    assert!(firings.slots[1..].iter().all(|n| *n == 61) && !firings.is_cut, "{firings:?}");
    let of_b = |of: &_| *of == topic("b");
    let firings = bench.store().forecast_schedules(&ALL, of_b, now, &slots).await.expect("forecast");
    assert!(firings.slots[1..].iter().all(|n| *n == 1), "{firings:?}");
}
