//! Cases of limits of destinations: which lanes give jobs, and which callbacks may begin.

use std::time::Duration;

use ringback_core::breaker::Counts;
use ringback_core::flow::Limits;
use ringback_core::job::{JobKey, TenantScope};
use ringback_core::store_types::{
    Admission, Admitted, DestinationReport, Failures, JobPauses, JobWait, LimitTarget, MAX_BEFORE, PlaceId,
    Reserve,
};

use super::destinations::{given, pause_of};
use super::job_builders::{ORIGIN, With, ms};
use super::workbench::{Workbench, now};
use crate::prelude::{SOON, eventually};

const ALL: TenantScope = TenantScope::All;
/// The host of the sample jobs.
const HOST: &str = "receiver.example";
const SECOND: Duration = Duration::from_secs(1);

fn limits(rate: Option<&str>, burst: Option<u32>, in_flight: Option<u32>) -> Limits {
    Limits { rate: rate.map(|rate| rate.parse().expect("a rate")), burst, in_flight }
}

fn in_flight(most: u32) -> Limits {
    limits(None, None, Some(most))
}

fn target_of(scope: &TenantScope, text: &str) -> LimitTarget {
    LimitTarget::Destination(pause_of(scope, text))
}

async fn put(bench: &Workbench, of: &LimitTarget, limits: Limits) {
    bench.store().limit(of, &limits).await.expect("limit").expect("there is room");
}

async fn limit(bench: &Workbench, scope: &TenantScope, text: &str, limits: Limits) {
    put(bench, &target_of(scope, text), limits).await;
}

fn call() -> Admission {
    Admission { lasts: 60 * SECOND, ahead: ms(100), ..Admission::default() }
}

async fn admit(bench: &Workbench, call: Admission) -> Vec<Admitted> {
    bench.store().admit(&call).await.expect("admit")
}

/// Asks for places of one lane.
async fn ask(bench: &Workbench, lane: &str, n: u32) -> Admitted {
    admit(bench, Admission { wanted: vec![(lane.to_owned(), n)], ..call() }).await.remove(0)
}

/// The places of an answer.
fn places(answer: &Admitted) -> Vec<PlaceId> {
    match answer {
        Admitted::Granted { first, begin_in } => {
            (first.0..).zip(begin_in).map(|(id, _)| PlaceId(id)).collect()
        }
        other => panic!("no places: {other:?}"),
    }
}

fn begins(answer: &Admitted) -> &[Duration] {
    match answer {
        Admitted::Granted { begin_in, .. } => begin_in,
        other => panic!("no places: {other:?}"),
    }
}

fn lane_of(topic: &str) -> String {
    format!("{topic} {ORIGIN}")
}

pub(crate) async fn a_limited_lane_gives_jobs_to_a_caller_with_places_alone(bench: &Workbench) {
    let jobs: Vec<_> = (0..5).map(|n| bench.job(&format!("{n}"))).collect();
    bench.submit(&jobs).await;
    let other = bench.accept(bench.job("other").to("http://other.example")).await;
    limit(bench, &ALL, HOST, in_flight(3)).await;
    let lane = lane_of(jobs[0].key.topic.as_str());
    for _ in 0..3 {
        let reserved = bench.reserve(&bench.ask(10)).await;
        assert!(reserved.leases.iter().all(|lease| lease.key == other.key), "{:?}", reserved.leases);
        assert!(reserved.limited.contains(&(lane.clone(), 5)), "{:?}", reserved.limited);
        assert!(!reserved.more);
        bench.check().await;
    }
    let reserved = bench.reserve(&Reserve { admitted: vec![(lane.clone(), 2)], ..bench.ask(10) }).await;
    assert_eq!(reserved.leases.len(), 2);
    bench.check().await;
    let reserved = bench.reserve(&Reserve { admitted: vec![(lane.clone(), 9)], ..bench.ask(10) }).await;
    assert_eq!(reserved.leases.len(), 3);
    bench.check().await;
    // The lane is empty, and gets a turn with its next job.
    let next = bench.accept(bench.job("next")).await;
    let reserved = bench.reserve(&bench.ask(10)).await;
    assert_eq!((reserved.leases.len(), reserved.limited), (0, vec![(lane, 1)]));
    limit(bench, &ALL, HOST, Limits::default()).await;
    assert!(given(bench).await.iter().chain(&given(bench).await).any(|name| *name == next.key.to_string()));
}

pub(crate) async fn a_pause_holds_a_limited_lane_too(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    let (lane, pause) = (lane_of(job.key.topic.as_str()), pause_of(&ALL, HOST));
    limit(bench, &ALL, "receiver.example:80", in_flight(3)).await;
    let admitted = || Reserve { admitted: vec![(lane.clone(), 1)], ..bench.ask(10) };
    for is_met in [false, true] {
        if is_met {
            assert!(given(bench).await.is_empty());
        }
        bench.store().pause_destination(&pause).await.expect("pause").expect("there is room");
        assert!(bench.reserve(&admitted()).await.leases.is_empty());
        assert!(given(bench).await.is_empty());
        bench.check().await;
        assert!(bench.store().resume_destination(&pause).await.expect("resume"));
        bench.check().await;
        assert!(given(bench).await.is_empty());
    }
    assert_eq!(bench.reserve(&admitted()).await.leases.len(), 1);
}

pub(crate) async fn no_more_places_are_in_use_than_a_limit_allows(bench: &Workbench) {
    let lane = lane_of("a");
    assert_eq!(ask(bench, &lane, 3).await, Admitted::Unlimited);
    limit(bench, &ALL, HOST, in_flight(5)).await;
    let first = ask(bench, &lane, 3).await;
    assert_eq!(begins(&first), [Duration::ZERO; 3]);
    // Of another topic, but to the same destination.
    let second = ask(bench, &lane_of("b"), 3).await;
    assert_eq!(places(&second).len(), 2);
    assert_eq!(ask(bench, &lane, 1).await, Admitted::Wait(None));
    let ended = vec![(lane.clone(), places(&first)[1]), (lane_of("b"), places(&second)[0])];
    let wanted = vec![(lane.clone(), 9)];
    let answers = admit(bench, Admission { ended: ended.clone(), wanted, ..call() }).await;
    assert_eq!(places(&answers[0]).len(), 2);
    // Given back twice, for example because an answer was lost.
    admit(bench, Admission { ended, ..call() }).await;
    assert_eq!(ask(bench, &lane, 1).await, Admitted::Wait(None));
    let state = bench.store().limits(&[target_of(&ALL, HOST)]).await.expect("limits").remove(0);
    assert_eq!((state.limits, state.in_flight, state.next_in), (in_flight(5), 5, Duration::ZERO));
    // A lower limit lets what is in flight end.
    limit(bench, &ALL, HOST, in_flight(2)).await;
    let ended: Vec<_> = places(&answers[0]).into_iter().map(|place| (lane.clone(), place)).collect();
    admit(bench, Admission { ended, ..call() }).await;
    assert_eq!(ask(bench, &lane, 1).await, Admitted::Wait(None));
}

pub(crate) async fn a_place_is_free_after_its_time_unless_it_is_held(bench: &Workbench) {
    let lane = lane_of("a");
    limit(bench, &ALL, HOST, in_flight(2)).await;
    let wanted = vec![(lane.clone(), 2)];
    let answer = admit(bench, Admission { wanted, lasts: ms(300), ..call() }).await.remove(0);
    let held = vec![(lane.clone(), places(&answer)[0], 60 * SECOND)];
    admit(bench, Admission { held: held.clone(), ..call() }).await;
    let free = eventually(SOON, "a place is free again", async || match ask(bench, &lane, 2).await {
        Admitted::Wait(None) => Err("none is free"),
        answer => Ok(answer),
    });
    let again = free.await;
    assert_eq!(places(&again).len(), 1, "the other one is held");
    // A place that was free again is not held.
    let gone = vec![(lane.clone(), places(&answer)[1], 60 * SECOND)];
    admit(bench, Admission { held: gone, ended: vec![(lane.clone(), places(&again)[0])], ..call() }).await;
    assert_eq!(places(&ask(bench, &lane, 2).await).len(), 1);
}

pub(crate) async fn callbacks_begin_at_the_rate_after_a_burst(bench: &Workbench) {
    let lane = lane_of("a");
    limit(bench, &ALL, HOST, limits(Some("1/m"), Some(3), None)).await;
    let answer = ask(bench, &lane, 9).await;
    assert_eq!(begins(&answer), [Duration::ZERO; 3]);
    let Admitted::Wait(Some(wait)) = ask(bench, &lane, 1).await else { panic!("no token is left") };
    assert!(wait <= ms(61_500), "{wait:?}");
    let state = bench.store().limits(&[target_of(&ALL, HOST)]).await.expect("limits").remove(0);
    assert!((ms(1)..=ms(61_500)).contains(&state.next_in), "{state:?}");
    // Another rate holds at once: what began before delays the next by one interval at most. The interval is a fortieth
    // longer than the rate says.
    limit(bench, &ALL, HOST, limits(Some("40/s"), None, None)).await;
    let answer = admit(bench, Admission { wanted: vec![(lane, 9)], lead: ms(30), ..call() }).await.remove(0);
    let us: Vec<_> = begins(&answer).iter().map(Duration::as_micros).collect();
    assert_eq!((us.len(), us[0]), (3, 30_000), "from the lead to 100 ms: {us:?}");
    assert_eq!((us[1] - us[0], us[2] - us[1]), (25_625, 25_625));
}

pub(crate) async fn tokens_that_were_not_used_are_there_again_if_they_were_the_last(bench: &Workbench) {
    let lane = lane_of("a");
    limit(bench, &ALL, HOST, limits(Some("1/h"), Some(4), Some(4))).await;
    let answer = ask(bench, &lane, 4).await;
    let last = places(&answer);
    assert_eq!((last.len(), ask(bench, &lane, 1).await), (4, Admitted::Wait(None)));
    let unused = vec![(lane.clone(), last[2], 2)];
    admit(bench, Admission { unused: unused.clone(), ..call() }).await;
    let again = places(&ask(bench, &lane, 1).await);
    assert_eq!(again.len(), 1);
    // Somebody got a token since, so what is given back now is lost.
    admit(bench, Admission { unused: vec![(lane.clone(), last[1], 1)], ..call() }).await;
    assert_eq!(places(&ask(bench, &lane, 4).await).len(), 1, "the second of the first two");
    assert!(matches!(ask(bench, &lane, 1).await, Admitted::Wait(_)));
}

pub(crate) async fn all_limits_of_a_lane_hold_together(bench: &Workbench) {
    let own = TenantScope::One(Some("t".parse().expect("a tenant")));
    limit(bench, &ALL, HOST, in_flight(4)).await;
    limit(bench, &ALL, "receiver.example:80", in_flight(3)).await;
    limit(bench, &own, HOST, in_flight(2)).await;
    let tenant = format!("~t/a {ORIGIN}");
    let of_tenant = places(&ask(bench, &tenant, 9).await);
    assert_eq!(of_tenant.len(), 2);
    assert_eq!(places(&ask(bench, &lane_of("a"), 9).await).len(), 1);
    // Another port.
    assert_eq!(places(&ask(bench, "a http://receiver.example:81", 9).await).len(), 1);
    assert_eq!(ask(bench, "a http://receiver.example:81", 9).await, Admitted::Wait(None));
    assert_eq!(ask(bench, "a http://other.example", 9).await, Admitted::Unlimited);
    let names = bench.store().limit_names().await.expect("names");
    assert_eq!(names.len(), 3, "{names:?}");
    let shown = bench.store().limits(&names).await.expect("limits");
    let mut used: Vec<_> = shown.iter().map(|state| (state.of.name(), state.in_flight)).collect();
    used.sort_unstable();
    let expected =
        [(HOST.to_owned(), 4), ("receiver.example:80".to_owned(), 3), ("~t/receiver.example".to_owned(), 2)];
    assert_eq!(used, expected);
    limit(bench, &own, HOST, Limits::default()).await;
    assert_eq!(bench.store().limit_names().await.expect("names").len(), 2);
}

pub(crate) async fn a_limit_of_a_topic_holds_its_lanes_together_and_no_others(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    let far = bench.accept(bench.job("far").to("http://other.example")).await;
    let of = LimitTarget::Topic(job.key.topic.clone());
    put(bench, &of, in_flight(3)).await;
    assert!(given(bench).await.is_empty());
    bench.check().await;
    let lane = |origin: &str| format!("{} {origin}", job.key.topic.as_str());
    assert_eq!(places(&ask(bench, &lane(ORIGIN), 2).await).len(), 2);
    assert_eq!(places(&ask(bench, &lane("http://other.example"), 2).await).len(), 1);
    assert_eq!(ask(bench, &lane_of("another"), 2).await, Admitted::Unlimited);
    assert_eq!(bench.store().limit_names().await.expect("names"), std::slice::from_ref(&of));
    put(bench, &of, Limits::default()).await;
    let found = [given(bench).await, given(bench).await].concat();
    assert_eq!(found.len(), 2, "{found:?} of {far:?}");
}

pub(crate) async fn a_breaker_is_enforced_by_a_limit_until_it_is_closed(bench: &Workbench) {
    let (job, topic) = (bench.accept(bench.job("a")).await, "a");
    let outages = failed(ORIGIN, Counts { attempts: 20, outages: 20, answers: 0 });
    report(bench, &outages, true).await;
    assert!(given(bench).await.is_empty(), "{job:?}");
    let target = bench.store().limit_names().await.expect("names").remove(0);
    assert_eq!(target.name(), "^~/receiver.example:80");
    assert!(matches!(ask(bench, &lane_of(topic), 9).await, Admitted::Wait(Some(_))), "it has just opened");
    let probe = eventually(SOON, "a probe begins", async || {
        let answer = ask(bench, &lane_of(topic), 9).await;
        if matches!(answer, Admitted::Wait(_)) { Err(format!("{answer:?}")) } else { Ok(places(&answer)) }
    });
    assert_eq!(probe.await.len(), 1, "one probe");
    assert!(matches!(ask(bench, &lane_of(topic), 9).await, Admitted::Wait(None)), "it is in flight");
    // The same origin for a tenant, and another origin.
    assert_eq!(ask(bench, &lane_of("~t/a"), 9).await, Admitted::Unlimited);
    assert_eq!(ask(bench, &format!("{topic} http://receiver.example:81"), 9).await, Admitted::Unlimited);
    let wait = bench.store().waits(&job.key).await.expect("waits");
    assert_eq!(wait, JobWait { limits: vec![target.clone()], before: Some(0), ..JobWait::default() });

    let mut answer = failed(ORIGIN, Counts { attempts: 1, outages: 0, answers: 1 });
    report(bench, &answer, true).await;
    let state = bench.store().limits(std::slice::from_ref(&target)).await.expect("limits").remove(0);
    assert_eq!(state.limits, limits(Some("1/s"), None, None));
    // A notifier without breakers closes it.
    answer.counts = Counts::default();
    report(bench, &answer, false).await;
    assert_eq!(bench.store().limit_names().await.expect("names"), []);
    assert_eq!(given(bench).await.len(), 1);
}

pub(crate) async fn a_receiver_that_asks_for_fewer_callbacks_gets_none_until_its_time(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    let limited = Counts { attempts: 1, outages: 0, answers: 0 };
    let until = |wait| Some(now().plus(wait));
    let mut slowed = DestinationReport { slow_until: until(2 * SECOND), ..failed(ORIGIN, limited) };
    report(bench, &slowed, true).await;
    assert!(given(bench).await.is_empty(), "{job:?}");
    let next_in = async || match ask(bench, &lane_of("a"), 9).await {
        Admitted::Wait(Some(wait)) => wait,
        other => panic!("it is asked for nothing yet: {other:?}"),
    };
    let first = next_in().await;
    assert!(first > SECOND && first < 2 * SECOND, "{first:?}");
    for lane in [lane_of("~t/a"), "a http://receiver.example:81".to_owned()] {
        assert_eq!(ask(bench, &lane, 9).await, Admitted::Unlimited, "{lane}");
    }
    // The receiver asks again, and for longer than it is obeyed.
    slowed.slow_until = until(3600 * SECOND);
    report(bench, &slowed, true).await;
    let longest = next_in().await;
    assert!(longest > 57 * SECOND && longest < 61 * SECOND, "{longest:?}");
    // What it asks for ends when breakers are reset.
    bench.store().reset_breakers(&pause_of(&ALL, HOST)).await.expect("a reset");
    assert_eq!(bench.store().limit_names().await.expect("names"), []);
    assert_eq!(given(bench).await.len(), 1);
}

pub(crate) async fn breakers_that_are_forced_closed_limit_nothing_until_they_are_reset(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    let outages = failed(ORIGIN, Counts { attempts: 20, outages: 20, answers: 0 });
    report(bench, &outages, true).await;
    let (of, names) = (pause_of(&ALL, HOST), async || bench.store().limit_names().await.expect("names"));
    assert_eq!(names().await.len(), 1);
    bench.store().force_breakers_closed(&of).await.expect("forced").expect("there is room");
    assert_eq!(bench.store().forced_closed(&ALL).await.expect("a list"), std::slice::from_ref(&of));
    report(bench, &outages, true).await;
    assert_eq!(names().await, []);
    assert_eq!(given(bench).await.len(), 1);
    bench.store().reset_breakers(&of).await.expect("a reset");
    assert_eq!(bench.store().forced_closed(&ALL).await.expect("a list"), []);
    report(bench, &outages, true).await;
    assert_eq!(names().await.len(), 1);
}

fn failed(origin: &str, counts: Counts) -> DestinationReport {
    let failures = Some(Failures::new(now(), None, Some("refused")));
    DestinationReport {
        tenant: None,
        origin: origin.into(),
        failures,
        success: None,
        counts,
        rate: None,
        slow_until: None,
    }
}

async fn report(bench: &Workbench, report: &DestinationReport, has_breakers: bool) {
    let taken = bench.store().report_destinations(std::slice::from_ref(report), has_breakers).await;
    assert!(taken.expect("a report").is_some());
}

pub(crate) async fn what_a_job_waits_for_is_known_with_the_jobs_before_it(bench: &Workbench) {
    let jobs: Vec<_> = (0..3).map(|n| bench.job(&format!("{n}"))).collect();
    bench.submit(&jobs).await;
    let late = bench.accept(bench.job("late").after(ms(60_000))).await;
    let waits = async |key: &JobKey| bench.store().waits(key).await.expect("waits");
    let unknown = bench.job("unknown").key;
    let mut before = Vec::new();
    for job in &jobs {
        before.push(waits(&job.key).await.before);
    }
    before.sort_unstable();
    // All are in one lane, and those of other shards do not come before them.
    assert!(before.iter().all(|n| n.is_some_and(|n| n < MAX_BEFORE)), "{before:?}");
    assert_eq!(waits(&late.key).await, JobWait::default());
    assert_eq!(waits(&unknown).await, JobWait::default());
    bench.store().pause_destination(&pause_of(&ALL, HOST)).await.expect("pause").expect("there is room");
    let wait = waits(&jobs[0].key).await;
    assert_eq!(wait.pauses, JobPauses { topic: false, destination: true });
    assert!(waits(&late.key).await.pauses.destination);
}
