//! `Batcher`: batching without a timer. One call runs at a time. Items that arrive meanwhile wait and
//! share the next call, so an idle batcher calls at once with one item, and batches grow with the load.
//! The caller passes the call as a closure. A batcher is one of the process's [`Tasks`]: a call that
//! panics stops the process.

use std::future::Future;
use std::time::Duration;

use ringback_service::{Shutdown, Tasks};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

/// How much longer than the grace period of the shutdown a call may run. Calls notice the end of the
/// grace period themselves and only need time to answer.
const LAST_CALL: Duration = Duration::from_millis(500);

/// The limits of a batcher.
#[derive(Debug)]
pub(super) struct Limits<T> {
    /// The most items per call.
    pub(super) items: usize,
    /// The most weight per call. An item that is heavier goes alone.
    pub(super) weight: usize,
    /// The weight of an item, for instance its bytes.
    pub(super) weigh: fn(&T) -> usize,
    /// The most items that wait for a call. Beyond it [`Batcher::submit`] waits.
    pub(super) waiting: usize,
}

/// The item has no result: its call panicked, or the batcher has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call of this item ended without a result")]
pub(super) struct Closed;

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
    /// Starts a batcher as a task of that name. `call` returns one result per item, in the order of
    /// the items. If it panics, its submitters get [`Closed`] and the task panics.
    pub(super) fn start<Call, Fut>(
        tasks: &mut Tasks,
        name: impl Into<String>,
        shutdown: &Shutdown,
        limits: Limits<T>,
        call: Call,
    ) -> Self
    where
        Call: Fn(Vec<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<R>> + Send + 'static,
    {
        let (queue, waiting) = mpsc::channel(limits.waiting);
        let worker = Worker { waiting, too_heavy: None, limits };
        let shutdown = shutdown.clone();
        let cut = async move {
            shutdown.expired().await;
            sleep(LAST_CALL).await;
        };
        tasks.spawn(name, async move {
            tokio::select! {
                biased;
                () = worker.run(call) => {}
                () = cut => {}
            }
        });
        Self { queue }
    }

    /// Submits an item and waits for its result. Once the item is in the queue it is processed even
    /// if this future is dropped, unless the grace period of the shutdown ends first.
    ///
    /// # Errors
    /// [`Closed`] if the call of the item panicked or the batcher has ended.
    pub(super) async fn submit(&self, item: T) -> Result<R, Closed> {
        let (reply, result) = oneshot::channel();
        self.queue.send(Waiting { item, reply }).await.map_err(|_| Closed)?;
        result.await.map_err(|_| Closed)
    }
}

struct Worker<T, R> {
    waiting: mpsc::Receiver<Waiting<T, R>>,
    /// An item that was too heavy for the last call.
    too_heavy: Option<Waiting<T, R>>,
    limits: Limits<T>,
}

impl<T, R> Worker<T, R> {
    /// Makes calls until the handle is dropped and no item waits.
    async fn run<Fut: Future<Output = Vec<R>>>(mut self, call: impl Fn(Vec<T>) -> Fut) {
        while let Some(first) = self.next().await {
            // Lets submitters that are ready to run share the call; that needs no timer.
            tokio::task::yield_now().await;
            let (items, replies) = self.batch(first);
            let results = call(items).await;
            if results.len() != replies.len() {
                let (expected, found) = (replies.len(), results.len());
                tracing::error!(expected, found, "a batched call returned the wrong number of results");
                continue;
            }
            for (reply, result) in replies.into_iter().zip(results) {
                // The submitter may be gone; the item was processed all the same.
                reply.send(result).ok();
            }
        }
    }

    /// The next item, or `None` after the last.
    async fn next(&mut self) -> Option<Waiting<T, R>> {
        match self.too_heavy.take() {
            Some(waiting) => Some(waiting),
            None => self.waiting.recv().await,
        }
    }

    /// The items of the next call, and where their results go.
    fn batch(&mut self, first: Waiting<T, R>) -> (Vec<T>, Vec<oneshot::Sender<R>>) {
        let weigh = self.limits.weigh;
        let mut total = weigh(&first.item);
        let (mut items, mut replies) = (vec![first.item], vec![first.reply]);
        while items.len() < self.limits.items {
            let Ok(next) = self.waiting.try_recv() else { break };
            total = total.saturating_add(weigh(&next.item));
            if total > self.limits.weight {
                self.too_heavy = Some(next);
                break;
            }
            items.push(next.item);
            replies.push(next.reply);
        }
        (items, replies)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::time::timeout;

    use super::*;

    const LIMITS: Limits<u32> = Limits { items: 4, weight: 100, weigh: |_| 1, waiting: 64 };

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
    async fn a_panic_closes_its_items_and_stops_the_process() {
        let (batcher, mut tasks, _) = start(LIMITS);
        assert_eq!(submit_all(&batcher, [1, 13]).await, [Err(Closed), Err(Closed)]);
        let error = tasks.join_all(&shutdown()).await.unwrap_err();
        assert_eq!(error.to_string(), "the task batcher panicked");
        assert_eq!(batcher.submit(2).await, Err(Closed));
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
