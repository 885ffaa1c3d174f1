//! Natural batching: while one call is under way the items that arrive gather for the next.
//!
//! There is no timer. On an idle line an item goes at once and alone; the busier the line, the
//! larger the batches. What a call does with its items is the caller's affair. A line is one of
//! the process's [`Tasks`]: a call that dies takes the process with it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use crate::shutdown::Shutdown;
use crate::tasks::Tasks;

/// How long calls that obey the end of the grace by themselves have to answer.
const LAST_CALLS: Duration = Duration::from_millis(500);

/// The bounds of one line.
#[derive(Debug)]
pub struct GatherOptions<T> {
    /// At most so many items per call.
    pub limit: usize,
    /// At most so much weight per call; an item heavier than that goes alone.
    pub max_weight: usize,
    /// What an item weighs, for instance its bytes.
    pub weight: fn(&T) -> usize,
    /// At most so many calls at once, and at least one.
    pub in_flight: usize,
    /// At most so many items wait for a call; beyond it [`Gather::submit`] waits for room.
    pub capacity: usize,
}

/// The item was not answered: the call that carried it died, or the line is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call that carried this item ended without an answer")]
pub struct Closed;

/// A call of the line panicked.
#[derive(Debug, thiserror::Error)]
#[error("a gathered call died")]
struct CallDied(#[from] JoinError);

struct Waiting<T, R> {
    item: T,
    reply: oneshot::Sender<R>,
}

/// A handle to one line; the line ends when the last handle is dropped and everything submitted
/// has been answered, and at the end of the grace in any case.
pub struct Gather<T, R> {
    line: mpsc::Sender<Waiting<T, R>>,
}

impl<T, R> Clone for Gather<T, R> {
    fn clone(&self) -> Self {
        Self { line: self.line.clone() }
    }
}

impl<T, R> fmt::Debug for Gather<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").field("room", &self.line.capacity()).finish()
    }
}

impl<T: Send + 'static, R: Send + 'static> Gather<T, R> {
    /// Starts the line as a task of that name. `run` answers a batch with one result per item, in
    /// the order of the items. When it panics its submitters get [`Closed`] and the task fails.
    pub fn start<Run, Fut>(
        tasks: &mut Tasks,
        name: impl Into<String>,
        shutdown: &Shutdown,
        options: GatherOptions<T>,
        run: Run,
    ) -> Self
    where
        Run: Fn(Vec<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<R>> + Send + 'static,
    {
        let (line, waiting) = mpsc::channel(options.capacity);
        let worker = Worker { waiting, too_heavy: None, calls: JoinSet::new(), options, run: Arc::new(run) };
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
        Self { line }
    }

    /// Hands in one item and waits for its result. Once the item has found room in the line it
    /// runs even when this future is dropped, unless the grace of a shutdown ends before.
    ///
    /// # Errors
    /// [`Closed`] when the call that carried the item died.
    pub async fn submit(&self, item: T) -> Result<R, Closed> {
        let (reply, result) = oneshot::channel();
        self.line.send(Waiting { item, reply }).await.map_err(|_| Closed)?;
        result.await.map_err(|_| Closed)
    }
}

struct Worker<T, R, Run> {
    waiting: mpsc::Receiver<Waiting<T, R>>,
    /// Taken from the line, but left for the next call by its weight.
    too_heavy: Option<Waiting<T, R>>,
    options: GatherOptions<T>,
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
    async fn run(mut self) -> Result<(), CallDied> {
        while let Some(first) = self.first().await? {
            // Lets submitters that are ready to run reach the line: a moment shared costs no timer.
            tokio::task::yield_now().await;
            // Items gather in the line while all calls are taken.
            while self.calls.len() >= self.options.in_flight {
                self.calls.join_next().await.transpose()?;
            }
            let batch = self.fill(first);
            self.call(batch);
        }
        while self.calls.join_next().await.transpose()?.is_some() {}
        Ok(())
    }

    /// The next item, or none when there will be no more; sees calls end meanwhile.
    async fn first(&mut self) -> Result<Option<Waiting<T, R>>, CallDied> {
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
        let weight = self.options.weight;
        let mut total = weight(&first.item);
        let mut batch = vec![first];
        while batch.len() < self.options.limit {
            let Ok(next) = self.waiting.try_recv() else { break };
            total = total.saturating_add(weight(&next.item));
            if total > self.options.max_weight {
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
                    "a gathered call gave the wrong number of results"
                );
                return;
            }
            for (reply, result) in replies.into_iter().zip(results) {
                // A submitter that went away misses nothing but its answer.
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

    const OPTIONS: GatherOptions<u32> =
        GatherOptions { limit: 4, max_weight: 100, weight: |_| 1, in_flight: 1, capacity: 64 };

    type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

    fn shutdown() -> Shutdown {
        Shutdown::new(Duration::from_secs(30))
    }

    /// A line whose calls take a second and answer each item times ten; and the batches it ran.
    fn line(options: GatherOptions<u32>) -> (Gather<u32, u32>, Tasks, Batches) {
        let (mut tasks, batches) = (Tasks::new(), Batches::default());
        let seen = Arc::clone(&batches);
        let gather = Gather::start(&mut tasks, "line", &shutdown(), options, move |items: Vec<u32>| {
            seen.lock().unwrap().push(items.clone());
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(!items.contains(&13), "unlucky");
                items.iter().map(|item| item * 10).collect()
            }
        });
        (gather, tasks, batches)
    }

    async fn submit_all(
        gather: &Gather<u32, u32>,
        items: impl IntoIterator<Item = u32>,
    ) -> Vec<Result<u32, Closed>> {
        futures_util::future::join_all(items.into_iter().map(|item| gather.submit(item))).await
    }

    #[tokio::test(start_paused = true)]
    async fn on_an_idle_line_an_item_goes_at_once() {
        let (gather, _tasks, _) = line(OPTIONS);
        let start = tokio::time::Instant::now();
        assert_eq!(gather.submit(7).await, Ok(70));
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn items_of_the_same_moment_share_calls_up_to_the_limit() {
        let (gather, _tasks, batches) = line(OPTIONS);
        let results = submit_all(&gather, 0..9).await;
        assert_eq!(results, (0..9).map(|item| Ok(item * 10)).collect::<Vec<_>>());
        assert_eq!(*batches.lock().unwrap(), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8]]);
    }

    #[tokio::test(start_paused = true)]
    async fn items_gather_while_a_call_is_under_way() {
        let (gather, _tasks, batches) = line(OPTIONS);
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            submit_all(&gather, [2, 3]).await
        };
        tokio::join!(gather.submit(1), late).0.unwrap();
        assert_eq!(*batches.lock().unwrap(), [vec![1], vec![2, 3]]);
    }

    #[tokio::test(start_paused = true)]
    async fn weight_bounds_a_call_and_a_heavy_item_goes_alone() {
        let (gather, _tasks, batches) = line(GatherOptions { weight: |item| *item as usize, ..OPTIONS });
        submit_all(&gather, [60, 40, 1, 500, 2]).await;
        assert_eq!(*batches.lock().unwrap(), [vec![60, 40], vec![1], vec![500], vec![2]]);
    }

    #[tokio::test(start_paused = true)]
    async fn several_calls_may_be_under_way() {
        let (gather, _tasks, _) = line(GatherOptions { limit: 1, in_flight: 3, ..OPTIONS });
        let start = tokio::time::Instant::now();
        submit_all(&gather, 0..6).await;
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_closes_its_own_items_and_ends_the_line_with_an_error() {
        let (gather, mut tasks, _) = line(OPTIONS);
        assert_eq!(submit_all(&gather, [1, 13]).await, [Err(Closed), Err(Closed)]);
        let error = tasks.join_all(&shutdown()).await.unwrap_err();
        assert_eq!(format!("{error:#}").split(": ").next(), Some("the task line failed"), "{error:#}");
        assert_eq!(gather.submit(2).await, Err(Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_among_several_calls_is_seen_while_the_line_is_full() {
        let (gather, mut tasks, _) = line(GatherOptions { limit: 1, in_flight: 2, ..OPTIONS });
        let running = shutdown();
        let (results, ended) = tokio::join!(submit_all(&gather, [1, 13, 2, 3]), tasks.join_all(&running));
        assert_eq!(results[..2], [Ok(10), Err(Closed)]);
        assert!(ended.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_number_of_results_answers_nobody() {
        let mut tasks = Tasks::new();
        let wrong = async |_items: Vec<u32>| vec![0, 0];
        let gather = Gather::start(&mut tasks, "line", &shutdown(), OPTIONS, wrong);
        assert_eq!(gather.submit(1).await, Err(Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_runs_though_its_submitter_went_away() {
        let (gather, mut tasks, batches) = line(OPTIONS);
        let left = timeout(Duration::from_millis(1), gather.submit(5)).await;
        assert!(left.is_err());
        drop(gather);
        let stopping = shutdown();
        stopping.begin();
        tasks.join_all(&stopping).await.unwrap();
        assert_eq!(*batches.lock().unwrap(), [vec![5]]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_line_ends_when_all_handles_are_dropped_and_not_before() {
        let (gather, mut tasks, _) = line(OPTIONS);
        let stopping = shutdown();
        stopping.begin();
        let early = timeout(Duration::from_secs(20), tasks.join_all(&stopping)).await;
        assert!(early.is_err(), "it waits for more");
        drop((gather.clone(), gather));
        timeout(Duration::from_secs(1), tasks.join_all(&stopping)).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_of_the_grace_the_line_ends_whatever_is_under_way() {
        let (mut tasks, stopping) = (Tasks::new(), shutdown());
        let never = async |_items: Vec<u32>| std::future::pending::<Vec<u32>>().await;
        let gather = Gather::start(&mut tasks, "line", &stopping, OPTIONS, never);
        let begin = async { stopping.begin() };
        let (result, ended, ()) = tokio::join!(gather.submit(1), tasks.join_all(&stopping), begin);
        assert_eq!(result, Err(Closed));
        ended.unwrap();
    }
}
