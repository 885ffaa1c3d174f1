//! Schedules: what very many cost while none fires, and how late the jobs of many firings arrive, beside as many jobs
//! that were submitted before.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::schedule::{Progress, ScheduleKey, ScheduleState};
use ringback_core::store_types::{ScheduleAdded, ScheduleRow};
use ringback_store::Store;
use ringback_testkit::{Role, Stack, now};
use ringback_wire::{NewSchedule, ScheduleDefaults, parse_schedule};
use serde_json::{Value, json};

use crate::at_rest::AtRest;
use crate::figure::{Figure, Spread, report};
use crate::job::{URL, job};
use crate::latencies::Latencies;
use crate::receiver::{Channel, Receiver};
use crate::setup::Setup;
use crate::train::{LEADS, Train, ahead, lateness};

pub(crate) const NAME: &str = "schedules";
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
/// Calls that set schedules at a time.
const CALLS: usize = 16;

pub(crate) async fn run(setup: &Setup) {
    idle(setup).await;
    firings(setup).await;
}

/// Measures what schedules cost that do not fire: memory of Redis, calls, and CPU time.
async fn idle(setup: &Setup) {
    let schedules = setup.size.pick(100_000, 500);
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).count(Role::Notifier, 2).start().await;
    let store = setup.open(stack.redis()).await;
    let before = AtRest::watch(setup, &stack).await;
    let memory = stack.redis().used_memory().await;
    let far = now() + SignedDuration::from_hours(24);
    let adding = stream::iter(0..schedules).map(|number| add(&store, number, far));
    adding.buffer_unordered(CALLS).collect::<()>().await;
    let memory = stack.redis().used_memory().await.saturating_sub(memory) as f64 / schedules as f64;
    let after = AtRest::watch(setup, &stack).await;
    let with = json!({ "schedules": schedules });
    report(NAME, "memory", memory, "B", &with);
    let none = |value: f64| Some(("without them", value.into()));
    for (name, unit, value, yardstick) in [
        ("calls", "calls/s", after.calls, before.calls),
        ("roles-cpu", "% of core", after.roles_cpu, before.roles_cpu),
        ("redis-cpu", "% of core", after.redis_cpu, before.redis_cpu),
    ] {
        let (value, yardstick, with) = (value.into(), none(yardstick), with.clone());
        Figure { scenario: NAME, name, unit, value, yardstick, with }.report();
    }
}

/// Adds a schedule of the measured job to the store, past the API.
async fn add(store: &Store, number: usize, anchor: Timestamp) {
    let id = id(number).parse().expect("an id");
    let now = SystemClock.now();
    let defaults = ScheduleDefaults { now, id: &id, tenant: None, stored: None };
    let json = schedule(number, URL, anchor).to_string();
    let NewSchedule { schedule, .. } = parse_schedule(json.as_bytes(), defaults, None).expect("it is valid");
    let progress = Progress { created: now, next: schedule.next_after(now), ..Progress::default() };
    let state = ScheduleState { schedule, progress };
    let row = ScheduleRow::new(ScheduleKey { tenant: None, id }, 1, &state);
    assert_eq!(store.add_schedule(&row, None).await.expect("the store answers"), ScheduleAdded::Added);
}

fn id(number: usize) -> String {
    format!("schedule-{number:08}")
}

/// A schedule that fires at `at` and then once every 365 days.
fn schedule(number: usize, url: &str, at: Timestamp) -> Value {
    let mut job = job(number, url, &json!({}));
    job.as_object_mut().and_then(|job| job.remove("id"));
    json!({ "every": "365d", "anchor": at.to_string(), "job": job })
}

/// Measures how late the jobs of firings arrive, beside submitted jobs.
async fn firings(setup: &Setup) {
    let rate = setup.size.pick(1_000, 200);
    let mut train = Train { first: 0, jobs: setup.size.pick(10 * rate, 200), rate };
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let mut warm_up = Train { jobs: train.jobs / 10, ..train };
    lateness(&mut warm_up, &stack, &receiver).await;
    train.first = warm_up.first;
    let (mut fired, mut submitted) = (Vec::new(), Vec::new());
    setup
        .repeat(async || {
            fired.push(fire(&mut train, &stack, &receiver).await);
            submitted.push(lateness(&mut train, &stack, &receiver).await);
        })
        .await;
    let with = json!({ "rate": rate, "jobs": train.jobs, "appendfsync": setup.profile() });
    for (name, q) in QUANTILES {
        let spread = |rounds: &[Latencies]| Spread::of(rounds.iter().map(|round| round.millis(q)));
        let (value, yardstick) = (spread(&fired), Some(("submitted jobs", spread(&submitted))));
        Figure { scenario: NAME, name, unit: "ms", value, yardstick, with: with.clone() }.report();
    }
}

/// Sets as many schedules as a train has jobs, which fire evenly, and returns how late their jobs arrived. Starts over
/// with more time if setting takes too long; panics if even the longest of [`LEADS`] is too short.
async fn fire(train: &mut Train, stack: &Stack, receiver: &Receiver) -> Latencies {
    let url = receiver.url(Channel::Main);
    for lead in LEADS.map(Duration::from_secs) {
        let numbers = train.first..train.first + train.jobs;
        train.first = numbers.end;
        receiver.expect(numbers.clone());
        let start = ahead(lead);
        let setting = stream::iter(numbers.enumerate()).map(|(n, number)| {
            let at = start + SignedDuration::from_micros((n * 1_000_000 / train.rate) as i64);
            let schedule = schedule(number, &url, at);
            async move { stack.put(&format!("/v1/schedules/{}", id(number)), &schedule).await.status }
        });
        let statuses: Vec<_> = setting.buffer_unordered(CALLS).collect().await;
        assert!(statuses.iter().all(|status| *status == 201), "each is taken");
        if now() < start {
            receiver.wait_for(train.jobs, lead + train.within()).await;
            return receiver.board().lateness(Channel::Main).clone();
        }
    }
    panic!("this machine takes longer to set {} schedules than any lead", train.jobs);
}
