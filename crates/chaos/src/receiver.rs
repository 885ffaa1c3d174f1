//! The receiver of a run: it answers by the path of a job's URL and by its own faults, and writes each delivery to the
//! history.

mod serve;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_testkit::history::History;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What is wrong with a receiver as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    Errors,
    Hangs,
    Resets,
    Slow,
}

/// What a delivery is answered with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    after: Duration,
    /// 0 closes the connection.
    status: u16,
    /// In seconds.
    retry_after: Option<u64>,
}

/// A running receiver; dropping it closes its connections.
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    _listener: JoinSet<()>,
}

struct Shared {
    address: SocketAddr,
    history: History,
    mood: Mutex<Mood>,
    rng: Mutex<StdRng>,
}

impl Receiver {
    pub(crate) async fn start(seed: u64, history: History) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let (mood, rng) = (Mutex::new(Mood::Fine), Mutex::new(StdRng::seed_from_u64(seed)));
        let shared = Arc::new(Shared { address, history, mood, rng });
        let mut task = JoinSet::new();
        task.spawn(serve::accept(listener, Arc::clone(&shared)));
        Self { shared, _listener: task }
    }

    /// `http://127.0.0.1:<port>`.
    pub(crate) fn base(&self) -> String {
        self.shared.base()
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }
}

impl Shared {
    fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    fn answer(&self, path: &str) -> Reply {
        let mood = *self.mood.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let mut millis = |low, high| Duration::from_millis(rng.random_range(low..high));
        let answer = |status, after| Reply { after, status, retry_after: None };
        match mood {
            Mood::Errors => return answer(500, Duration::ZERO),
            Mood::Hangs => return answer(0, Duration::from_secs(5)),
            Mood::Resets => return answer(0, Duration::ZERO),
            Mood::Slow => return answer(200, millis(200, 1_500)),
            Mood::Fine => {}
        }
        match path {
            "/flaky" => match millis(0, 100).as_millis() {
                0..30 => answer(500, Duration::ZERO),
                30..33 => Reply { retry_after: Some(1), ..answer(503, Duration::ZERO) },
                33..36 => answer(0, Duration::ZERO),
                _ => answer(200, Duration::ZERO),
            },
            "/slow" => answer(200, millis(50, 600)),
            "/late" => answer(200, millis(900, 1_400)),
            "/gone" => answer(410, Duration::ZERO),
            "/moved" => answer(302, Duration::ZERO),
            "/broken" => answer(500, Duration::ZERO),
            _ => answer(200, Duration::ZERO),
        }
    }
}
