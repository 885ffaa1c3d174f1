//! Cases of failing destinations: reports of all processes are added up in one list, a success ends a failure, and
//! pages show it.

use ringback_core::breaker::Counts;
use ringback_core::clock::Timestamp;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{
    DestinationQuery, DestinationReport, FailingDestination, Failures, LaneSpan,
};

use super::job_builders::{LONG, With};
use super::workbench::{Workbench, now};

const ALL: TenantScope = TenantScope::All;
const AT_RECEIVER: &str = "http://receiver.example";

fn tenant(name: &str) -> TenantScope {
    TenantScope::One(Some(name.parse().expect("a tenant")))
}

fn report_of(origin: &str) -> DestinationReport {
    DestinationReport {
        tenant: None,
        origin: origin.into(),
        failures: None,
        success: None,
        counts: Counts::default(),
        rate: None,
        slow_until: None,
    }
}

fn failed(tenant: Option<&str>, origin: &str, at: Timestamp, status: u16) -> DestinationReport {
    let tenant = tenant.map(|tenant| tenant.parse().expect("a tenant"));
    let failures = Some(Failures::new(at, Some(status), None));
    DestinationReport { tenant, failures, ..report_of(origin) }
}

fn succeeded(origin: &str, at: Timestamp) -> DestinationReport {
    DestinationReport { success: Some(at), ..report_of(origin) }
}

fn earlier(seconds: u64) -> Timestamp {
    Timestamp::from_millis(now().as_millis() - seconds * 1_000)
}

async fn report(bench: &Workbench, reports: &[DestinationReport]) {
    assert!(bench.store().report_destinations(reports, true).await.expect("a report").is_some());
}

async fn failing(bench: &Workbench, scope: &TenantScope) -> Vec<FailingDestination> {
    bench.store().failing_destinations(scope).await.expect("a list")
}

pub(crate) async fn failures_of_a_destination_are_one_until_a_success_ends_them(bench: &Workbench) {
    assert_eq!(failing(bench, &ALL).await, []);
    let (first, last) = (earlier(60), earlier(30));
    report(bench, &[succeeded(AT_RECEIVER, earlier(70))]).await;
    assert_eq!(failing(bench, &ALL).await, []);
    report(bench, &[failed(None, AT_RECEIVER, last, 503)]).await;
    report(bench, &[failed(None, AT_RECEIVER, first, 500), failed(Some("t"), "http://other", last, 400)])
        .await;
    let mut both = Failures::new(first, Some(500), None);
    both.add(&Failures::new(last, Some(503), None));
    let found = failing(bench, &TenantScope::One(None)).await;
    let expected = FailingDestination { tenant: None, origin: AT_RECEIVER.into(), failures: both };
    assert_eq!(found, [expected]);
    assert_eq!(failing(bench, &tenant("t")).await.len(), 1);
    // Another process reads the same list.
    let other = bench.another(bench.options());
    other.prepare().await.expect("the store is fit");
    assert_eq!(other.failing_destinations(&ALL).await.expect("a list").len(), 2);
    report(bench, &[succeeded(AT_RECEIVER, earlier(10))]).await;
    let left = failing(bench, &ALL).await;
    assert_eq!(left.iter().map(|one| &*one.origin).collect::<Vec<_>>(), ["http://other"]);
}

pub(crate) async fn reports_of_many_processes_at_once_are_all_counted(bench: &Workbench) {
    let at = earlier(5);
    let reports = async |n: u64| {
        let store = bench.another(bench.options());
        store.prepare().await.expect("the store is fit");
        for _ in 0..8 {
            let own = failed(None, &format!("http://{n}"), at, 500);
            while store
                .report_destinations(&[failed(None, AT_RECEIVER, at, 500), own.clone()], true)
                .await
                .expect("it")
                .is_none()
            {}
        }
    };
    tokio::join!(reports(0), reports(1), reports(2), reports(3));
    let found = failing(bench, &ALL).await;
    let attempts: Vec<_> = found.iter().map(|one| (&*one.origin, one.failures.attempts())).collect();
    let expected = [("http://0", 8), ("http://1", 8), ("http://2", 8), ("http://3", 8), (AT_RECEIVER, 32)];
    assert_eq!(attempts, expected);
}

pub(crate) async fn pages_of_destinations_show_which_fail_and_can_be_of_them_alone(bench: &Workbench) {
    for host in ["a", "b", "c", "d"] {
        bench.accept(bench.job_of("one", host).to(&format!("http://{host}.example")).after(LONG)).await;
    }
    bench.accept(bench.job_of("~t/two", "a").to("http://b.example").after(LONG)).await;
    let at = earlier(5);
    let of_t = failed(Some("t"), "http://b.example", earlier(9), 404);
    let of_none = ["b", "d", "gone"].map(|host| failed(None, &format!("http://{host}.example"), at, 500));
    report(bench, &[vec![of_t], of_none.to_vec()].concat()).await;
    let page = async |scope: &TenantScope, failing| {
        let (query, spans) =
            (DestinationQuery { after: None, limit: 10, failing }, [LaneSpan::Of(scope.clone())]);
        let page = bench.store().destinations(&spans, scope, &query).await.expect("a page");
        let failing =
            |place| page.failing.get(place).map(|failures| (failures.attempts(), failures.last_status()));
        page.items.keys().map(|place| (place.host.to_string(), failing(place))).collect::<Vec<_>>()
    };
    let item = |host: &str, failing| (format!("{host}.example"), failing);
    let (b, d) = (item("b", Some((2, Some(500)))), item("d", Some((1, Some(500)))));
    assert_eq!(page(&ALL, false).await, [item("a", None), b.clone(), item("c", None), d.clone()]);
    assert_eq!(page(&ALL, true).await, [b, d]);
    assert_eq!(page(&tenant("t"), true).await, [item("b", Some((1, Some(404))))]);
    assert_eq!(page(&tenant("tt"), true).await, []);
    let paged = DestinationQuery { after: None, limit: 1, failing: true };
    let first = bench.store().destinations(&[LaneSpan::Of(ALL)], &ALL, &paged).await.expect("a page");
    let paged = DestinationQuery { after: first.next, ..paged };
    let second = bench.store().destinations(&[LaneSpan::Of(ALL)], &ALL, &paged).await.expect("a page");
    let hosts: Vec<_> = second.items.keys().map(|place| &*place.host).collect();
    assert_eq!((hosts, second.next), (vec!["d.example"], None));
}
