//! Cases of lanes: their order in reserves, limits of lanes, origins and tenants; closed lanes that hide no open one.

use std::collections::HashMap;

use ringback_core::job::NewJob;
use ringback_core::lane::NO_TENANT;
use ringback_core::store_types::{Lease, Reserve};

use super::job_builders::{ORIGIN, TOPIC, With};
use super::workbench::Workbench;

fn origin(n: usize) -> String {
    format!("http://receiver-{n}.example")
}

async fn fill(bench: &Workbench, lanes: usize, jobs: usize) {
    let all: Vec<NewJob> = (0..lanes)
        .flat_map(|lane| (0..jobs).map(move |n| (lane, n)))
        .map(|(lane, n)| bench.job(&format!("job-{lane}-{n}")).to(&origin(lane)))
        .collect();
    for batch in all.chunks(500) {
        bench.submit(batch).await;
    }
}

fn per_origin(leases: &[Lease]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for lease in leases {
        *counts.entry(lease.delivery.callback.origin().to_owned()).or_default() += 1;
    }
    counts
}

pub(crate) async fn lanes_share_a_reserve(bench: &Workbench) {
    fill(bench, 2, 10).await;
    let leases = bench.take(4).await;
    assert_eq!(per_origin(&leases), HashMap::from([(origin(0), 2), (origin(1), 2)]));
    // The same receiver under another topic is another lane.
    bench.accept(bench.job_of("other", "job").to(&origin(0))).await;
    let leases = bench.take(3).await;
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().any(|lease| lease.key.topic.as_str() == "other"));
}

pub(crate) async fn lanes_come_in_turn_over_many_reserves(bench: &Workbench) {
    fill(bench, 3, 9).await;
    for round in 0..9 {
        let mut leases = Vec::new();
        for _ in 0..3 {
            leases.extend(bench.take(1).await);
        }
        assert_eq!(per_origin(&leases).len(), 3, "round {round}: {:?}", per_origin(&leases));
    }
    assert!(bench.take(1).await.is_empty());
}

pub(crate) async fn a_lane_at_its_limit_is_left_out_and_reported(bench: &Workbench) {
    fill(bench, 2, 3).await;
    let rooms = vec![(format!("{TOPIC} {}", origin(0)), 0)];
    let reserved = bench.reserve(&Reserve { lane_limits: rooms.clone(), ..bench.ask(10) }).await;
    assert_eq!(per_origin(&reserved.leases), HashMap::from([(origin(1), 3)]));
    assert!(!reserved.full.is_empty() && !reserved.more);
    let reserved = bench.reserve(&Reserve { lane_limits: rooms, ..bench.ask(10) }).await;
    assert!(reserved.leases.is_empty() && !reserved.full.is_empty() && !reserved.more);
    assert_eq!(per_origin(&bench.take(10).await), HashMap::from([(origin(0), 3)]));
}

pub(crate) async fn a_lane_gives_no_more_than_its_limit(bench: &Workbench) {
    fill(bench, 2, 5).await;
    let rooms = vec![(format!("{TOPIC} {}", origin(0)), 3)];
    let reserved = bench.reserve(&Reserve { lane_limits: rooms, lane_limit: 2, ..bench.ask(10) }).await;
    assert_eq!(per_origin(&reserved.leases), HashMap::from([(origin(0), 3), (origin(1), 2)]));
    assert!(!reserved.full.is_empty() && !reserved.more, "what is left has no room");
    let reserved = bench.reserve(&Reserve { lane_limit: 2, ..bench.ask(3) }).await;
    assert_eq!(reserved.leases.len(), 3);
    assert!(reserved.more || !reserved.full.is_empty());
}

pub(crate) async fn an_origin_gives_no_more_than_its_limit_over_all_topics(bench: &Workbench) {
    let topics = ["a", "b", "c"];
    for (n, topic) in topics.iter().cycle().take(12).enumerate() {
        bench.accept(bench.job_of(topic, &format!("job-{n}")).to(&origin(0))).await;
    }
    bench.accept(bench.job_of("a", "other").to(&origin(1))).await;
    let limits = vec![(origin(0), 5)];
    let ask = Reserve { group_limits: limits, ..bench.ask(20) };
    let reserved = bench.reserve(&ask).await;
    assert_eq!(per_origin(&reserved.leases), HashMap::from([(origin(0), 5), (origin(1), 1)]));
    assert_eq!((reserved.throttled, reserved.more), (vec![origin(0)], false));
    assert!(reserved.full.is_empty(), "the lanes themselves have room: {:?}", reserved.full);

    let ask = Reserve { origin_limit: 2, ..bench.ask(20) };
    let reserved = bench.reserve(&ask).await;
    assert_eq!(per_origin(&reserved.leases), HashMap::from([(origin(0), 2)]));
    assert_eq!((reserved.throttled, reserved.more), (vec![origin(0)], false));

    let ask = Reserve { group_limits: vec![(origin(0), 0)], ..bench.ask(20) };
    let reserved = bench.reserve(&ask).await;
    assert!(reserved.leases.is_empty() && !reserved.more, "{reserved:?}");
    assert_eq!(reserved.throttled, [origin(0)]);
    assert_eq!(per_origin(&bench.take(20).await), HashMap::from([(origin(0), 5)]), "all that is left");
}

/// The number of leases of each tenant, by the names that limits use.
fn per_tenant(leases: &[Lease]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for lease in leases {
        let tenant = lease.key.topic.tenant().map_or(String::new(), |tenant| tenant.to_string());
        *counts.entry(format!("~{tenant}")).or_default() += 1;
    }
    counts
}

fn tenants<const N: usize>(counts: [(&str, usize); N]) -> HashMap<String, usize> {
    counts.map(|(tenant, count)| (tenant.to_owned(), count)).into()
}

async fn fill_topic(bench: &Workbench, topic: &str, lanes: usize) {
    let jobs: Vec<_> = (0..lanes).map(|n| bench.job_of(topic, &format!("job-{n}")).to(&origin(n))).collect();
    for batch in jobs.chunks(500) {
        bench.submit(batch).await;
    }
}

pub(crate) async fn a_tenant_gives_no_more_than_its_limit_over_all_topics_and_origins(bench: &Workbench) {
    fill_topic(bench, "~a/one", 6).await;
    fill_topic(bench, "~a/two", 6).await;
    fill_topic(bench, "~ab/one", 2).await;
    fill_topic(bench, "one", 2).await;
    let ask = Reserve { group_limits: vec![("~a".to_owned(), 5)], ..bench.ask(30) };
    let reserved = bench.reserve(&ask).await;
    assert_eq!(per_tenant(&reserved.leases), tenants([("~a", 5), ("~ab", 2), ("~", 2)]));
    assert_eq!((reserved.throttled, reserved.more), (vec!["~a".to_owned()], false));
    assert!(reserved.full.is_empty(), "the lanes themselves have room: {:?}", reserved.full);

    let reserved = bench.reserve(&Reserve { tenant_limit: 2, ..bench.ask(30) }).await;
    assert_eq!(per_tenant(&reserved.leases), tenants([("~a", 2)]));
    assert_eq!((reserved.throttled, reserved.more), (vec!["~a".to_owned()], false));

    let ask = Reserve { group_limits: vec![("~a".to_owned(), 0)], ..bench.ask(30) };
    let reserved = bench.reserve(&ask).await;
    assert!(reserved.leases.is_empty() && !reserved.more, "{reserved:?}");
    assert_eq!(reserved.throttled, ["~a"]);
    assert_eq!(per_tenant(&bench.take(30).await), tenants([("~a", 5)]), "all that is left");
}

pub(crate) async fn jobs_without_a_tenant_have_a_limit_only_if_it_is_named(bench: &Workbench) {
    fill_topic(bench, "one", 6).await;
    fill_topic(bench, "~a/one", 2).await;
    let limits = vec![(NO_TENANT.to_owned(), 2)];
    let reserved = bench.reserve(&Reserve { group_limits: limits, ..bench.ask(10) }).await;
    assert_eq!(per_tenant(&reserved.leases), tenants([("~", 2), ("~a", 2)]));
    assert_eq!((reserved.throttled, reserved.more), (vec![NO_TENANT.to_owned()], false));
    fill_topic(bench, "~b/one", 2).await;
    let reserved = bench.reserve(&Reserve { tenant_limit: 1, ..bench.ask(10) }).await;
    assert_eq!(per_tenant(&reserved.leases), tenants([("~", 4), ("~b", 1)]));
    assert_eq!((reserved.throttled, reserved.more), (vec!["~b".to_owned()], false));
}

pub(crate) async fn a_lane_gives_no_more_than_its_origin_and_its_tenant_leave(bench: &Workbench) {
    for n in 0..6 {
        bench.accept(bench.job_of("~a/one", &format!("job-{n}")).to(&origin(0))).await;
    }
    for (of_origin, of_tenant, most, full) in [(1, 2, 1, &*origin(0)), (2, 1, 1, "~a"), (2, 2, 2, "~a")] {
        let limits = vec![(origin(0), of_origin), ("~a".to_owned(), of_tenant)];
        let reserved = bench.reserve(&Reserve { group_limits: limits, ..bench.ask(10) }).await;
        assert_eq!((reserved.leases.len(), reserved.more), (most, false));
        assert_eq!(reserved.throttled, [full]);
    }
}

pub(crate) async fn a_thousand_lanes_of_a_tenant_at_its_limit_hide_nobody(bench: &Workbench) {
    fill_topic(bench, "~a/one", 1_000).await;
    fill_topic(bench, "~b/one", 2).await;
    fill_topic(bench, "one", 1).await;
    three_others_are_found(bench, "~a").await;
}

/// Asserts that the three jobs outside of a group of a thousand closed lanes are reserved within 20 calls, and then
/// reserves the jobs of the group. Each call that meets only closed lanes puts them behind the others.
async fn three_others_are_found(bench: &Workbench, group: &str) {
    let (mut calls, mut others) = (0, 0);
    while others < 3 {
        let ask = Reserve { group_limits: vec![(group.to_owned(), 0)], ..bench.ask(10) };
        let reserved = bench.reserve(&ask).await;
        assert!(!per_tenant(&reserved.leases).contains_key(group));
        assert!(!per_origin(&reserved.leases).contains_key(group));
        others += reserved.leases.len();
        assert!(others == 3 || reserved.more, "{others} of 3, and no more?");
        assert_eq!(reserved.throttled, [group]);
        calls += 1;
        assert!(calls <= 20, "{others} of 3 after {calls} calls");
    }
    let mut rest = 0;
    while rest < 1_000 {
        let reserved = bench.reserve(&bench.ask(500)).await;
        rest += reserved.leases.len();
        assert!(!reserved.leases.is_empty(), "{rest} of 1,000");
    }
}

/// Reserves with these limits until all lanes that they close are deferred. Panics after 20 calls.
async fn defer_all(bench: &Workbench, limits: &[(String, usize)]) {
    let mut calls = 0;
    while bench.reserve(&Reserve { group_limits: limits.to_vec(), ..bench.ask(10) }).await.has_deferred {
        calls += 1;
        assert!(calls <= 20, "{calls} calls for a thousand lanes");
    }
}

pub(crate) async fn a_thousand_lanes_of_a_tenant_hide_nobody_who_comes_once_they_were_met_closed(
    bench: &Workbench,
) {
    fill_topic(bench, "~a/one", 1_000).await;
    let without = |group: &str| vec![(group.to_owned(), 0)];
    let closed = || Reserve { group_limits: without("~a"), ..bench.ask(10) };
    defer_all(bench, &without("~a")).await;
    for n in 0..4 {
        fill_topic(bench, &format!("~b/{n}"), 2).await;
        let reserved = bench.reserve(&closed()).await;
        assert_eq!(per_tenant(&reserved.leases), tenants([("~b", 2)]), "in one call");
        assert!(
            reserved.throttled == ["~a"] && reserved.more && reserved.is_more_later,
            "there may be others among the deferred ones"
        );
    }
    // These lanes are not deferred for a caller that has room for them.
    let mut rest = 0;
    while rest < 1_000 {
        let reserved = bench.reserve(&Reserve { group_limits: without("~b"), ..bench.ask(500) }).await;
        rest += reserved.leases.len();
        assert!(!reserved.leases.is_empty() && (reserved.more || rest == 1_000), "{rest} of 1,000");
    }
}

/// A tenant's only lane is closed for a moment, together with a thousand lanes of another tenant.
pub(crate) async fn a_lane_that_is_closed_among_a_thousand_of_another_tenant_is_found_once_it_opens(
    bench: &Workbench,
) {
    fill_topic(bench, "~b/one", 1).await;
    fill_topic(bench, "~a/one", 1_000).await;
    let without = |groups: &[&str]| groups.iter().map(|group| ((*group).to_owned(), 0)).collect();
    bench.reserve(&Reserve { group_limits: without(&["~a", "~b"]), ..bench.ask(10) }).await;
    let reserved = bench.reserve(&Reserve { group_limits: without(&["~a"]), ..bench.ask(10) }).await;
    assert_eq!(per_tenant(&reserved.leases), tenants([("~b", 1)]));
}

/// Each of a hundred origins at its limit closes one lane.
pub(crate) async fn a_hundred_origins_at_their_limits_do_not_hide_another_one(bench: &Workbench) {
    fill(bench, 100, 1).await;
    let last = bench.accept(bench.job("last").to(ORIGIN)).await;
    let closed = || (0..100).map(|n| (origin(n), 0)).collect();
    for call in 1.. {
        let reserved = bench.reserve(&Reserve { group_limits: closed(), ..bench.ask(10) }).await;
        if let [lease] = &*reserved.leases {
            assert_eq!(lease.key, last.key);
            break;
        }
        assert!(reserved.leases.is_empty() && reserved.more && call < 4, "{call} calls: {reserved:?}");
        assert!(reserved.has_deferred && !reserved.is_more_later, "the next call finds others");
    }
    let mut rest = 0;
    while rest < 100 {
        let reserved = bench.reserve(&bench.ask(10)).await;
        rest += reserved.leases.len();
        assert!(!reserved.leases.is_empty(), "{rest} of 100");
    }
}

/// Two callers each have room for one tenant. Lanes of both tenants are deferred.
pub(crate) async fn callers_with_room_for_different_tenants_each_find_their_lanes(bench: &Workbench) {
    fill_topic(bench, "~a/one", 400).await;
    fill_topic(bench, "~b/one", 400).await;
    let without = |group: &str| vec![(group.to_owned(), 0)];
    defer_all(bench, &[without("~a"), without("~b")].concat()).await;
    for (closed, wanted) in [("~a", "~b"), ("~b", "~a")] {
        let (mut calls, mut found) = (0, 0);
        while found < 400 {
            let reserved = bench.reserve(&Reserve { group_limits: without(closed), ..bench.ask(500) }).await;
            assert!(per_tenant(&reserved.leases).keys().all(|tenant| tenant == wanted));
            found += reserved.leases.len();
            calls += 1;
            assert!(reserved.more || found == 400, "{found} of 400, and no more?");
            assert!(calls <= 4_000, "{found} of 400");
        }
    }
}

pub(crate) async fn a_thousand_lanes_of_an_origin_at_its_limit_do_not_hide_another_origin(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..1_000)
        .map(|n| bench.job_of(&format!("topic-{n}"), "job").to(&origin(0)))
        .chain((0..3).map(|n| bench.job(&format!("other-{n}")).to(&origin(1))))
        .collect();
    for batch in jobs.chunks(500) {
        bench.submit(batch).await;
    }
    three_others_are_found(bench, &origin(0)).await;
}

pub(crate) async fn a_hundred_lanes_at_their_limits_do_not_hide_one_below_its_limit(bench: &Workbench) {
    fill(bench, 100, 1).await;
    let last = bench.accept(bench.job("last").to(ORIGIN)).await;
    let rooms = (0..100).map(|n| (format!("{TOPIC} {}", origin(n)), 0)).collect();
    let reserved = bench.reserve(&Reserve { lane_limits: rooms, ..bench.ask(10) }).await;
    assert_eq!(reserved.leases.iter().map(|lease| &lease.key).collect::<Vec<_>>(), [&last.key]);
    assert!(!reserved.full.is_empty());
    let mut rest = 0;
    while rest < 100 {
        let reserved = bench.reserve(&bench.ask(10)).await;
        rest += reserved.leases.len();
        assert!(!reserved.leases.is_empty(), "{rest} of 100");
        assert!(reserved.more || rest == 100, "{rest} of 100, and no more?");
    }
}

pub(crate) async fn stale_entries_do_not_block_another_lane(bench: &Workbench) {
    fill(bench, 2, 20).await;
    for n in 0..20 {
        bench.cancel(&bench.job(&format!("job-0-{n}")).key).await;
    }
    let leases = bench.take(4).await;
    assert!(!leases.is_empty() && per_origin(&leases).contains_key(&origin(1)), "{:?}", per_origin(&leases));
    let mut taken = leases.len();
    loop {
        let reserved = bench.reserve(&bench.ask(4)).await;
        taken += reserved.leases.len();
        if !reserved.more {
            break;
        }
    }
    assert_eq!(taken, 20);
}
