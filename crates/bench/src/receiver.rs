//! The receiver of the benchmarks, as thin as possible, because it shares the cores with what it measures.
//!
//! It answers 200 at once, or never below `/hang`, and counts arrivals on a [`Board`]. The path of a job's URL is its
//! channel, which keeps jobs of different kinds apart.

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

pub(crate) use self::board::{Board, Channel};
use crate::usage::Thread;

/// The pause between two looks at the board.
const POLL: Duration = Duration::from_millis(10);

/// The addresses of the receivers, and their thread.
type ReceiverThread = (Vec<SocketAddr>, Thread);

/// Running receivers, all on one thread; they end when this is dropped.
pub(crate) struct Receiver {
    addresses: Vec<SocketAddr>,
    board: Arc<Mutex<Board>>,
    cpu: Thread,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::several(1).await
    }

    /// Starts `count` receivers, each on its own port, all with one board.
    pub(crate) async fn several(count: usize) -> Self {
        let board = Arc::new(Mutex::new(Board::new()));
        let (end, ended) = oneshot::channel();
        let (sender, started) = oneshot::channel();
        let shared = Arc::clone(&board);
        let thread = thread::Builder::new().name("bench-receiver".to_owned()).spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(receive(count, shared, sender, ended));
        });
        let (addresses, cpu) = started.await.expect("the receivers listen");
        let thread = Some(thread.expect("a thread can be started"));
        Self { addresses, board, cpu, end: Some(end), thread }
    }

    pub(crate) fn url(&self, channel: Channel) -> String {
        self.url_of(0, channel)
    }

    pub(crate) fn url_of(&self, receiver: usize, channel: Channel) -> String {
        format!("http://{}{}", self.addresses[receiver], channel.path())
    }

    /// Clears the board and counts only jobs of these numbers from now on.
    pub(crate) fn expect(&self, numbers: Range<usize>) {
        self.board().clear(numbers);
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The CPU time that the receiver's thread has used, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.cpu.cpu_seconds()
    }

    /// Waits until `jobs` of the expected jobs have arrived. Panics after `within`, or if one of them was early.
    pub(crate) async fn wait_for(&self, jobs: usize, within: Duration) {
        self.arrive(jobs, within).await.unwrap_or_else(|reason| panic!("jobs are lost, or slow: {reason}"));
        let (early, by) = self.board().early();
        assert_eq!(early, 0, "{early} jobs were early, one of them by {by:?}");
    }

    /// Waits until `jobs` of the expected jobs have arrived. They may be early.
    ///
    /// # Errors
    /// The number of arrivals, if there are fewer after `within`.
    pub(crate) async fn arrive(&self, jobs: usize, within: Duration) -> Result<(), String> {
        let all = async {
            while self.board().arrived() < jobs {
                sleep(POLL).await;
            }
        };
        let ended = timeout(within, all).await;
        ended.map_err(|_| format!("{} of {jobs} have arrived within {within:?}", self.board().arrived()))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.end.take());
        // The join fails only if the thread panicked, which printed a message.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn receive(
    count: usize,
    board: Arc<Mutex<Board>>,
    started: oneshot::Sender<ReceiverThread>,
    ended: oneshot::Receiver<()>,
) {
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port"));
    }
    let addresses = listeners.iter().map(|l| l.local_addr().expect("a listener has an address")).collect();
    let _ = started.send((addresses, Thread::this()));
    select! {
        () = serve::all(listeners, &board) => {}
        _ = ended => {}
    }
}
