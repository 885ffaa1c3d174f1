//! Cases of bulk operations on a filter: jobs are cancelled, run, revived, rescheduled or purged as single calls
//! would, once each, until the operation is stopped.

use std::collections::BTreeMap;

use ringback_core::destination::Destination;
use ringback_core::job::{Due, Job, JobKey, NewJob};
use ringback_core::store_types::{
    Bulk, BulkAction, BulkId, BulkStart, BulkState, BulkStep, BulkTarget, Filter, Move, TimeRange,
};

use super::job_builders::{LONG, ORIGIN, STATES, With, bury, ms, retry, topic};
use super::list::all;
use super::workbench::{Workbench, now, until};
use crate::prelude::*;

/// A delay that leads to another slot of time than [`LONG`].
const LATER: Duration = Duration::from_secs(86_400);
const ACTIONS: [BulkAction; 6] = [
    BulkAction::Cancel,
    BulkAction::Run,
    BulkAction::Revive,
    BulkAction::Reschedule(Due::In(LATER)),
    BulkAction::Reschedule(Due::In(Duration::ZERO)),
    BulkAction::Purge,
];

async fn begin(bench: &Workbench, filter: Filter, action: BulkAction) -> Bulk {
    let target = BulkTarget::Jobs(filter.into(), action);
    match bench.store().start_bulk(bench.token(), &target, 50).await.expect("begin") {
        BulkStart::Bulk(bulk) => bulk,
        BulkStart::TooMany => panic!("too many go on"),
    }
}

async fn change(bench: &Workbench, bulk: &Bulk, keys: &[JobKey]) -> BulkStep {
    let BulkTarget::Jobs(filter, action) = bulk.wanted() else { panic!("{bulk:?}") };
    bench.store().change_many(bench.shard(), bulk.id, &filter, action, keys).await.expect("change")
}

pub(super) async fn look(bench: &Workbench, id: BulkId) -> Bulk {
    bench.store().bulk(id).await.expect("look").expect("it is known")
}

fn tagged(tag: &str) -> Filter {
    Filter { tag: Some(tag.to_owned()), ..Filter::default() }
}

/// Makes two jobs in each state for each tag, one with a large body. Returns their keys by name, the same for each tag.
async fn in_each_state<const N: usize>(
    bench: &Workbench,
    round: usize,
    tags: [&str; N],
) -> [BTreeMap<String, JobKey>; N] {
    let mut keys = [const { BTreeMap::new() }; N];
    for state in STATES {
        for ((n, tag), keys) in tags.iter().enumerate().zip(&mut keys) {
            for m in 0..2 {
                let name = format!("{state}-{m}");
                let job = bench.job_of(&format!("topic-{n}"), &format!("{name}-{round}"));
                let job = bench.job_in(state, job.tags(tag).body(noise(b'7', 5000 * m).into())).await;
                keys.insert(name, job.key);
            }
        }
    }
    keys
}

/// The parts of a job that must agree if two jobs were changed in the same way; `None` if the job is gone.
async fn seen(bench: &Workbench, key: &JobKey) -> Option<(State, u32, u32, bool, bool)> {
    let job = bench.store().get(key).await.expect("get")?;
    let in_ms = now().as_millis();
    Some((job.state, job.attempts, job.failures, job.last.is_some(), job.due.as_millis() > in_ms + 3_600_000))
}

async fn alone(bench: &Workbench, action: BulkAction, key: &JobKey) {
    let token = bench.token();
    let what = match action {
        BulkAction::Cancel => {
            bench.cancel(key).await;
            return;
        }
        BulkAction::Run => Move::Run(token),
        BulkAction::Revive => Move::Revive(token),
        BulkAction::Reschedule(due) => Move::Reschedule(due, token),
        BulkAction::Purge => Move::Purge,
    };
    let store = bench.store();
    let moved = match what {
        Move::Run(token) => store.run(key, token).await,
        Move::Revive(token) => store.revive(key, token).await,
        Move::Reschedule(due, token) => store.reschedule(key, due, token).await,
        Move::Purge => store.purge(key).await,
    };
    moved.expect("move");
}

pub(crate) async fn each_job_is_changed_as_a_call_for_it_alone_would(bench: &Workbench) {
    for (n, action) in ACTIONS.into_iter().enumerate() {
        let [many, twins, others] = in_each_state(bench, n, ["a:1 b:2", "c:3", "a:11 a: b"]).await;
        let mut untouched = BTreeMap::new();
        for key in others.values() {
            untouched.insert(key.to_string(), bench.store().get(key).await.expect("get"));
        }
        let bulk = begin(bench, tagged("a:1"), action).await;
        let keys: Vec<_> = many.values().chain(others.values()).cloned().collect();
        let changed = change(bench, &bulk, &keys).await;
        let wanted = 2 * action.states().len() as u64;
        assert_eq!(changed, BulkStep::Jobs(wanted), "{action:?}");
        assert_eq!(look(bench, bulk.id).await, Bulk { changed: wanted, ..bulk.clone() });
        for (name, key) in &twins {
            alone(bench, action, key).await;
            assert_eq!(seen(bench, &many[name]).await, seen(bench, key).await, "{action:?} {name}");
        }
        for (key, job) in untouched {
            let key = keys.iter().find(|other| other.to_string() == key).expect("it is there");
            assert_eq!(bench.store().get(key).await.expect("get"), job, "{action:?}");
        }
        // The same step again changes nothing.
        assert_eq!(change(bench, &bulk, &keys).await, BulkStep::Jobs(0), "{action:?}");
        // Cancels these jobs, because the next round reserves jobs of its own.
        for key in keys.iter().chain(twins.values()) {
            bench.cancel(key).await;
        }
    }
}

pub(crate) async fn a_job_that_does_not_fit_any_more_when_it_is_changed_stays(bench: &Workbench) {
    let delayed = Filter { state: Some(State::Delayed), ..tagged("a") };
    let bulk = begin(bench, delayed, BulkAction::Cancel).await;
    until(bulk.started.plus(ms(2))).await;
    let early: Vec<NewJob> = (0..3).map(|n| bench.job(&format!("job-{n}")).tags("a").after(LONG)).collect();
    bench.submit(&early).await;
    let keys: Vec<_> = early.iter().map(|job| job.key.clone()).collect();
    // These jobs came after the operation had begun.
    assert_eq!(change(bench, &bulk, &keys).await, BulkStep::Jobs(0));
    let bulk = begin(bench, Filter { state: Some(State::Delayed), ..tagged("a") }, BulkAction::Cancel).await;
    bench.store().run(&keys[0], bench.token()).await.expect("run");
    assert_eq!(change(bench, &bulk, &keys).await, BulkStep::Jobs(2));
    assert_eq!(bench.state(&keys[0]).await, Some(State::Ready));
    assert_eq!(bench.state(&keys[1]).await, Some(State::Cancelled));
    // A job that takes the place of another came after it began.
    bench.cancel(&keys[0]).await;
    let old = bench.job_in(State::Dead, bench.job("again").tags("a")).await;
    let bulk = begin(bench, tagged("a"), BulkAction::Cancel).await;
    until(bulk.started.plus(ms(2))).await;
    bench.store().purge(&old.key).await.expect("purge");
    let again = bench.accept(bench.job("again").tags("a").after(LONG)).await;
    assert_eq!(again.key, old.key);
    assert_eq!(change(bench, &bulk, std::slice::from_ref(&again.key)).await, BulkStep::Jobs(0));
    assert_eq!(bench.state(&again.key).await, Some(State::Delayed));
}

pub(crate) async fn a_job_is_moved_once_by_an_operation_even_if_it_fits_again(bench: &Workbench) {
    let job = bench.accept(bench.job("a").tags("x").after(LONG)).await;
    let bulk = begin(bench, tagged("x"), BulkAction::Run).await;
    let keys = [job.key.clone()];
    assert_eq!(change(bench, &bulk, &keys).await, BulkStep::Jobs(1));
    let lease = bench.take(1).await.remove(0);
    bench.settle_all(vec![(lease, retry(LONG))]).await;
    assert_eq!(bench.state(&job.key).await, Some(State::Delayed));
    assert_eq!(change(bench, &bulk, &keys).await, BulkStep::Jobs(0));
    assert_eq!(bench.state(&job.key).await, Some(State::Delayed));
    let other = begin(bench, tagged("x"), BulkAction::Run).await;
    assert_eq!(change(bench, &other, &keys).await, BulkStep::Jobs(1));
}

pub(crate) async fn a_stopped_operation_changes_nothing_more(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..4).map(|n| bench.job(&format!("job-{n}")).tags("x").after(LONG)).collect();
    bench.submit(&jobs).await;
    let dead = bench.job_in(State::Dead, bench.job("dead").tags("x")).await;
    let keys: Vec<_> = jobs.iter().map(|job| job.key.clone()).collect();
    for action in ACTIONS {
        let bulk = begin(bench, tagged("x"), action).await;
        bench.store().stop_bulk(bulk.id).await.expect("stop").expect("it is known");
        let keys = [dead.key.clone(), keys[0].clone()];
        assert_eq!(change(bench, &bulk, &keys).await, BulkStep::Over, "{action:?}");
    }
    let bulk = begin(bench, tagged("x"), BulkAction::Cancel).await;
    assert_eq!(change(bench, &bulk, &keys[..1]).await, BulkStep::Jobs(1));
    let stopped = bench.store().stop_bulk(bulk.id).await.expect("stop").expect("it is known");
    assert_eq!((stopped.state, stopped.changed), (BulkState::Stopped, 1));
    assert_eq!(change(bench, &bulk, &keys[1..]).await, BulkStep::Over);
    for key in &keys[1..] {
        assert_eq!(bench.state(key).await, Some(State::Delayed));
    }
}

/// Makes jobs of several topics, hosts, tags and times in every state that a list shows. Returns each with its origin.
async fn different(bench: &Workbench) -> Vec<(Job, String)> {
    let origins = [ORIGIN, "http://other.example:8080", "https://other.example", "http://[::1]:8080"];
    let tags = ["", "customer:42", "customer:4 eu", "eu customer:42 x"];
    let topics = ["one", "two", "~acme/one"];
    let mut keys = Vec::new();
    for n in 0..96_usize {
        let (origin, id) = (origins[n % 4], format!("{}-{n}", ["order", "refund"][n % 2]));
        let new =
            super::job_builders::new_job(bench.key(topics[n % 3], &id)).to(origin).tags(tags[n / 4 % 4]);
        let new = if n.is_multiple_of(5) {
            new.after(LONG * u32::try_from(1 + n % 3).expect("small"))
        } else {
            new
        };
        keys.push((bench.accept(new).await.key, origin.to_owned()));
    }
    let leases = bench.take(40).await;
    let outcomes = leases.into_iter().enumerate().filter_map(|(n, lease)| match n % 3 {
        0 => Some((lease, bury())),
        1 => Some((lease, retry(LONG))),
        _ => None,
    });
    bench.settle_all(outcomes.collect()).await;
    let mut jobs = Vec::new();
    for (key, origin) in keys {
        jobs.push((bench.get(&key).await, origin));
    }
    jobs
}

pub(crate) async fn the_pages_of_each_filter_have_what_fits_and_nothing_else(bench: &Workbench) {
    let jobs = different(bench).await;
    let some = |n: usize| &jobs[n].0;
    let failed = jobs.iter().find_map(|(job, _)| Some(job.last.as_ref()?.at));
    let range = |at| TimeRange::new(Some(at), None);
    let before = |at| TimeRange::new(None, Some(at));
    let of = |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    };
    let scope = |name: Option<&str>| {
        let tenant = name.map(|name| name.parse().expect("a tenant"));
        of(&|f| f.scope = ringback_core::job::TenantScope::One(tenant.clone()))
    };
    let host = |host: &str| of(&|f| f.host = Some(Destination::parse(host).expect("a host")));
    let mut filters = vec![Filter::default(), scope(None), scope(Some("acme")), scope(Some("acm"))];
    filters
        .extend(["receiver.example", "other.example", "other.example:8080", "other.example:443"].map(host));
    filters.extend(
        ["receiver.example:80", "receiver.exampl", "example", "[::1]", "[::1]:8080", "[::1]:80"].map(host),
    );
    filters.extend(["customer:42", "customer:4", "eu", "x", "customer"].map(tagged));
    filters.extend(["order-", "refund-1", "x"].map(|text| of(&|f| f.id_prefix = Some(text.to_owned()))));
    filters.push(of(&|f| f.reason = Some("exhausted".to_owned())));
    filters.push(of(&|f| f.status = Some(503)));
    filters.push(of(&|f| f.status = Some(500)));
    filters.push(of(&|f| f.error = Some("e".to_owned())));
    filters.push(of(&|f| f.among = vec![topic("one"), topic("~acme/one")]));
    filters.extend([1, 20, 50].map(|n| of(&|f| f.due = range(some(n).due))));
    filters.extend([1, 20, 50].map(|n| of(&|f| f.due = before(some(n).due))));
    filters.extend([1, 20, 50].map(|n| of(&|f| f.created = range(some(n).created))));
    filters.extend([1, 20, 50].map(|n| of(&|f| f.created = before(some(n).created))));
    filters.extend(failed.map(|at| of(&|f| f.failed = range(at))));
    filters.extend(failed.map(|at| of(&|f| f.failed = before(at))));
    let narrow: Vec<_> =
        filters.iter().map(|filter| Filter { topic: Some(topic("one")), ..filter.clone() }).collect();
    let dead: Vec<_> =
        filters.iter().map(|filter| Filter { state: Some(State::Dead), ..filter.clone() }).collect();
    let mut counts = BTreeMap::new();
    for filter in filters.into_iter().chain(narrow).chain(dead) {
        let fits = jobs.iter().filter(|(job, origin)| filter.matches(job, origin));
        let wanted: BTreeMap<_, _> = fits.map(|(job, _)| (job.key.to_string(), job.clone())).collect();
        *counts.entry(wanted.len()).or_insert(0) += 1;
        assert_eq!(all(bench, &filter).await, wanted, "{filter:?}");
    }
    assert!(counts.len() > 10, "the filters differ: {counts:?}");
}
