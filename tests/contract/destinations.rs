//! Cases of destinations: their pauses, for all or for one tenant and beside those of topics, limits on pauses, and
//! pages with the counts of each origin.

use std::collections::BTreeSet;

use ringback_core::destination::{Destination, DestinationPause};
use ringback_core::job::TenantScope;
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{
    DestinationQuery, LaneSpan, MAX_PAUSED_DESTINATIONS, MAX_PAUSED_DESTINATIONS_OF_TENANT, PauseLimit,
    SettleResult, Wake,
};

use super::job_builders::{LONG, STATES, TOPIC, With, bury, ms, release, retry, topic};
use super::workbench::{Workbench, next, now, until};

const ALL: TenantScope = TenantScope::All;
const NONE: TenantScope = TenantScope::One(None);

fn tenant(name: &str) -> TenantScope {
    TenantScope::One(Some(name.parse().expect("a tenant")))
}

pub(crate) fn pause_of(scope: &TenantScope, text: &str) -> DestinationPause {
    DestinationPause::new(scope, Destination::parse(text).expect("a destination"))
}

async fn pause(bench: &Workbench, scope: &TenantScope, text: &str) {
    let paused = bench.store().pause_destination(&pause_of(scope, text)).await;
    paused.expect("pause").expect("there is room");
}

async fn resume(bench: &Workbench, scope: &TenantScope, text: &str) -> bool {
    bench.store().resume_destination(&pause_of(scope, text)).await.expect("resume")
}

/// The names of the jobs that a reserve from all lanes returns, sorted.
pub(crate) async fn given(bench: &Workbench) -> Vec<String> {
    let mut names: Vec<_> = bench.take(100).await.iter().map(|lease| lease.key.to_string()).collect();
    names.sort_unstable();
    names
}

pub(crate) async fn nothing_goes_to_a_paused_destination_until_it_is_resumed(bench: &Workbench) {
    let before = bench.accept(bench.job("before")).await;
    pause(bench, &ALL, "receiver.example").await;
    let other = bench.accept(bench.job("other").to("http://other.example")).await;
    let longer = bench.accept(bench.job("longer").to("http://a.receiver.example")).await;
    let topic = bench.accept(bench.job_of("another", "a")).await;
    bench.accept(bench.job("due").after(ms(1))).await;
    bench.promote_until(1).await;
    let mut open = [other.key.to_string(), longer.key.to_string()];
    open.sort_unstable();
    assert_eq!(given(bench).await, open);
    assert!(given(bench).await.is_empty());
    bench.check().await;
    bench.cancel(&topic.key).await;
    bench.check().await;

    assert!(resume(bench, &ALL, "receiver.example").await);
    assert_eq!(given(bench).await, [before.key.to_string(), bench.job("due").key.to_string()]);
}

pub(crate) async fn a_pause_of_a_port_holds_that_port_alone(bench: &Workbench) {
    let origins = [
        "http://a.example",
        "https://a.example",
        "http://a.example:443",
        "http://a.example:8080",
        "https://[::1]:8080",
        "https://[::1]",
        "http://127.0.0.1:81",
    ];
    let jobs: Vec<_> =
        origins.iter().enumerate().map(|(n, origin)| bench.job(&format!("{n}")).to(origin)).collect();
    bench.submit(&jobs).await;
    let names = |held: &[usize]| {
        let open = (0..origins.len()).filter(|n| !held.contains(n)).map(|n| jobs[n].key.to_string());
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        open
    };
    for (paused, held) in [
        (&["a.example:443"][..], &[1, 2][..]),
        (&["A.EXAMPLE"], &[0, 1, 2, 3]),
        (&["[0::1]:443", "127.1:81"], &[5, 6]),
        (&["[::1]", "a.example:80", "127.0.0.1:80"], &[0, 4, 5]),
    ] {
        for destination in paused {
            pause(bench, &ALL, destination).await;
        }
        let leases = bench.take(100).await;
        let mut open: Vec<_> = leases.iter().map(|lease| lease.key.to_string()).collect();
        open.sort_unstable();
        assert_eq!(open, names(held), "{paused:?}");
        for lease in leases {
            assert_eq!(bench.settle(lease, release(ms(0))).await, SettleResult::Applied);
        }
        for destination in paused {
            assert!(resume(bench, &ALL, destination).await);
        }
    }
    assert_eq!(given(bench).await, names(&[]));
}

pub(crate) async fn a_lane_waits_for_its_topic_and_for_its_destination(bench: &Workbench) {
    let (store, held) = (bench.store(), topic(TOPIC));
    let job = bench.accept(bench.job("a")).await;
    let set = async |what: &str, is_paused: bool| match (what, is_paused) {
        ("topic", true) => store.pause(&held, None).await.expect("pause").expect("there is room"),
        ("topic", false) => assert!(store.resume(&held).await.expect("resume")),
        (destination, true) => pause(bench, &ALL, destination).await,
        (destination, false) => assert!(resume(bench, &ALL, destination).await),
    };
    let destinations = ["receiver.example", "receiver.example:80"];
    for (first, second) in
        [("topic", destinations[0]), ("topic", destinations[1]), (destinations[0], destinations[1])]
    {
        for [one, two] in [[first, second], [second, first]] {
            for is_met_between in [true, false] {
                // The lane is set aside for the first pause, or for either of them.
                set(one, true).await;
                if is_met_between {
                    assert!(given(bench).await.is_empty());
                }
                set(two, true).await;
                assert!(given(bench).await.is_empty());
                bench.check().await;
                for [ends, stays] in [[one, two], [two, one]] {
                    set(ends, false).await;
                    let reserved = bench.reserve(&bench.ask(10)).await;
                    assert!(reserved.leases.is_empty() && !reserved.more, "{one}, {two}: {ends}");
                    bench.check().await;
                    set(ends, true).await;
                    set(stays, false).await;
                    assert!(given(bench).await.is_empty(), "{one}, {two}: {stays}");
                    set(stays, true).await;
                }
                set(one, false).await;
                set(two, false).await;
                let lease = bench.take_one(&job.key).await;
                assert_eq!(bench.settle(lease, release(ms(0))).await, SettleResult::Applied);
                bench.check().await;
            }
        }
    }
}

pub(crate) async fn a_pause_of_a_tenant_holds_its_own_jobs(bench: &Workbench) {
    let topics = ["a", "~t/a", "~tt/a"];
    let jobs = topics.map(|topic| bench.job_of(topic, "1"));
    bench.submit(&jobs).await;
    for (scope, destination, held) in [
        (tenant("t"), "receiver.example", vec![1]),
        (tenant("tt"), "receiver.example:80", vec![2]),
        (NONE, "receiver.example", vec![0]),
        (ALL, "receiver.example:80", vec![0, 1, 2]),
    ] {
        pause(bench, &scope, destination).await;
        for other in [ALL, NONE, tenant("t"), tenant("tt")].iter().filter(|other| **other != scope) {
            assert!(!resume(bench, other, destination).await, "{other:?} ends no pause of {scope:?}");
        }
        let leases = bench.take(10).await;
        let found: BTreeSet<_> = leases.iter().map(|lease| lease.key.topic.as_str()).collect();
        let open: BTreeSet<_> = (0..3).filter(|n| !held.contains(n)).map(|n| topics[n]).collect();
        assert_eq!(found, open, "{scope:?}");
        for lease in leases {
            bench.settle(lease, release(ms(0))).await;
        }
        assert!(resume(bench, &scope, destination).await);
    }
    assert_eq!(given(bench).await.len(), 3);
}

pub(crate) async fn a_delivery_under_way_goes_on_while_its_destination_is_paused(bench: &Workbench) {
    let mut leases = Vec::new();
    for name in ["exchanged", "retried", "dead", "released"] {
        leases.push(bench.reserved(bench.job(name)).await);
    }
    bench.accept(bench.job("next")).await;
    pause(bench, &ALL, "receiver.example").await;
    let (settled, reserved) =
        bench.exchange(vec![(leases.remove(0), Outcome::Complete)], &bench.ask(10)).await;
    assert_eq!(settled, [SettleResult::Applied]);
    assert!(reserved.leases.is_empty() && !reserved.more);
    for (lease, outcome) in leases.into_iter().zip([retry(ms(1)), bury(), release(ms(0))]) {
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
    }
    bench.promote_until(1).await;
    assert!(given(bench).await.is_empty());
    resume(bench, &ALL, "receiver.example").await;
    assert_eq!(given(bench).await.len(), 3);
}

pub(crate) async fn consumers_of_a_topic_are_not_held_by_a_paused_destination(bench: &Workbench) {
    bench.accept(bench.job("push")).await;
    bench.accept(bench.pull_job("pull")).await;
    pause(bench, &ALL, "receiver.example").await;
    assert!(given(bench).await.is_empty());
    assert_eq!(bench.pull(10, LONG).await.jobs.len(), 1);
}

pub(crate) async fn a_resumed_destination_wakes_the_notifiers(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    pause(bench, &ALL, "receiver.example").await;
    assert!(given(bench).await.is_empty());
    let mut wakes = bench.wakes().await;
    resume(bench, &ALL, "receiver.example").await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
}

pub(crate) async fn pausing_and_resuming_a_destination_again_changes_nothing(bench: &Workbench) {
    let name = "receiver.example";
    assert!(!resume(bench, &ALL, name).await);
    for _ in 0..2 {
        pause(bench, &ALL, name).await;
        let paused = bench.store().paused_destinations().await.expect("pauses");
        assert_eq!(paused, BTreeSet::from([pause_of(&ALL, name)]));
        bench.check().await;
    }
    bench.accept(bench.job("a")).await;
    assert!(given(bench).await.is_empty());
    assert!(resume(bench, &ALL, name).await);
    assert!(!resume(bench, &ALL, name).await);
    assert!(bench.store().paused_destinations().await.expect("pauses").is_empty());
    assert_eq!(given(bench).await.len(), 1);
}

pub(crate) async fn a_lane_that_was_emptied_while_its_destination_held_it_is_found_again(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    pause(bench, &ALL, "receiver.example:80").await;
    assert!(given(bench).await.is_empty());
    bench.cancel(&bench.job("a").key).await;
    bench.check().await;
    let job = bench.accept(bench.job("b")).await;
    assert!(given(bench).await.is_empty());
    bench.check().await;
    resume(bench, &ALL, "receiver.example:80").await;
    assert_eq!(given(bench).await, [job.key.to_string()]);
}

pub(crate) async fn more_lanes_than_one_step_takes_are_resumed_and_those_held_otherwise_stay(
    bench: &Workbench,
) {
    const LANES: usize = 1_200;
    let job = |n: usize| bench.job_of(&format!("topic-{n}"), "a");
    for part in (0..LANES).collect::<Vec<_>>().chunks(400) {
        let jobs: Vec<_> = part.iter().map(|n| job(*n)).collect();
        bench.submit(&jobs).await;
    }
    pause(bench, &ALL, "receiver.example").await;
    let other = bench.accept(bench.job("other").to("http://other.example")).await;
    let mut asked = 0;
    loop {
        asked += 1;
        let reserved = bench.reserve(&bench.ask(10)).await;
        if let [lease] = reserved.leases.as_slice() {
            assert_eq!(lease.key, other.key);
            break;
        }
        assert!(reserved.more && asked <= LANES.div_ceil(64) + 1, "{asked} calls");
    }
    let store = bench.store();
    store.pause(&topic("topic-7"), None).await.expect("pause").expect("there is room");
    pause(bench, &ALL, "receiver.example:80").await;
    assert!(resume(bench, &ALL, "receiver.example").await);
    assert!(given(bench).await.is_empty());
    bench.check().await;
    assert!(resume(bench, &ALL, "receiver.example:80").await);
    let mut met = 0;
    while met < LANES - 1 {
        let more = bench.take(100).await.len();
        assert!(more > 0, "{met} of {LANES}");
        met += more;
    }
    assert!(given(bench).await.is_empty());
    assert!(store.resume(&topic("topic-7")).await.expect("resume"));
    assert_eq!(given(bench).await, [job(7).key.to_string()]);
}

pub(crate) async fn another_process_finds_the_destination_paused(bench: &Workbench) {
    pause(bench, &ALL, "receiver.example").await;
    let another = bench.another(bench.options());
    another.prepare().await.expect("the store is fit");
    bench.accept(bench.job("a")).await;
    assert!(another.reserve(bench.shard(), &bench.ask(10)).await.expect("reserve").leases.is_empty());
    let paused = another.paused_destinations().await.expect("pauses");
    assert_eq!(paused, BTreeSet::from([pause_of(&ALL, "receiver.example")]));
}

pub(crate) async fn ready_jobs_of_a_paused_destination_count_as_ready(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    pause(bench, &ALL, "receiver.example").await;
    assert!(bench.take(10).await.is_empty());
    until(job.due.plus(ms(20))).await;
    let held = vec![(bench.shard(), bench.epoch().clone())];
    let gauges = bench.store().gauges(held, &[]).await.remove(0).1;
    let gauge = gauges.expect("the store answers").expect("not fenced").all;
    assert_eq!(gauge.states.ready, 1);
    assert!(gauge.oldest_ready.is_some_and(|age| age >= ms(20) && age <= now().since(job.due)));
}

pub(crate) async fn destinations_beyond_the_limits_are_not_paused(bench: &Workbench) {
    let store = bench.store();
    let paused = async |scope: &TenantScope, n: u64| {
        store.pause_destination(&pause_of(scope, &format!("{n}.example"))).await.expect("pause")
    };
    let of_tenant = u64::from(MAX_PAUSED_DESTINATIONS_OF_TENANT);
    let own = tenant("t");
    for n in 0..of_tenant {
        assert_eq!(paused(&own, n).await, Ok(()), "{n}");
    }
    assert_eq!(paused(&own, of_tenant).await, Err(PauseLimit::Tenant));
    assert_eq!(paused(&own, 0).await, Ok(()), "that is paused already");
    assert_eq!(paused(&tenant("tt"), 0).await, Ok(()));
    for n in 0..MAX_PAUSED_DESTINATIONS - of_tenant - 1 {
        assert_eq!(paused(&ALL, n).await, Ok(()), "{n}");
    }
    let beyond = pause_of(&ALL, "beyond.example");
    assert_eq!(store.pause_destination(&beyond).await.expect("pause"), Err(PauseLimit::Installation));
    assert_eq!(paused(&ALL, 0).await, Ok(()), "that is paused already");
    let all = store.paused_destinations().await.expect("pauses");
    assert!(all.len() as u64 == MAX_PAUSED_DESTINATIONS && !all.contains(&beyond));
    for n in 0..4 {
        assert!(resume(bench, &ALL, &format!("{n}.example")).await);
    }
    // A tenant may have half of the four places that are left: it has one, and may have another one.
    assert_eq!(paused(&tenant("tt"), 1).await, Ok(()));
    assert_eq!(paused(&tenant("tt"), 2).await, Err(PauseLimit::Tenant));
    assert_eq!(store.pause_destination(&beyond).await.expect("pause"), Ok(()));
}

/// The origins and pauses of all pages, each with its counts of delayed, ready, reserved and dead jobs.
async fn page(
    bench: &Workbench,
    spans: &[LaneSpan],
    scope: &TenantScope,
    limit: usize,
) -> Vec<(String, [u64; 4])> {
    let (mut found, mut query) = (Vec::new(), DestinationQuery { after: None, limit, failing: false });
    loop {
        let page = bench.store().destinations(spans, scope, &query).await.expect("a page");
        assert!(page.items.len() <= limit && (page.next.is_none() || page.items.len() == limit), "{page:?}");
        found.extend(page.items.iter().map(|(place, counts)| {
            (place.to_string(), [counts.delayed, counts.ready, counts.reserved, counts.dead])
        }));
        query.after = page.next;
        if query.after.is_none() {
            return found;
        }
    }
}

pub(crate) async fn destinations_come_page_by_page_with_the_sums_of_their_lanes(bench: &Workbench) {
    for state in STATES {
        bench.job_in(state, bench.job_of("one", state.into())).await;
    }
    bench.accept(bench.job_of("~t/two", "a")).await;
    bench.accept(bench.job_of("~tt/two", "a").to("https://b.example").after(LONG)).await;
    bench.accept(bench.job_of("two", "b").to("http://b.example:443").after(LONG)).await;
    bench.accept(bench.job_of("two", "c").to("https://[::1]:8443").after(LONG)).await;
    bench.accept(bench.pull_job("pull")).await;
    pause(bench, &ALL, "idle.example").await;
    pause(bench, &ALL, "b.example").await;
    pause(bench, &ALL, "b.example:80").await;
    pause(bench, &tenant("t"), "own.example:8443").await;
    let item = |name: &str, counts| (name.to_owned(), counts);
    let receiver = |counts| item("http~80~receiver.example", counts);
    let expected = [
        item("https~8443~[::1]", [1, 0, 0, 0]),
        item("~80~b.example", [0; 4]),
        item("http~443~b.example", [1, 0, 0, 0]),
        item("https~443~b.example", [1, 0, 0, 0]),
        item("~0~idle.example", [0; 4]),
        receiver([1, 2, 1, 1]),
    ];
    let every = |scope: &TenantScope| [LaneSpan::Of(scope.clone())];
    for limit in [1, 2, 5, 6, 100] {
        assert_eq!(page(bench, &every(&ALL), &ALL, limit).await, expected, "{limit} at a time");
    }
    let of_t = [item("~8443~own.example", [0; 4]), receiver([0, 1, 0, 0])];
    assert_eq!(page(bench, &every(&tenant("t")), &tenant("t"), 10).await, of_t);
    let of_tt = [item("https~443~b.example", [1, 0, 0, 0])];
    assert_eq!(page(bench, &every(&tenant("tt")), &tenant("tt"), 10).await, of_tt);
    let of_none = [expected[0].clone(), expected[2].clone(), receiver([1, 1, 1, 1])];
    assert_eq!(page(bench, &every(&NONE), &NONE, 10).await, of_none);
    let topics = [LaneSpan::Topic(topic("~t/two"))];
    assert_eq!(page(bench, &topics, &tenant("t"), 10).await, [receiver([0, 1, 0, 0])]);

    let query = DestinationQuery { after: None, limit: 10, failing: false };
    let known = bench.store().destinations(&every(&tenant("tt")), &tenant("tt"), &query).await;
    let names: Vec<_> = known.expect("a page").pauses.iter().map(DestinationPause::name).collect();
    assert_eq!(names, ["b.example", "b.example:80", "idle.example"]);
}

pub(crate) async fn destinations_of_thousands_of_lanes_are_read_in_parts(bench: &Workbench) {
    for part in 0..6 {
        let job = |n: usize| {
            bench
                .job(&format!("{part}-{n}"))
                .to(&format!("http://{}.example", n % 350 + part * 50))
                .after(LONG)
        };
        bench.submit(&(0..400).map(job).collect::<Vec<_>>()).await;
    }
    let found = page(bench, &[LaneSpan::Of(ALL)], &ALL, 250).await;
    let hosts: BTreeSet<_> = found.iter().map(|(name, _)| name).collect();
    let delayed: u64 = found.iter().map(|(_, counts)| counts[0]).sum();
    assert_eq!((found.len(), hosts.len(), delayed), (600, 600, 2400));
}
