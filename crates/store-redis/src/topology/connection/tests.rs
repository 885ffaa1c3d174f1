//! Tests of when a shared connection is made anew, with which pauses. Connections are numbers, and the clock is paused.

use std::future::pending;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use futures_util::future::{join_all, ready};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use redis::{RedisError, Value};
use tokio::time::{advance, sleep, timeout};

use super::*;

const CALL: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_millis(500);

/// Connections numbered from 1, each made by one attempt.
struct Servers {
    connection: SharedConnection<usize>,
    attempts: Arc<AtomicUsize>,
    /// The argument of each attempt.
    silent: Arc<Mutex<Vec<Option<usize>>>>,
}

impl Servers {
    /// Returns servers without a connection. `connect` makes each attempt, and gets its number, counted from 1.
    fn new(places: usize, connect: impl Fn(usize) -> Connecting<usize> + Send + Sync + 'static) -> Self {
        let (attempts, silent) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (counted, noted) = (Arc::clone(&attempts), Arc::clone(&silent));
        let backoff = Backoff::between(FIRST_PAUSE, LONGEST, StdRng::seed_from_u64(1));
        let connection = SharedConnection::new(places, CALL, backoff, move |silent| {
            noted.lock().unwrap().push(silent);
            connect(counted.fetch_add(1, Ordering::SeqCst) + 1)
        });
        Self { connection, attempts, silent }
    }

    /// Each attempt takes a moment and succeeds.
    fn reachable(places: usize) -> Self {
        Self::new(places, |number| sleep(Duration::from_millis(1)).map(move |()| Ok(number)).boxed())
    }

    fn attempts(&self) -> usize {
        self.attempts.load(Ordering::SeqCst)
    }

    /// Makes a call that is answered. Returns the connection that it used, or the error if there is no connection.
    async fn asks(&self, place: usize) -> Result<usize, StoreError> {
        let (answer, _) = self.connection.call(place, async |number| Ok(number)).await?;
        Ok(answer.expect("an answer"))
    }

    /// Makes a call that is not answered. Returns its error.
    async fn asks_in_vain(&self, place: usize) -> StoreError {
        let answer = self.connection.call(place, async |_| pending::<RedisResult<Value>>().await).await;
        answer.expect_err("no answer")
    }
}

#[tokio::test(start_paused = true)]
async fn calls_at_the_same_time_share_one_attempt() {
    let servers = Servers::reachable(1);
    let used = join_all((0..100).map(|_| servers.asks(0))).await;
    assert!(used.iter().all(|used| matches!(used, Ok(1))) && servers.attempts() == 1);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_outlives_the_calls_that_wait_for_it() {
    let slow = 3 * CALL;
    let servers = Servers::new(1, move |number| sleep(slow).map(move |()| Ok(number)).boxed());
    for _ in 0..3 {
        assert!(matches!(servers.asks(0).await, Err(StoreError::Slow(CALL)) | Ok(1)));
    }
    assert_eq!((servers.asks(0).await.unwrap(), servers.attempts()), (1, 1));
    // An attempt that no call waits for any more is not begun again.
    let servers = Servers::new(1, move |number| sleep(slow).map(move |()| Ok(number)).boxed());
    assert!(timeout(CALL / 2, servers.asks(0)).await.is_err());
    advance(2 * slow).await;
    assert_eq!((servers.asks(0).await.unwrap(), servers.attempts()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn after_three_calls_without_an_answer_the_connection_is_made_anew() {
    let servers = Servers::reachable(1);
    servers.asks(0).await.unwrap();
    advance(SETTLED).await;
    for _ in 0..10 {
        servers.asks_in_vain(0).await;
        servers.asks_in_vain(0).await;
        assert_eq!(servers.asks(0).await.unwrap(), 1, "an answer in between counts");
    }
    let silent = join_all((0..100).map(|_| servers.asks_in_vain(0))).await;
    assert!(silent.iter().all(|error| matches!(error, StoreError::Slow(CALL))));
    assert_eq!((servers.asks(0).await.unwrap(), servers.attempts()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn connections_that_do_not_last_are_made_with_pauses_in_which_calls_fail_at_once() {
    let servers = Servers::reachable(1);
    let lost = StoreError::Full;
    let (mut refused, begun) = (0, Instant::now());
    while begun.elapsed() < Duration::from_secs(60) {
        match servers.asks(0).await {
            Ok(number) => servers.connection.refused(number as u64, &lost),
            Err(error) => {
                assert!(matches!(error, StoreError::Full), "{error}");
                refused += 1;
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
    assert!(servers.attempts() <= 60 * 4 + 10 && refused > 10_000, "{} {refused}", servers.attempts());
    // One that lasts is followed by another at once.
    sleep(LONGEST).await;
    let number = servers.asks(0).await.unwrap() as u64;
    sleep(SETTLED).await;
    servers.connection.refused(number, &lost);
    assert_eq!(servers.asks(0).await.unwrap() as u64, number + 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_after_an_answer_is_followed_by_another_at_once() {
    let servers = Servers::reachable(1);
    for number in 1..=5 {
        assert_eq!(servers.asks(0).await.unwrap(), number);
        servers.connection.lost(number as u64, &StoreError::Full);
    }
    // One that breaks before it has answered is not.
    let breaks = async |_| Err::<Value, _>(RedisError::from(io::Error::other("broken")));
    let (_, number) = servers.connection.call(0, breaks).await.unwrap();
    servers.connection.lost(number, &StoreError::Full);
    assert!(servers.asks(0).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn attempts_that_fail_are_repeated_with_pauses_until_one_succeeds() {
    let servers =
        Servers::new(1, |number| ready(if number < 10 { Err(StoreError::Full) } else { Ok(number) }).boxed());
    let mut calls = 0;
    while servers.asks(0).await.is_err() {
        calls += 1;
        sleep(Duration::from_millis(1)).await;
    }
    assert!(servers.attempts() == 10 && calls > 1_000, "{} {calls}", servers.attempts());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_silent_at_one_place_is_used_at_the_others_until_another_is_better() {
    // The second attempt finds the place silent too.
    let servers = Servers::new(3, |number| {
        sleep(CALL / 2).map(move |()| if number == 2 { Err(StoreError::Replica) } else { Ok(number) }).boxed()
    });
    servers.asks(0).await.unwrap();
    for _ in 0..MAX_UNANSWERED {
        servers.asks_in_vain(1).await;
        assert_eq!(servers.asks(0).await.unwrap(), 1);
    }
    sleep(LONGEST).await;
    let (silent, other) = tokio::join!(servers.asks(1), servers.asks(0));
    assert!(matches!((silent, other), (Err(StoreError::Replica), Ok(1))));
    sleep(LONGEST).await;
    assert_eq!((servers.asks(1).await.unwrap(), servers.asks(0).await.unwrap()), (3, 3));
    assert_eq!(*servers.silent.lock().unwrap(), [None, Some(1), Some(1)]);
}

#[tokio::test(start_paused = true)]
async fn what_happens_on_an_earlier_connection_does_not_count() {
    let servers = Servers::reachable(1);
    servers.asks(0).await.unwrap();
    sleep(SETTLED).await;
    let late = join_all((0..10).map(|_| servers.asks_in_vain(0)));
    let renewed = async {
        servers.connection.lost(1, &StoreError::Full);
        servers.asks(0).await.unwrap()
    };
    let (_, renewed) = tokio::join!(late, renewed);
    servers.connection.lost(1, &StoreError::Full);
    assert_eq!((renewed, servers.asks(0).await.unwrap(), servers.attempts()), (2, 2, 2));
}
