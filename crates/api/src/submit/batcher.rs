//! `Batcher`: batching without a timer. Items that arrive while a call runs wait and share the
//! next call. When idle, an item goes at once and alone; the higher the load, the larger the
//! batches. What a call does is a closure of the caller. A batcher is one of the process's
//! [`Tasks`]: a call that panics stops the process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ringback_service::{Shutdown, Tasks};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

/// How long running calls may take after the grace period of the shutdown. They notice its end
/// themselves and only need time to answer.
const LAST_CALLS: Duration = Duration::from_millis(500);

/// The limits of a batcher.
#[derive(Debug)]
pub(super) struct Limits<T> {
    /// The most items per call.
    pub(super) items: usize,
    /// The most weight per call. An item that is heavier goes alone.
    pub(super) weight: usize,
    /// The weight of an item, for instance its bytes.
    pub(super) weigh: fn(&T) -> usize,
    /// The most calls at once; at least one.
    pub(super) calls: usize,
    /// The most items that wait for a call. Beyond it [`Batcher::submit`] waits.
    pub(super) waiting: usize,
}

/// The item has no result: its call panicked, or the batcher has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call of this item ended without a result")]
pub(super) struct Closed;

/// A call panicked.
#[derive(Debug, thiserror::Error)]
#[error("a batched call panicked")]
struct CallPanicked(#[from] JoinError);

struct Waiting<T, R> {
    item: T,
    reply: oneshot::Sender<R>,
}

/// A handle to a batcher. The batcher ends when the handle is dropped and every item has its
/// result, or shortly after the grace period of the shutdown.
pub(super) struct Batcher<T, R> {
    queue: mpsc::Sender<Waiting<T, R>>,
}

impl<T: Send + 'static, R: Send + 'static> Batcher<T, R> {
    /// Starts a batcher as a task of that name. `run` returns one result per item, in the order of
    /// the items. When it panics its submitters get [`Closed`] and the task fails.
    pub(super) fn start<Run, Fut>(
        tasks: &mut Tasks,
        name: impl Into<String>,
        shutdown: &Shutdown,
        limits: Limits<T>,
        run: Run,
    ) -> Self
    where
        Run: Fn(Vec<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<R>> + Send + 'static,
    {
        let (queue, waiting) = mpsc::channel(limits.waiting);
        let worker = Worker { waiting, too_heavy: None, calls: JoinSet::new(), limits, run: Arc::new(run) };
        let shutdown = shutdown.clone();
        let cut = async move {
            shutdown.expired().await;
            sleep(LAST_CALLS).await;
        };
        tasks.spawn(name, async move {
            tokio::select! {
                ended = worker.run() => ended,
                () = cut => Ok(()),
            }
        });
        Self { queue }
    }

    /// Submits an item and waits for its result. Once the item is in the queue it is processed even
    /// if this future is dropped, unless the grace period of the shutdown ends first.
    ///
    /// # Errors
    /// [`Closed`] if the call of the item panicked.
    pub(super) async fn submit(&self, item: T) -> Result<R, Closed> {
        let (reply, result) = oneshot::channel();
        self.queue.send(Waiting { item, reply }).await.map_err(|_| Closed)?;
        result.await.map_err(|_| Closed)
    }
}

struct Worker<T, R, Run> {
    waiting: mpsc::Receiver<Waiting<T, R>>,
    /// An item that was too heavy for the last call.
    too_heavy: Option<Waiting<T, R>>,
    limits: Limits<T>,
    calls: JoinSet<()>,
    run: Arc<Run>,
}

impl<T, R, Run, Fut> Worker<T, R, Run>
where
    T: Send + 'static,
    R: Send + 'static,
    Run: Fn(Vec<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<R>> + Send + 'static,
{
    async fn run(mut self) -> Result<(), CallPanicked> {
        while let Some(first) = self.first().await? {
            // Lets submitters that are ready to run share the call; that needs no timer.
            tokio::task::yield_now().await;
            // Items wait in the queue while all calls are busy.
            while self.calls.len() >= self.limits.calls {
                self.calls.join_next().await.transpose()?;
            }
            let batch = self.fill(first);
            self.call(batch);
        }
        while self.calls.join_next().await.transpose()?.is_some() {}
        Ok(())
    }

    /// The next item, or `None` after the last. Also notices calls that end meanwhile.
    async fn first(&mut self) -> Result<Option<Waiting<T, R>>, CallPanicked> {
        if let Some(waiting) = self.too_heavy.take() {
            return Ok(Some(waiting));
        }
        loop {
            tokio::select! {
                biased;
                Some(ended) = self.calls.join_next() => ended?,
                first = self.waiting.recv() => return Ok(first),
            }
        }
    }

    fn fill(&mut self, first: Waiting<T, R>) -> Vec<Waiting<T, R>> {
        let weigh = self.limits.weigh;
        let mut total = weigh(&first.item);
        let mut batch = vec![first];
        while batch.len() < self.limits.items {
            let Ok(next) = self.waiting.try_recv() else { break };
            total = total.saturating_add(weigh(&next.item));
            if total > self.limits.weight {
                self.too_heavy = Some(next);
                break;
            }
            batch.push(next);
        }
        batch
    }

    fn call(&mut self, batch: Vec<Waiting<T, R>>) {
        let run = Arc::clone(&self.run);
        self.calls.spawn(async move {
            let (items, replies): (Vec<T>, Vec<_>) =
                batch.into_iter().map(|waiting| (waiting.item, waiting.reply)).unzip();
            let results = run(items).await;
            if results.len() != replies.len() {
                tracing::error!(
                    expected = replies.len(),
                    found = results.len(),
                    "a batched call returned the wrong number of results"
                );
                return;
            }
            for (reply, result) in replies.into_iter().zip(results) {
                // The submitter may be gone; the item was processed all the same.
                reply.send(result).ok();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const LIMITS: Limits<u32> = Limits { items: 4, weight: 100, weigh: |_| 1, calls: 1, waiting: 64 };

    type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

    fn shutdown() -> Shutdown {
        Shutdown::new(Duration::from_secs(30))
    }

    /// A batcher whose calls take a second and multiply each item by ten, and the batches that it ran.
    fn start(limits: Limits<u32>) -> (Batcher<u32, u32>, Tasks, Batches) {
        let (mut tasks, batches) = (Tasks::new(), Batches::default());
        let seen = Arc::clone(&batches);
        let batcher = Batcher::start(&mut tasks, "batcher", &shutdown(), limits, move |items: Vec<u32>| {
            seen.lock().unwrap().push(items.clone());
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(!items.contains(&13), "unlucky");
                items.iter().map(|item| item * 10).collect()
            }
        });
        (batcher, tasks, batches)
    }

    async fn submit_all(
        batcher: &Batcher<u32, u32>,
        items: impl IntoIterator<Item = u32>,
    ) -> Vec<Result<u32, Closed>> {
        futures_util::future::join_all(items.into_iter().map(|item| batcher.submit(item))).await
    }

    #[tokio::test(start_paused = true)]
    async fn when_idle_an_item_goes_at_once() {
        let (batcher, _tasks, _) = start(LIMITS);
        let start = tokio::time::Instant::now();
        assert_eq!(batcher.submit(7).await, Ok(70));
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn items_of_the_same_moment_share_calls_up_to_the_limit() {
        let (batcher, _tasks, batches) = start(LIMITS);
        let results = submit_all(&batcher, 0..9).await;
        assert_eq!(results, (0..9).map(|item| Ok(item * 10)).collect::<Vec<_>>());
        assert_eq!(*batches.lock().unwrap(), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8]]);
    }

    #[tokio::test(start_paused = true)]
    async fn items_wait_while_a_call_runs_and_share_the_next() {
        let (batcher, _tasks, batches) = start(LIMITS);
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            submit_all(&batcher, [2, 3]).await
        };
        tokio::join!(batcher.submit(1), late).0.unwrap();
        assert_eq!(*batches.lock().unwrap(), [vec![1], vec![2, 3]]);
    }

    #[tokio::test(start_paused = true)]
    async fn weight_bounds_a_call_and_a_heavy_item_goes_alone() {
        let (batcher, _tasks, batches) = start(Limits { weigh: |item| *item as usize, ..LIMITS });
        submit_all(&batcher, [60, 40, 1, 500, 2]).await;
        assert_eq!(*batches.lock().unwrap(), [vec![60, 40], vec![1], vec![500], vec![2]]);
    }

    #[tokio::test(start_paused = true)]
    async fn several_calls_may_run_at_once() {
        let (batcher, _tasks, _) = start(Limits { items: 1, calls: 3, ..LIMITS });
        let start = tokio::time::Instant::now();
        submit_all(&batcher, 0..6).await;
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_closes_its_own_items_and_ends_the_batcher_with_an_error() {
        let (batcher, mut tasks, _) = start(LIMITS);
        assert_eq!(submit_all(&batcher, [1, 13]).await, [Err(Closed), Err(Closed)]);
        let error = tasks.join_all(&shutdown()).await.unwrap_err();
        assert_eq!(format!("{error:#}").split(": ").next(), Some("the task batcher failed"), "{error:#}");
        assert_eq!(batcher.submit(2).await, Err(Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_among_several_calls_is_noticed_while_the_queue_is_full() {
        let (batcher, mut tasks, _) = start(Limits { items: 1, calls: 2, ..LIMITS });
        let running = shutdown();
        let (results, ended) = tokio::join!(submit_all(&batcher, [1, 13, 2, 3]), tasks.join_all(&running));
        assert_eq!(results[..2], [Ok(10), Err(Closed)]);
        assert!(ended.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn with_a_wrong_number_of_results_nobody_gets_one() {
        let mut tasks = Tasks::new();
        let wrong = async |_items: Vec<u32>| vec![0, 0];
        let batcher = Batcher::start(&mut tasks, "batcher", &shutdown(), LIMITS, wrong);
        assert_eq!(batcher.submit(1).await, Err(Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_is_processed_though_its_submitter_has_gone() {
        let (batcher, mut tasks, batches) = start(LIMITS);
        let left = timeout(Duration::from_millis(1), batcher.submit(5)).await;
        assert!(left.is_err());
        drop(batcher);
        let stopping = shutdown();
        stopping.begin();
        tasks.join_all(&stopping).await.unwrap();
        assert_eq!(*batches.lock().unwrap(), [vec![5]]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_batcher_ends_when_its_handle_is_dropped_and_not_before() {
        let (batcher, mut tasks, _) = start(LIMITS);
        let stopping = shutdown();
        stopping.begin();
        let early = timeout(Duration::from_secs(20), tasks.join_all(&stopping)).await;
        assert!(early.is_err(), "it waits for more");
        drop(batcher);
        timeout(Duration::from_secs(1), tasks.join_all(&stopping)).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_grace_period_the_batcher_ends_though_a_call_runs() {
        let (mut tasks, stopping) = (Tasks::new(), shutdown());
        let never = async |_items: Vec<u32>| std::future::pending::<Vec<u32>>().await;
        let batcher = Batcher::start(&mut tasks, "batcher", &stopping, LIMITS, never);
        let begin = async { stopping.begin() };
        let (result, ended, ()) = tokio::join!(batcher.submit(1), tasks.join_all(&stopping), begin);
        assert_eq!(result, Err(Closed));
        ended.unwrap();
    }
}
