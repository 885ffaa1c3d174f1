//! A history in a child process ([`ChildHistory`]), and the loop by which that process answers queries. Many are under
//! way at a time, so each has a number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use ringback_core::clock::{Clock as _, SystemClock, millis};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::message::{receive, send};
use super::program::{ChildProgram, ended, unexpected};
use crate::erasure::Erasure;
use crate::history::{History, HistoryPage, HistoryRequest, QueryError, page};

/// How long a query is waited for. The process bounds its own work by about as much, and does not begin with one that
/// nobody waits for any more.
const WAITS: Duration = Duration::from_secs(5);
/// A process that has not answered a query for so long hangs.
const HANGS: Duration = Duration::from_secs(20);

/// A process that ends at once is not started again sooner.
const STARTS_AFTER: Duration = Duration::from_secs(1);

/// A query with its number, and the time at which it was asked (ms since 1970).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Request(u64, u64, Query);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Query {
    Page(Box<HistoryRequest>),
    Erase(Erasure),
}

/// This machine's time of day.
fn now() -> u64 {
    SystemClock.now().as_millis()
}

/// The answer to the query with this number.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Response(u64, Reply);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Reply {
    Page(HistoryPage),
    Erased(u64),
    Failed(QueryError),
}

/// Serves queries to the process at the other end, until that closes the pipe. As many are answered at a time as there
/// are connections. One that has waited for 5 s by then gets [`QueryError::Slow`].
///
/// # Errors
/// If the pipe breaks, or a message cannot be read.
pub async fn serve_history<H: History + 'static>(
    connections: Vec<H>,
    mut requests: impl AsyncRead + Unpin,
    mut answers: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (free, mut idle) = mpsc::unbounded_channel();
    for connection in connections {
        free.send(connection).ok();
    }
    let (done, mut written) = mpsc::channel::<Response>(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Some(response) = written.recv().await {
            if send(&mut answers, &response).await.is_err() {
                // The process is gone, and the read ended jobs too.
                return;
            }
        }
    });
    while let Some(Request(number, asked, query)) = receive(&mut requests).await? {
        let Some(mut connection) = idle.recv().await else { return Ok(()) };
        let is_late = now().saturating_sub(asked) > millis(WAITS);
        let (free, done) = (free.clone(), done.clone());
        tasks.spawn(async move {
            let answer = match query {
                Query::Page(_) | Query::Erase(_) if is_late => Err(QueryError::Slow),
                Query::Page(ask) => page(&mut connection, &ask).await.map(Reply::Page),
                Query::Erase(erasure) => connection.erase(&erasure).await.map(Reply::Erased),
            };
            free.send(connection).ok();
            done.send(Response(number, answer.unwrap_or_else(Reply::Failed))).await.ok();
        });
        while tasks.try_join_next().is_some() {}
    }
    Ok(())
}

/// The history in a process that is started when it is needed, and again when it has ended. Clones share it.
#[derive(Clone)]
pub struct ChildHistory(Arc<Shared>);

struct Shared {
    program: ChildProgram,
    running: Mutex<Option<Running>>,
}

/// A process that was started.
struct Running {
    _child: Child,
    started: Instant,
    requests: ChildStdin,
    waiting: Arc<Waiting>,
    next: u64,
    /// The task that reads the answers.
    _answers: JoinSet<()>,
}

/// The callers that wait for answers, by the numbers of their queries; `None` once no more answers come.
struct Waiting(StdMutex<Option<BTreeMap<u64, PendingQuery>>>);

/// When a query was sent, and who gets its answer.
type PendingQuery = (Instant, oneshot::Sender<Reply>);

impl Waiting {
    fn new() -> Self {
        Self(StdMutex::new(Some(BTreeMap::new())))
    }

    /// Registers a query, and returns the receiver of its answer; `None` if no more answers come.
    fn add(&self, number: u64) -> Option<oneshot::Receiver<Reply>> {
        let (sender, receiver) = oneshot::channel();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()?
            .insert(number, (Instant::now(), sender));
        Some(receiver)
    }

    fn take(&self, number: u64) -> Option<oneshot::Sender<Reply>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()?
            .remove(&number)
            .map(|(_, sender)| sender)
    }

    /// Whether no more answers come: the process has ended, or it hangs.
    fn has_ended(&self) -> bool {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Also of queries that their callers do not wait for any more.
        let oldest = waiting.as_ref().map(|all| all.values().next().map(|(asked, _)| asked.elapsed()));
        oldest.is_none_or(|oldest| oldest.is_some_and(|age| age > HANGS))
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl ChildHistory {
    pub fn new(program: ChildProgram) -> Self {
        Self(Arc::new(Shared { program, running: Mutex::new(None) }))
    }

    /// A page of ended jobs.
    ///
    /// # Errors
    /// If the page cannot be read, or there is no answer within 5 s.
    pub async fn page(&self, ask: HistoryRequest) -> Result<HistoryPage, QueryError> {
        match self.ask(Query::Page(Box::new(ask))).await? {
            Reply::Page(page) => Ok(page),
            Reply::Erased(_) | Reply::Failed(_) => Err(unexpected().into()),
        }
    }

    /// Erases some ended jobs. Returns how many this call has erased; 0 if none is left.
    ///
    /// # Errors
    /// If they cannot be erased, or there is no answer within 5 s. Some may have been erased.
    pub async fn erase(&self, erasure: Erasure) -> Result<u64, QueryError> {
        match self.ask(Query::Erase(erasure)).await? {
            Reply::Erased(count) => Ok(count),
            Reply::Page(_) | Reply::Failed(_) => Err(unexpected().into()),
        }
    }

    async fn ask(&self, query: Query) -> Result<Reply, QueryError> {
        let exchange = async { self.send(query).await?.await.map_err(|_ended| ended().into()) };
        match timeout(WAITS, exchange).await {
            Ok(Ok(Reply::Failed(error))) | Ok(Err(error)) => Err(error),
            Ok(Ok(answer)) => Ok(answer),
            Err(_elapsed) => Err(QueryError::Slow),
        }
    }

    /// Sends a query to the process, which is started if there is none or it hangs; fails if it has ended within a
    /// second. If the future is dropped meanwhile, the process is killed, so that no half message stays in the pipe.
    async fn send(&self, query: Query) -> Result<oneshot::Receiver<Reply>, QueryError> {
        let mut slot = self.0.running.lock().await;
        let mut running = match slot.take() {
            Some(running) if !running.waiting.has_ended() => running,
            Some(running) if running.started.elapsed() < STARTS_AFTER => {
                *slot = Some(running);
                return Err(ended().into());
            }
            Some(_) | None => self.start()?,
        };
        let number = running.next;
        running.next += 1;
        let answer = running.waiting.add(number).ok_or_else(ended)?;
        send(&mut running.requests, &Request(number, now(), query)).await.map_err(|_| ended())?;
        *slot = Some(running);
        Ok(answer)
    }

    fn start(&self) -> Result<Running, QueryError> {
        let (child, requests, answers) = self.0.program.start()?;
        let waiting = Arc::new(Waiting::new());
        let mut task = JoinSet::new();
        task.spawn(deliver(answers, Arc::clone(&waiting)));
        Ok(Running { _child: child, started: Instant::now(), requests, waiting, next: 0, _answers: task })
    }
}

/// Gives the answers to those who wait for them, until the pipe ends; then there are no more.
async fn deliver(mut answers: ChildStdout, waiting: Arc<Waiting>) {
    while let Ok(Some(Response(number, answer))) = receive(&mut answers).await {
        // One that nobody waits for any more is dropped.
        if let Some(sender) = waiting.take(number) {
            sender.send(answer).ok();
        }
    }
    waiting.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended_job_row::EndedJobRow;
    use crate::ended_job_row::tests::row;
    use crate::erasure::Erased;

    /// Answers after as many ms as its number, with ends of its own.
    struct Numbered(u64);

    impl History for Numbered {
        async fn rows(&mut self, ask: &HistoryRequest) -> Result<Vec<EndedJobRow>, QueryError> {
            tokio::time::sleep(Duration::from_millis(self.0)).await;
            Ok(vec![row(); ask.limit.min(3)])
        }

        async fn erase(&mut self, erasure: &Erasure) -> Result<u64, QueryError> {
            if erasure.topics.is_empty() { Err(QueryError::Slow) } else { Ok(7) }
        }
    }

    #[tokio::test]
    async fn many_queries_are_answered_each_as_soon_as_it_can_be() {
        let (near, far) = tokio::io::duplex(64);
        let (requests, answers) = tokio::io::split(far);
        let mut served = JoinSet::new();
        served.spawn(serve_history(vec![Numbered(200), Numbered(0)], requests, answers));
        let (mut from, mut to) = tokio::io::split(near);
        let ask = HistoryRequest { limit: 2, ..HistoryRequest::default() };
        let erasure = |topics: &[&str]| Erasure {
            tenant: String::new(),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            what: Erased::Id("a".to_owned()),
            at: 1,
        };
        let queries = [Query::Page(Box::new(ask)), Query::Erase(erasure(&["t"])), Query::Erase(erasure(&[]))];
        let mut numbers = Vec::new();
        for (number, query) in (5..).zip(queries) {
            send(&mut to, &Request(number, now(), query)).await.unwrap();
        }
        let late = Query::Page(Box::default());
        send(&mut to, &Request(8, now() - millis(WAITS) - 1_000, late)).await.unwrap();
        for _ in 0..4 {
            let Response(number, answer) = receive(&mut from).await.unwrap().unwrap();
            match (number, answer) {
                (5, Reply::Page(page)) => assert_eq!((page.rows.len(), page.has_more), (2, true)),
                (6, Reply::Erased(7)) | (7 | 8, Reply::Failed(QueryError::Slow)) => {}
                other => panic!("{other:?}"),
            }
            numbers.push(number);
        }
        assert_eq!(numbers, [6, 7, 8, 5], "the first one is answered last");
        drop((from, to));
        served.join_next().await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named_each_time() {
        let history = ChildHistory::new(ChildProgram::at("/nowhere/ringback-archiver"));
        for _ in 0..2 {
            let error = history.page(HistoryRequest::default()).await.unwrap_err().to_string();
            assert!(error.contains("/nowhere/ringback-archiver cannot be started"), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_hangs_is_known_by_its_oldest_query() {
        let waiting = Waiting::new();
        assert!(!waiting.has_ended());
        let first = waiting.add(1);
        tokio::time::advance(HANGS / 2).await;
        let _second = waiting.add(2);
        // Its caller has gone, and it counts all the same.
        drop(first);
        tokio::time::advance(HANGS / 2 + Duration::from_millis(1)).await;
        assert!(waiting.has_ended());
        waiting.take(1);
        assert!(!waiting.has_ended());
        waiting.end();
        assert!(waiting.has_ended());
    }

    #[tokio::test]
    async fn a_program_that_ends_at_once_is_an_error_and_no_wait() {
        let history = ChildHistory::new(ChildProgram::at("/bin/true"));
        for _ in 0..2 {
            let error = history.page(HistoryRequest::default()).await.unwrap_err().to_string();
            assert!(error.contains("has ended"), "{error}");
        }
    }
}
