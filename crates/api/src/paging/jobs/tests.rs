//! Tests of pages of jobs over a scripted store, whose jobs are in buckets that are scanned as a whole.

use std::cell::Cell;
use std::collections::BTreeSet;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Job, JobKey, Tags};
use ringback_core::state::State;

use super::*;

/// Buckets of numbered jobs. The filter matches multiples of `wanted`.
struct Buckets {
    buckets: Vec<Vec<usize>>,
    wanted: usize,
    calls: Cell<usize>,
}

fn buckets(sizes: impl IntoIterator<Item = usize>, wanted: usize) -> Buckets {
    let mut numbers = 0..;
    let buckets = sizes.into_iter().map(|size| numbers.by_ref().take(size).collect()).collect();
    Buckets { buckets, wanted, calls: Cell::new(0) }
}

fn job(number: usize) -> ListedJob {
    let key = JobKey { topic: "t".parse().unwrap(), id: number.to_string().parse().unwrap() };
    let (due, created) = (Timestamp::default(), Timestamp::default());
    let job = Job {
        key,
        state: State::Ready,
        due,
        created,
        attempts: 0,
        failures: 0,
        last: None,
        reason: None,
        tags: Tags::default(),
    };
    ListedJob { job, origin: Box::default() }
}

fn cursor(bucket: usize) -> Cursor {
    format!("0-{bucket:x}-1").parse().unwrap()
}

fn bucket(cursor: Cursor) -> usize {
    let text = cursor.to_string();
    usize::from_str_radix(text.split('-').nth(1).unwrap(), 16).unwrap()
}

impl Buckets {
    fn page(&self, at: Option<Cursor>, look: usize) -> Page<ListedJob> {
        self.calls.set(self.calls.get() + 1);
        let (mut at, mut seen, mut items) = (at.map_or(0, bucket), 0, Vec::new());
        while seen < look && at < self.buckets.len() {
            let bucket = &self.buckets[at];
            seen += bucket.len();
            items.extend(bucket.iter().filter(|number| **number % self.wanted == 0).copied().map(job));
            at += 1;
        }
        Page { items, next: (at < self.buckets.len()).then(|| cursor(at)), examined: seen }
    }

    async fn fill(&self, from: Option<ListCursor>, limit: usize) -> (Vec<String>, Option<ListCursor>) {
        let page = async |at, look| Ok(self.page(at, look));
        let (jobs, next) = list_jobs(page, from, PageLimits::of_jobs(limit)).await.unwrap();
        assert!(jobs.len() <= limit, "{} jobs", jobs.len());
        (jobs.iter().map(|job| job.job.key.id.to_string()).collect(), next)
    }

    /// Reads all pages of at most `limit` jobs, and checks that each cursor stays the same when written and parsed.
    async fn all(&self, limit: usize) -> Vec<Vec<String>> {
        let (mut pages, mut from) = (Vec::new(), None);
        loop {
            let (page, next) = self.fill(from, limit).await;
            pages.push(page);
            assert!(pages.len() < 2_000, "it does not end");
            let Some(next) = next else { return pages };
            from = Some(next.to_string().parse().unwrap());
            assert_eq!(from, Some(next));
        }
    }

    fn wanted(&self) -> BTreeSet<String> {
        self.buckets.iter().flatten().filter(|n| **n % self.wanted == 0).map(usize::to_string).collect()
    }
}

#[tokio::test]
async fn every_job_is_on_one_page_and_no_page_is_too_large() {
    let shapes: [Vec<usize>; 6] =
        [vec![1; 120], vec![0, 3, 0, 7, 1, 30, 2, 0], vec![60], vec![], vec![2; 300], vec![40; 9]];
    for shape in shapes {
        for wanted in [1, 3, 50] {
            for limit in [1, 2, 7, 100, 1000] {
                let store = buckets(shape.clone(), wanted);
                let pages = store.all(limit).await;
                let found: Vec<_> = pages.concat();
                assert_eq!(found.len(), store.wanted().len(), "{shape:?} {wanted} {limit}");
                assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), store.wanted());
            }
        }
    }
}

#[tokio::test]
async fn pages_are_full_and_take_few_calls() {
    let store = buckets([2; 5_000], 1);
    let pages = store.all(100).await;
    let (last, full) = pages.split_last().unwrap();
    assert!(full.iter().all(|page| page.len() >= 98), "{:?}", full.iter().map(Vec::len).collect::<Vec<_>>());
    assert!(last.len() <= 100);
    assert!(store.calls.get() < 8 * pages.len(), "{} calls for {} pages", store.calls.get(), pages.len());
    // Few match, so that the scans grow.
    let store = buckets([2; 5_000], 1_000);
    assert_eq!(store.all(10).await.concat().len(), 10);
    assert!(store.calls.get() < 130, "{} calls", store.calls.get());
}

#[tokio::test(start_paused = true)]
async fn a_page_that_takes_long_is_returned_though_it_is_not_full() {
    let store = buckets([1; 10_000], 20_000);
    let page = async |at, look| {
        // Each call takes this long; the paused clock does not move otherwise.
        tokio::time::advance(Duration::from_millis(200)).await;
        Ok(store.page(at, look))
    };
    let start = Instant::now();
    let (jobs, next) = list_jobs(page, None, PageLimits::of_jobs(10)).await.unwrap();
    assert_eq!(jobs.len(), 1, "the first job, which every number is a multiple for");
    assert!(next.is_some());
    assert_eq!(start.elapsed(), Duration::from_millis(600));
}

#[tokio::test]
async fn a_page_ends_once_its_jobs_are_heavy_enough() {
    let store = buckets([1; 300], 1);
    let (mut found, mut from, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let page = async |at, look| Ok(store.page(at, look));
        let limits = PageLimits { jobs: 1000, scan: 10, weigh: |_: &ListedJob| MAX_PAGE_BYTES / 25 + 1 };
        let (jobs, next) = list_jobs(page, from, limits).await.unwrap();
        assert!(jobs.len() <= 30, "{} jobs: 25 weigh enough, and a scan has 10", jobs.len());
        found.extend(jobs.iter().map(|job| job.job.key.id.to_string()));
        pages += 1;
        from = next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!((found, pages), (store.wanted(), 10));
}

#[tokio::test]
async fn no_job_is_skipped_when_others_join_its_bucket() {
    let mut store = buckets([8, 1, 1], 1);
    let (first, next) = store.fill(None, 5).await;
    // The listed jobs of the first bucket are gone, so that the next scan goes further.
    let given: BTreeSet<_> = first.iter().cloned().collect();
    store.buckets[0].clear();
    let mut found = given.clone();
    let mut from = next;
    while let Some(place) = from {
        let (page, next) = store.fill(Some(place), 5).await;
        found.extend(page);
        from = next;
    }
    assert!(["8", "9"].iter().all(|id| found.contains(*id)), "{found:?}");
}

#[test]
fn a_cursor_can_be_written_and_parsed_and_others_are_refused() {
    for text in ["0-1-2", "0-1-2..00112233445566778899aabb", ".1-0-2.00112233445566778899aabb"] {
        assert_eq!(text.parse::<ListCursor>().unwrap().to_string(), text);
    }
    let long = "00112233445566778899aabb";
    for text in ["", ".", "..", "..x", "0-1-2.", "0-1-2..0011", "x..".to_owned().as_str(), "0-1-2...", "1"] {
        assert!(text.parse::<ListCursor>().is_err(), "{text}");
    }
    assert!(format!("0-1-2..+{}", &long[1..]).parse::<ListCursor>().is_err());
    assert!(format!("0-1-2.x.{long}").parse::<ListCursor>().is_err());
}

#[test]
fn random_texts_are_no_cursors_or_are_read_as_they_are_written() {
    let samples = ["2-0-0", "2-0-0.3-ff-1.000102030405060708090a0b", "..000102030405060708090a0b"];
    ringback_fuzz::run_texts(&samples, |text| {
        if let Ok(cursor) = text.parse::<ListCursor>() {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    });
}
