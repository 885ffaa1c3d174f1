//! Tests of limits of destinations and topics: which lanes a reserve leaves alone, which it lists, and what a job says
//! that it waits for.

use ringback_core::destination::{Destination, DestinationPause};
use ringback_core::flow::Limits;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::{
    Admission, Admitted, JobPauses, JobWait, LimitTarget, MAX_BEFORE, Reserve, Reserved, Waiting,
};

use super::*;

const SHARD: Shard = Shard(0);
const LANE: &str = "t http://receiver.example";

fn limit(in_flight: u32) -> Limits {
    Limits { in_flight: Some(in_flight), ..Limits::default() }
}

fn pause(host: &str) -> DestinationPause {
    DestinationPause::new(&TenantScope::All, Destination::parse(host).unwrap())
}

fn of(host: &str) -> LimitTarget {
    LimitTarget::Destination(pause(host))
}

fn of_topic() -> LimitTarget {
    LimitTarget::Topic("t".parse().unwrap())
}

async fn reserve(store: &EmbeddedStore, sequence: u64, admitted: &[(&str, usize)]) -> Reserved {
    let ask = Reserve {
        caller: "notifier",
        sequence,
        limit: 10,
        lane_limit: 10,
        lane_limits: Vec::new(),
        admitted: admitted.iter().map(|(lane, n)| ((*lane).to_owned(), *n)).collect(),
        origin_limit: usize::MAX,
        tenant_limit: usize::MAX,
        group_limits: Vec::new(),
        bits: [sequence as u8; 8],
        waiting: Waiting::No,
        margin: Duration::from_secs(5),
    };
    store.reserve(SHARD, &ask).await.unwrap()
}

/// A store with this many ready jobs to one receiver.
async fn with_jobs(jobs: usize) -> EmbeddedStore {
    let store = in_memory().await;
    let jobs: Vec<_> = (0..jobs).map(|n| NewJob { due: Due::In(Duration::ZERO), ..job(n) }).collect();
    store.submit(SHARD, &jobs).await.unwrap();
    store
}

fn listed(n: u32) -> Vec<(String, u32)> {
    vec![(LANE.to_owned(), n)]
}

#[tokio::test]
async fn a_limited_lane_gives_jobs_to_a_caller_with_places_only() {
    let store = with_jobs(5).await;
    store.put_limit(&of("receiver.example:80"), &limit(2)).await.unwrap();
    for sequence in 1..3 {
        let found = reserve(&store, sequence, &[]).await;
        assert!(found.leases.is_empty() && !found.more);
        assert_eq!(found.limited, listed(5), "when it has its turn, and when it is set aside");
    }
    let ask = Admission { wanted: vec![(LANE.to_owned(), 9)], ..Admission::default() };
    let admitted = store.admit(&ask).await.unwrap();
    assert!(
        matches!(&*admitted, [Admitted::Granted { begin_in, .. }] if begin_in.len() == 2),
        "{admitted:?}"
    );

    let found = reserve(&store, 3, &[(LANE, 2), (LANE, 2)]).await;
    assert_eq!((found.leases.len(), found.limited, found.more), (2, listed(3), false));
    assert!(store.check(Repair::No).await.unwrap().is_clean());
    let found = reserve(&store, 4, &[(LANE, 9)]).await;
    assert_eq!((found.leases.len(), found.limited), (3, Vec::new()));
    assert!(store.check(Repair::No).await.unwrap().is_clean());
}

#[tokio::test]
async fn a_lane_gets_its_turn_back_when_its_limit_ends() {
    for is_marked in [true, false] {
        let store = with_jobs(3).await;
        store.put_limit(&of("receiver.example"), &limit(2)).await.unwrap();
        assert!(reserve(&store, 1, &[]).await.leases.is_empty());
        store.put_limit(&of("receiver.example"), &Limits::default()).await.unwrap();
        assert!(store.check(Repair::No).await.unwrap().is_clean());
        if is_marked {
            store.mark_limit(SHARD, &of("receiver.example"), false).await.unwrap();
        } else {
            // A reserve finds that the lane has no limit.
            let found = reserve(&store, 2, &[]).await;
            assert_eq!((found.leases.len(), found.limited), (0, Vec::new()));
        }
        assert_eq!(reserve(&store, 3, &[]).await.leases.len(), 3);
    }
}

#[tokio::test]
async fn a_pause_holds_a_limited_lane_and_the_limit_holds_it_after_the_pause() {
    let store = with_jobs(3).await;
    let destination = pause("receiver.example");
    store.put_limit(&of("receiver.example"), &limit(2)).await.unwrap();
    assert_eq!(reserve(&store, 1, &[]).await.limited, listed(3));
    store.pause_destination(SHARD, &destination).await.unwrap();
    let found = reserve(&store, 2, &[(LANE, 3)]).await;
    assert_eq!((found.leases.len(), found.limited), (0, Vec::new()));
    assert!(store.check(Repair::No).await.unwrap().is_clean());
    assert!(store.resume_destination(SHARD, &destination).await.unwrap());
    let found = reserve(&store, 3, &[]).await;
    assert_eq!((found.leases.len(), found.limited), (0, listed(3)));
    assert_eq!(reserve(&store, 4, &[(LANE, 3)]).await.leases.len(), 3);
}

#[tokio::test]
async fn limits_are_there_after_a_restart_and_callbacks_in_flight_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let file = directory.path().join("ringback.redb");
        prepared(Medium::File(file, Disks::default()), Arc::new(SystemClock))
    };
    let (store, destination) = (open().await, of("receiver.example"));
    let limits = Limits { rate: Some("6/m".parse().unwrap()), burst: Some(3), in_flight: Some(5) };
    assert_eq!(store.put_limit(&destination, &limits).await.unwrap(), None);
    let ask = Admission {
        wanted: vec![(LANE.to_owned(), 2)],
        lasts: Duration::from_secs(60),
        ..Admission::default()
    };
    assert!(matches!(&*store.admit(&ask).await.unwrap(), [Admitted::Granted { .. }]));
    assert_eq!(store.limits(&[of("other.example"), destination.clone()]).await.unwrap()[0].in_flight, 2);
    drop(store);

    let store = open().await;
    assert_eq!(store.limit_names().await.unwrap(), std::slice::from_ref(&destination));
    let state = store.limits(&[destination]).await.unwrap().remove(0);
    assert_eq!((state.limits, state.in_flight), (limits, 0));
    assert!(state.next_in > Duration::from_secs(9), "{:?}", state.next_in);
    assert!(matches!(&*store.admit(&ask).await.unwrap(), [Admitted::Wait(Some(_))]));
}

/// A ready job with a small body.
fn ready_job(n: usize) -> NewJob {
    let mut job = NewJob { due: Due::In(Duration::ZERO), ..job(n) };
    job.delivery.body.bytes = "small".into();
    job
}

/// Asks for this many places for each lane, and returns how many each got.
async fn admit(store: &EmbeddedStore, lanes: &[&str], wanted: u32) -> Vec<Option<usize>> {
    let wanted = lanes.iter().map(|lane| ((*lane).to_owned(), wanted)).collect();
    let ask = Admission { wanted, lasts: Duration::from_secs(60), ..Admission::default() };
    let places = |admitted| match admitted {
        Admitted::Unlimited => None,
        Admitted::Granted { begin_in, .. } => Some(begin_in.len()),
        Admitted::Wait(_) => Some(0),
    };
    store.admit(&ask).await.unwrap().into_iter().map(places).collect()
}

#[tokio::test]
async fn the_limit_of_a_topic_holds_its_lanes_together_and_no_others() {
    let (store, other_lane) = (in_memory().await, "t http://other.example");
    let mut jobs: Vec<_> = (0..6).map(ready_job).collect();
    for job in &mut jobs[2..4] {
        job.delivery.callback = Callback::parse("http://other.example/hook").unwrap();
    }
    let other_topic: Topic = "t2".parse().unwrap();
    for job in &mut jobs[4..] {
        job.key.topic = other_topic.clone();
    }
    store.submit(SHARD, &jobs).await.unwrap();
    assert_eq!(store.put_limit(&of_topic(), &limit(3)).await.unwrap(), None);
    assert_eq!(store.limit_names().await.unwrap(), [of_topic()]);

    let mut found = reserve(&store, 1, &[]).await;
    assert_eq!(found.leases.len(), 2, "only those of the other topic");
    found.limited.sort();
    assert_eq!(found.limited, [(other_lane.to_owned(), 2), (LANE.to_owned(), 2)]);

    let lanes = [LANE, other_lane, "t2 http://receiver.example", "t "];
    assert_eq!(admit(&store, &lanes, 2).await, [Some(2), Some(1), None, None]);
    assert_eq!(store.limits(&[of_topic()]).await.unwrap()[0].in_flight, 3);
    assert_eq!(reserve(&store, 2, &[(LANE, 2), (other_lane, 1)]).await.leases.len(), 3);
    assert!(store.check(Repair::No).await.unwrap().is_clean());

    store.put_limit(&of_topic(), &Limits::default()).await.unwrap();
    store.mark_limit(SHARD, &of_topic(), false).await.unwrap();
    assert_eq!(reserve(&store, 3, &[]).await.leases.len(), 1);
}

#[tokio::test]
async fn a_ready_job_waits_for_the_jobs_before_it_and_for_its_limits() {
    let store = in_memory().await;
    let jobs: Vec<_> = (0..3).map(ready_job).chain([job(3)]).collect();
    store.submit(SHARD, &jobs).await.unwrap();
    let waits = async |n: usize| store.waits(SHARD, &job(n).key).await.unwrap();
    let ready = JobWait { before: Some(2), ..JobWait::default() };

    store.put_limit(&of_topic(), &limit(1)).await.unwrap();
    store.put_limit(&of("other.example"), &limit(1)).await.unwrap();
    assert_eq!(waits(2).await, JobWait { limits: vec![of_topic()], ..ready.clone() });
    store.put_limit(&of("receiver.example"), &limit(1)).await.unwrap();
    assert_eq!(waits(2).await.limits, [of("receiver.example"), of_topic()]);
    for limit in [of_topic(), of("receiver.example")] {
        store.put_limit(&limit, &Limits::default()).await.unwrap();
    }
    assert_eq!(waits(2).await, ready);

    store.pause_destination(SHARD, &pause("receiver.example")).await.unwrap();
    let pauses = JobPauses { destination: true, ..JobPauses::default() };
    assert_eq!(waits(2).await, JobWait { pauses, ..ready.clone() });
    assert_eq!(waits(3).await, JobWait { pauses, ..JobWait::default() }, "delayed");
    store.cancel(SHARD, &job(0).key).await.unwrap();
    assert_eq!(waits(2).await.before, Some(1), "the position before it is free");
    assert_eq!(waits(0).await, JobWait::default(), "ended");
    assert_eq!(waits(9).await, JobWait::default(), "unknown");
}

#[tokio::test]
async fn jobs_before_another_one_are_counted_up_to_a_bound() {
    let (store, most) = (in_memory().await, MAX_BEFORE as usize);
    let jobs: Vec<_> = (0..most + 2).map(ready_job).collect();
    store.submit(SHARD, &jobs).await.unwrap();
    for (n, before) in [(0, 0), (most - 1, MAX_BEFORE - 1), (most, MAX_BEFORE), (most + 1, MAX_BEFORE)] {
        assert_eq!(store.waits(SHARD, &job(n).key).await.unwrap().before, Some(before), "{n}");
    }
}
