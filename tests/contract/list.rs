//! Cases of lists of jobs that have not ended: complete pages, filters, and what holds while jobs move.

use std::collections::{BTreeMap, BTreeSet};

use ringback_core::job::{Context, Headers, Job, JobKey, NewJob, Trace};
use ringback_core::retry::RetryPolicy;
use ringback_core::store_types::{Cursor, Filter, Page, StoreError, StoredJob};
use strum::VariantArray as _;

use super::job_builders::{LONG, With, bury, ms, release, retry};
use super::workbench::Workbench;
use crate::prelude::*;

/// The limit of a page: low, so that there are many pages.
const LOOK: usize = 20;
/// A limit of pages that no case reaches, so that reading always ends.
const MAX_PAGES: usize = 500;

async fn pages(bench: &Workbench, filter: &Filter) -> Vec<Page<Job>> {
    let mut pages = vec![bench.store().page(filter, None, LOOK).await.expect("page")];
    while let Some(from) = pages.last().and_then(|page| page.next) {
        assert!(pages.len() < MAX_PAGES, "the pages do not end");
        pages.push(bench.store().page(filter, Some(from), LOOK).await.expect("page"));
    }
    pages
}

/// All jobs of a filter, each as on the last page that has it.
pub(crate) async fn all(bench: &Workbench, filter: &Filter) -> BTreeMap<String, Job> {
    let jobs = pages(bench, filter).await.into_iter().flat_map(|page| page.items);
    jobs.map(|job| (job.key.to_string(), job)).collect()
}

pub(crate) async fn all_kept(bench: &Workbench) -> BTreeMap<String, StoredJob> {
    let (mut kept, mut from) = (BTreeMap::new(), None);
    for _ in 0..MAX_PAGES {
        let page = bench.store().page_stored(&Filter::default(), from, LOOK).await.expect("page");
        kept.extend(page.items.into_iter().map(|item| (item.job.key.to_string(), item)));
        from = page.next;
        if from.is_none() {
            return kept;
        }
    }
    panic!("the pages do not end");
}

/// Makes jobs in every state, in two topics. Returns those that have not ended, as they are stored.
async fn of_every_kind(bench: &Workbench) -> BTreeMap<String, Job> {
    let topic = |n: u64| if n.is_multiple_of(3) { "third" } else { "others" };
    let job = |n: u64| bench.job_of(topic(n), &format!("job-{n}"));
    let ready: Vec<NewJob> = (0..150).map(job).collect();
    let delayed: Vec<NewJob> = (150..300).map(|n| job(n).after(LONG)).collect();
    bench.submit(&ready).await;
    bench.submit(&delayed).await;
    for job in delayed.iter().take(20) {
        bench.cancel(&job.key).await;
    }
    let mut leases = bench.take(100).await;
    leases.truncate(80);
    let words = [Outcome::Complete, bury(), retry(LONG), release(ms(0))];
    let items = leases.into_iter().zip(words.into_iter().cycle()).collect();
    bench.settle_all(items).await;
    let mut kept = BTreeMap::new();
    for NewJob { key, .. } in ready.into_iter().chain(delayed) {
        let job = bench.get(&key).await;
        if !job.state.is_terminal() {
            kept.insert(key.to_string(), job);
        }
    }
    kept
}

pub(crate) async fn the_pages_have_every_job_that_has_not_ended_as_it_is_kept(bench: &Workbench) {
    let kept = of_every_kind(bench).await;
    let states: BTreeSet<_> = kept.values().map(|job| job.state.to_string()).collect();
    assert_eq!(states.len(), 4, "{states:?}");
    assert_eq!(all(bench, &Filter::default()).await, kept);
}

pub(crate) async fn a_page_reads_about_as_many_jobs_as_its_limit(bench: &Workbench) {
    let kept = of_every_kind(bench).await;
    let pages = pages(bench, &Filter::default()).await;
    assert!(pages.len() >= kept.len() / (3 * LOOK), "{} pages", pages.len());
    for page in pages {
        assert!(page.items.len() <= 3 * LOOK, "{} jobs in a page", page.items.len());
    }
}

pub(crate) async fn the_pages_are_those_of_all_shards(bench: &Workbench) {
    let mut wanted = BTreeSet::new();
    for n in 0..60 {
        let key =
            JobKey { topic: "t".parse().expect("a topic"), id: format!("job-{n}").parse().expect("an id") };
        let job = super::job_builders::new_job(key).after(LONG);
        wanted.insert(job.key.to_string());
        bench.store().submit(bench.store().shard_of(&job.key), &[job]).await.expect("submit");
    }
    let met: BTreeSet<_> = all(bench, &Filter::default()).await.into_keys().collect();
    assert_eq!(met, wanted);
}

pub(crate) async fn the_pages_of_a_filter_have_what_is_wanted_and_nothing_else(bench: &Workbench) {
    let kept = of_every_kind(bench).await;
    let topics = [None, Some("third"), Some("others"), Some("thir"), Some("third.and-more")];
    for topic in topics {
        for state in State::VARIANTS.iter().copied().map(Some).chain([None]) {
            let filter = Filter {
                topic: topic.map(|name| name.parse().expect("a topic")),
                state,
                ..Filter::default()
            };
            let mut wanted = kept.clone();
            wanted.retain(|_, job| {
                topic.is_none_or(|name| job.key.topic.as_str() == name)
                    && state.is_none_or(|state| job.state == state)
            });
            assert_eq!(all(bench, &filter).await, wanted, "{topic:?} {state:?}");
        }
    }
}

pub(crate) async fn a_store_without_jobs_has_pages_without_jobs(bench: &Workbench) {
    let empty = pages(bench, &Filter::default()).await;
    assert!(empty.iter().all(|page| page.items.is_empty()), "{empty:?}");
    bench.job_in(State::Done, bench.job("a")).await;
    bench.job_in(State::Cancelled, bench.job("b")).await;
    assert_eq!(all(bench, &Filter::default()).await, BTreeMap::new());
}

pub(crate) async fn one_wanted_job_among_many_is_met_behind_empty_pages(bench: &Workbench) {
    of_every_kind(bench).await;
    let job = bench.accept(bench.job_of("rare", "job")).await;
    let filter = Filter { topic: Some(job.key.topic.clone()), ..Filter::default() };
    let pages = pages(bench, &filter).await;
    assert!(pages.iter().filter(|page| page.items.is_empty()).count() > 3, "{pages:?}");
    let met: Vec<Job> = pages.into_iter().flat_map(|page| page.items).collect();
    assert!(!met.is_empty() && met.iter().all(|other| *other == job), "{met:?}");
}

pub(crate) async fn what_stays_is_met_while_everything_moves(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..400)
        .map(|n| {
            let job = bench.job(&format!("job-{n}"));
            if n % 2 == 0 { job } else { job.after(ms(n)) }
        })
        .collect();
    bench.submit(&jobs).await;
    let stays = |key: &JobKey| !key.id.as_str().ends_with(['3', '4']) && key.id.as_str().starts_with("job-");
    let mut missing: BTreeSet<_> =
        jobs.iter().filter(|job| stays(&job.key)).map(|job| job.key.to_string()).collect();
    let (mut from, mut round) = (None, 0);
    loop {
        let page = bench.store().page(&Filter::default(), from, LOOK).await.expect("page");
        for job in &page.items {
            missing.remove(&job.key.to_string());
        }
        from = page.next;
        if from.is_none() {
            break;
        }
        round += 1;
        move_on(bench, round, stays).await;
    }
    assert!(round > 5, "{round} pages");
    assert!(missing.is_empty(), "never met: {missing:?}");
}

/// Submits, promotes and settles jobs. Jobs for which `stays` is false are completed.
async fn move_on(bench: &Workbench, round: usize, stays: impl Fn(&JobKey) -> bool) {
    // Fewer jobs than a page holds, because new jobs are listed last and the pages would never end.
    let count = if round <= 15 { round * 10 } else { 0 };
    let come: Vec<NewJob> = (0..count).map(|n| bench.job(&format!("new-{round}-{n}"))).collect();
    bench.submit(&come).await;
    bench.promote(50).await;
    let words = [retry(LONG), release(ms(0)), bury(), retry(ms(0))];
    let settled = bench.take(60).await.into_iter().zip(words.into_iter().cycle());
    let items = settled.map(|(lease, outcome)| {
        let outcome = if stays(&lease.key) { outcome } else { Outcome::Complete };
        (lease, outcome)
    });
    bench.settle_all(items.collect()).await;
}

pub(crate) async fn a_cursor_of_no_shard_is_outdated(bench: &Workbench) {
    let shards = bench.options().shards;
    for text in
        [format!("{shards:x}-0-0"), "ffff-0-0".to_owned(), "ffff-ffffffffffffffff-ffffffff".to_owned()]
    {
        let from: Cursor = text.parse().expect("a cursor");
        let error = bench.store().page(&Filter::default(), Some(from), LOOK).await.expect_err(&text);
        assert!(matches!(error, StoreError::Outdated), "{text}: {error:?}");
        assert!(!error.is_transient());
        let error = bench.store().page_stored(&Filter::default(), Some(from), LOOK).await.expect_err(&text);
        assert!(matches!(error, StoreError::Outdated), "{text}: {error:?}");
    }
}

/// The job with headers, context, a retry policy, a trace, a timeout and a content type.
pub(crate) fn rich(job: NewJob) -> NewJob {
    let entry = |name: &str| vec![(name.to_owned(), "a value".to_owned())];
    let mut job = job.timeout(ms(2500)).content(7).to("https://receiver.example:8443");
    job.delivery.headers = Headers::parse(entry("x-one")).expect("headers");
    job.delivery.context = Context::parse(entry("place")).expect("a context");
    job.delivery.retry = RetryPolicy::preset("default");
    job.delivery.trace = Some(Trace { trace_id: [3; 16], parent_id: [4; 8], flags: 1 });
    job.delivery.body.content_type = Some("application/octet-stream".to_owned());
    job
}

pub(crate) async fn what_is_kept_is_what_was_submitted(bench: &Workbench) {
    let body: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let jobs = [
        bench.job("plain"),
        rich(bench.job("rich")).after(LONG),
        rich(bench.job("large").body(body)).after(LONG),
        bench.job("middle").body(vec![b'm'; 3000]).after(LONG),
        bench.job("none").body(Vec::new()).after(LONG),
    ];
    bench.submit(&jobs).await;
    bench.take(1).await;
    let kept = all_kept(bench).await;
    assert_eq!(kept.len(), jobs.len());
    for job in jobs {
        let item = &kept[&job.key.to_string()];
        assert!(item.delivery == job.delivery, "what {} brought along has changed", job.key);
        assert_eq!(item.content, job.content);
        assert_eq!(item.job, bench.get(&job.key).await);
    }
}

pub(crate) async fn large_jobs_are_spread_over_several_pages(bench: &Workbench) {
    let body = |n| if n % 2 == 0 { noise(n, 200_000).into() } else { vec![n; 200_000] };
    let jobs: Vec<NewJob> = (0..30).map(|n| bench.job(&format!("job-{n}")).body(body(n))).collect();
    for some in jobs.chunks(5) {
        bench.submit(some).await;
    }
    let (mut met, mut from) = (BTreeSet::new(), None);
    loop {
        let page = bench.store().page_stored(&Filter::default(), from, 1000).await.expect("page");
        let bytes: usize = page.items.iter().map(|item| item.delivery.body.bytes.len()).sum();
        assert!(bytes <= 3_500_000, "{bytes} bytes in a page");
        met.extend(page.items.into_iter().map(|item| item.job.key.to_string()));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(met.len(), jobs.len());
}
