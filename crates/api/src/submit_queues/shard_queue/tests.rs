//! Tests of the queue of a shard with jobs whose store call takes a second and records what it has got.

use std::sync::Mutex;

use futures_util::future::join_all;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::metrics::noop::NoopMeterProvider;
use ringback_core::clock::SystemClock;
use ringback_core::job::NewJob;
use ringback_core::store_types::{Limit, Options, StoreError};
use ringback_store::{Memory, settings};
use tokio::time::{Instant, timeout};

use super::*;
use crate::limits::Deadline;
use crate::state::tests::{job, unprepared};
use crate::submit_queues::SubmitQueues;

type Calls = Arc<Mutex<Vec<Vec<u32>>>>;

#[derive(Clone)]
struct TestJob {
    number: u32,
    job: NewJob,
    calls: Calls,
}

/// The store call of this job panics.
const UNLUCKY: u32 = 13;
/// The store call of this job never ends.
const ENDLESS: u32 = 99;
/// The store call of this job returns no result.
const FORGOTTEN: u32 = 404;

impl QueuedJob for TestJob {
    const QUEUE: &'static str = "tests";

    fn job(&self) -> &NewJob {
        &self.job
    }

    async fn store(_: &Store, _: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        let numbers: Vec<_> = jobs.iter().map(|job| job.number).collect();
        jobs[0].calls.lock().unwrap().push(numbers.clone());
        sleep(Duration::from_secs(1)).await;
        assert!(!numbers.contains(&UNLUCKY), "unlucky");
        if numbers.contains(&ENDLESS) {
            std::future::pending::<()>().await;
        }
        let jobs = jobs.iter().filter(|job| job.number != FORGOTTEN);
        Ok(jobs.map(|job| Submitted::refused(Limit::Topics, &job.job.key)).collect())
    }
}

struct Test {
    queues: SubmitQueues<TestJob>,
    tasks: Tasks,
    shutdown: Shutdown,
    calls: Calls,
    job: NewJob,
}

fn start() -> Test {
    let options = Options { shards: 1, ..settings::defaults(Duration::from_secs(1)) };
    let store = Store::in_memory(&Memory::new(SystemClock), options);
    let (mut tasks, shutdown) = (Tasks::new(), Shutdown::new(Duration::from_secs(30)));
    let metrics = Arc::new(Metrics::new(&NoopMeterProvider::new().meter("test")));
    let queues = SubmitQueues::start(&store, &metrics, &mut tasks, &shutdown);
    let job = job(&unprepared(), r#"{"topic":"t","id":"0","url":"http://h/"}"#);
    Test { queues, tasks, shutdown, calls: Calls::default(), job }
}

impl Test {
    /// Submits as many jobs as `jobs` says in one request, with bodies of `kib`. Returns the id in the first result;
    /// `None` if the queue gave up.
    async fn submit_many(&self, number: u32, jobs: usize, kib: usize) -> Option<String> {
        let mut job = self.job.clone();
        job.key.id = number.to_string().parse().unwrap();
        job.delivery.body.bytes = vec![0; kib * 1024].into();
        let jobs = vec![TestJob { number, job, calls: Arc::clone(&self.calls) }; jobs];
        let deadline = Deadline::from_now().later(Duration::from_secs(60));
        match self.queues.submit(jobs, MemoryPermit::default(), deadline).await {
            Ok(results) => Some(results[0].job.key.id.to_string()),
            Err(Unavailable::GivenUp) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn submit(&self, number: u32) -> Option<String> {
        self.submit_many(number, 1, 0).await
    }

    async fn submit_all(&self, numbers: impl IntoIterator<Item = u32>) -> Vec<Option<String>> {
        join_all(numbers.into_iter().map(|number| self.submit(number))).await
    }

    fn calls(&self) -> Vec<Vec<u32>> {
        self.calls.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn when_idle_a_job_goes_at_once() {
    let (test, start) = (start(), Instant::now());
    assert_eq!(test.submit(7).await.as_deref(), Some("7"));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn jobs_of_the_same_moment_share_a_call_and_each_gets_its_result() {
    let test = start();
    let results = test.submit_all(0..9).await;
    assert!(results.into_iter().eq((0..9).map(|number| Some(number.to_string()))));
    assert_eq!(test.calls(), [(0..9).collect::<Vec<_>>()]);
}

#[tokio::test(start_paused = true)]
async fn jobs_wait_while_a_call_runs_and_share_the_next() {
    let test = start();
    let late = async {
        sleep(Duration::from_millis(500)).await;
        test.submit_all([2, 3]).await
    };
    tokio::join!(test.submit(1), late).0.unwrap();
    assert_eq!(test.calls(), [vec![1], vec![2, 3]]);
}

#[tokio::test(start_paused = true)]
async fn weight_bounds_a_call_and_a_heavy_job_goes_alone() {
    let test = start();
    let sizes = [(0, 600), (1, 400), (2, 100), (3, 5000), (4, 0)];
    join_all(sizes.map(|(number, kib)| test.submit_many(number, 1, kib))).await;
    assert_eq!(test.calls(), [vec![0, 1], vec![2], vec![3], vec![4]]);
}

#[tokio::test(start_paused = true)]
async fn a_call_has_at_most_as_many_jobs_as_the_store_takes() {
    let test = start();
    join_all([(0, 300), (1, 200), (2, 1)].map(|(number, jobs)| test.submit_many(number, jobs, 0))).await;
    let lengths: Vec<_> = test.calls().iter().map(Vec::len).collect();
    assert_eq!(lengths, [ringback_core::limits::MAX_BATCH, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_gives_up_its_jobs_and_stops_the_process() {
    let mut test = start();
    assert_eq!(test.submit_all([1, UNLUCKY]).await, [None, None]);
    let error = test.tasks.join_all(&test.shutdown).await.unwrap_err();
    assert_eq!(error.to_string(), "the task tests of shard 0 panicked");
    assert_eq!(test.submit(2).await, None);
}

#[tokio::test(start_paused = true)]
async fn with_a_wrong_number_of_results_nobody_gets_one() {
    let test = start();
    assert_eq!(test.submit_all([1, FORGOTTEN]).await, [None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_stored_though_its_client_has_gone() {
    let mut test = start();
    assert!(timeout(Duration::from_millis(1), test.submit(5)).await.is_err());
    drop(test.queues);
    test.shutdown.begin();
    test.tasks.join_all(&test.shutdown).await.unwrap();
    assert_eq!(*test.calls.lock().unwrap(), [vec![5]]);
}

#[tokio::test(start_paused = true)]
async fn the_queue_ends_when_its_handle_is_dropped_and_not_before() {
    let mut test = start();
    test.shutdown.begin();
    let early = timeout(Duration::from_secs(20), test.tasks.join_all(&test.shutdown)).await;
    assert!(early.is_err(), "it waits for more");
    drop(test.queues);
    timeout(Duration::from_secs(1), test.tasks.join_all(&test.shutdown)).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_period_the_queue_ends_though_a_call_runs() {
    let mut test = start();
    let mut tasks = std::mem::take(&mut test.tasks);
    let begin = async { test.shutdown.begin() };
    let (result, ended, ()) = tokio::join!(test.submit(ENDLESS), tasks.join_all(&test.shutdown), begin);
    assert_eq!(result, None);
    ended.unwrap();
}
