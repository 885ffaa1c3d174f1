//! Tests of limits of destinations: which lanes a reserve leaves alone, and which it lists.

use ringback_core::destination::{Destination, DestinationPause};
use ringback_core::flow::Limits;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{Admission, Admitted, Reserve, Reserved, Waiting};

use super::*;

const SHARD: Shard = Shard(0);
const LANE: &str = "t http://receiver.example";

fn limit(in_flight: u32) -> Limits {
    Limits { in_flight: Some(in_flight), ..Limits::default() }
}

fn of(host: &str) -> DestinationPause {
    DestinationPause::new(&TenantScope::All, Destination::parse(host).unwrap())
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
    let destination = of("receiver.example");
    store.put_limit(&destination, &limit(2)).await.unwrap();
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
