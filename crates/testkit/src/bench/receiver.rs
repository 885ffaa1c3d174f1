//! The receiver of the benchmarks: as thin as it can be, because it shares the cores with what it measures.
//!
//! It answers 200 at once, or never below `/hang`, and counts on a [`Board`]. Jobs go to a channel by the path
//! of their URL, so that those of one kind are told from those of another.

mod board;
mod serve;

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio::{runtime, select};

pub(super) use self::board::{Board, Channel};
use super::usage::Thread;

/// How often to look whether all have arrived.
const LOOK: Duration = Duration::from_millis(10);

/// Where the receivers listen, and their thread.
type Began = (Vec<SocketAddr>, Thread);

/// Running receivers, all on one thread; they end when this is dropped.
pub(super) struct Receiver {
    addresses: Vec<SocketAddr>,
    board: Arc<Mutex<Board>>,
    cpu: Thread,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// One of them.
    pub(super) async fn start() -> Self {
        Self::several(1).await
    }

    /// So many, each on a port of its own.
    ///
    /// # Panics
    /// When there is no room for them.
    pub(super) async fn several(count: usize) -> Self {
        let board = Arc::new(Mutex::new(Board::new()));
        let (end, ended) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let shared = Arc::clone(&board);
        let thread = thread::Builder::new().name("bench-receiver".to_owned()).spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(receive(count, shared, tell, ended));
        });
        let (addresses, cpu) = told.await.expect("the receivers listen");
        let thread = Some(thread.expect("a thread can be started"));
        Self { addresses, board, cpu, end: Some(end), thread }
    }

    /// A URL of the first receiver.
    pub(super) fn url(&self, channel: Channel) -> String {
        self.url_of(0, channel)
    }

    /// A URL of any receiver.
    pub(super) fn url_of(&self, receiver: usize, channel: Channel) -> String {
        format!("http://{}{}", self.addresses[receiver], channel.path())
    }

    /// Begins to count anew: jobs of these numbers are expected from now on.
    pub(super) fn expect(&self, numbers: Range<usize>) {
        self.board().clear(numbers);
    }

    /// What has been counted.
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// CPU time that it has used itself.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.cpu.cpu_seconds()
    }

    /// Waits until this many of the expected jobs have arrived, none of them early.
    ///
    /// # Panics
    /// When they have not within that time, or one was early.
    pub(super) async fn wait_for(&self, jobs: usize, within: Duration) {
        self.arrive(jobs, within).await.unwrap_or_else(|reason| panic!("jobs are lost, or slow: {reason}"));
        let (early, by) = self.board().early();
        assert_eq!(early, 0, "{early} jobs were early, one of them by {by:?}");
    }

    /// The same for jobs of others, which are allowed to be early and to be lost.
    ///
    /// # Errors
    /// How many have arrived when the time has passed.
    pub(super) async fn arrive(&self, jobs: usize, within: Duration) -> Result<(), String> {
        let all = async {
            while self.board().arrived() < jobs {
                sleep(LOOK).await;
            }
        };
        let ended = timeout(within, all).await;
        ended.map_err(|_| format!("{} of {jobs} have arrived within {within:?}", self.board().arrived()))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.end.take());
        // It fails only when the thread has panicked, which it has told already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn receive(
    count: usize,
    board: Arc<Mutex<Board>>,
    tell: oneshot::Sender<Began>,
    ended: oneshot::Receiver<()>,
) {
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port"));
    }
    let addresses = listeners.iter().map(|l| l.local_addr().expect("a listener has an address")).collect();
    let _ = tell.send((addresses, Thread::this()));
    select! {
        () = serve::all(listeners, &board) => {}
        _ = ended => {}
    }
}
