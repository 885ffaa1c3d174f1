//! Cases of lists by a filter that only dead jobs match: pages read only dead jobs.

use std::collections::{BTreeMap, BTreeSet};

use ringback_core::job::{Job, NewJob};
use ringback_core::state::State;
use ringback_core::store_types::{Cursor, Filter, StoreError};

use super::dead_letters::{bring, jobs};
use super::job_builders::{LONG, TOPIC, With};
use super::workbench::Workbench;

/// A limit of pages that no case reaches, so that reading always ends.
const MAX_PAGES: usize = 500;

fn dead() -> Filter {
    Filter { state: Some(State::Dead), ..Filter::default() }
}

fn with_reason(reason: &str) -> Filter {
    Filter { reason: Some(reason.to_owned()), ..Filter::default() }
}

/// Makes 60 dead jobs of one reason, many of one millisecond, 12 of another topic and reason, and 200 delayed jobs.
async fn some_of_many(bench: &Workbench) {
    bring(bench, &jobs(bench, TOPIC, "dead", 60), "exhausted").await;
    bring(bench, &jobs(bench, "other", "refused", 12), "rejected").await;
    let delayed: Vec<_> = (0..200).map(|n| bench.job(&format!("delayed-{n}")).after(LONG)).collect();
    bench.submit(&delayed).await;
}

/// The jobs of all pages with the limit `look`, in order, and how many were examined. Calls `between` for each page.
pub(super) async fn read(
    bench: &Workbench,
    filter: &Filter,
    look: usize,
    mut between: impl AsyncFnMut(&[Job]),
) -> (Vec<Job>, usize) {
    let (mut found, mut examined, mut from) = (Vec::new(), 0, None);
    for _ in 0..MAX_PAGES {
        let page = bench.store().page(filter, from, look).await.expect("a page");
        between(&page.items).await;
        found.extend(page.items);
        examined += page.examined;
        from = page.next;
        if from.is_none() {
            return (found, examined);
        }
    }
    panic!("the pages do not end");
}

/// A cursor at the start of the bench's shard.
fn start(bench: &Workbench) -> Cursor {
    Cursor { shard: bench.shard().0, ..Cursor::START }
}

fn names(jobs: &[Job]) -> BTreeSet<String> {
    jobs.iter().map(|job| job.key.to_string()).collect()
}

pub(crate) async fn the_pages_look_at_dead_jobs_alone(bench: &Workbench) {
    some_of_many(bench).await;
    for look in [1, 2, 7, 500] {
        for (filter, fitting) in [
            (dead(), 72),
            (with_reason("exhausted"), 60),
            (with_reason("rejected"), 12),
            (Filter { topic: Some("other".parse().expect("a topic")), ..dead() }, 12),
        ] {
            let (found, examined) = read(bench, &filter, look, async |_| ()).await;
            assert_eq!(
                (found.len(), names(&found).len(), examined),
                (fitting, fitting, 72),
                "{look} at a time"
            );
            assert!(found.iter().all(|job| filter.matches(job, "")), "{filter:?}");
        }
        let kept = bench.store().page_stored(&dead(), Some(start(bench)), look).await.expect("a page");
        assert!(kept.items.len() >= look.min(4), "{} of {look} jobs", kept.items.len());
        assert!(kept.items.iter().all(|kept| kept.job.state == State::Dead), "{:?}", kept.items);
    }
    let other = Filter { state: Some(State::Delayed), ..with_reason("exhausted") };
    let none = read(bench, &other, 50, async |_| ()).await.0;
    assert_eq!(none, [], "a delayed job has no reason");
    for (filter, count) in [(dead(), Some(72)), (with_reason("rejected"), Some(72)), (other, None)] {
        assert_eq!(bench.store().indexed_jobs(&filter).await.expect("a count"), count, "{filter:?}");
    }
}

pub(crate) async fn those_that_stay_dead_are_met_while_others_are_revived(bench: &Workbench) {
    some_of_many(bench).await;
    let (all, _) = read(bench, &dead(), 100, async |_| ()).await;
    let (stay, go): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(n, _)| n % 3 == 0);
    let mut go: Vec<_> = go.into_iter().map(|(_, job)| job.key.clone()).collect();
    let (found, _) = read(bench, &dead(), 4, async |_: &[Job]| {
        // Revives jobs at both ends of the list, so that listed and unlisted jobs are gone.
        for key in [go.pop(), (!go.is_empty()).then(|| go.remove(0))].into_iter().flatten() {
            bench.store().revive(&key, bench.token()).await.expect("revive");
        }
    })
    .await;
    let met = names(&found);
    let missed: Vec<_> =
        stay.into_iter().map(|(_, job)| job.key.to_string()).filter(|name| !met.contains(name)).collect();
    assert_eq!(missed, [""; 0]);
}

pub(crate) async fn jobs_that_a_place_does_not_tell_apart_are_on_one_page(bench: &Workbench) {
    // Of 4,000 jobs, more than 100 share the first two bytes of their locators with another job.
    let mut by_begin: BTreeMap<[u8; 2], Vec<NewJob>> = BTreeMap::new();
    for job in jobs(bench, TOPIC, "job", 4000) {
        let [a, b, ..] = job.key.locator().0;
        by_begin.entry([a, b]).or_default().push(job);
    }
    let alike: Vec<_> = by_begin.into_values().filter(|alike| alike.len() > 1).flatten().collect();
    assert!(alike.len() > 100, "{}", alike.len());
    bring(bench, &alike, "exhausted").await;
    for look in [1, 3] {
        let (found, examined) = read(bench, &dead(), look, async |_| ()).await;
        let names = names(&found).len();
        assert_eq!(
            (found.len(), names, examined),
            (alike.len(), alike.len(), alike.len()),
            "{look} at a time"
        );
    }
}

pub(crate) async fn a_cursor_of_dead_jobs_is_refused_where_others_fit(bench: &Workbench) {
    some_of_many(bench).await;
    let page = bench.store().page(&dead(), Some(start(bench)), 5).await.expect("a page");
    let from = page.next.expect("there are more");
    let refused = bench.store().page(&Filter::default(), Some(from), 5).await;
    assert!(matches!(refused, Err(StoreError::Outdated)), "{refused:?}");
    let read_on = bench.store().page(&dead(), Some(from), 500).await.expect("a page");
    let met: BTreeSet<_> = names(&page.items).union(&names(&read_on.items)).cloned().collect();
    assert_eq!((met.len(), page.items.len() + read_on.items.len()), (72, 72));
}
