//! A connection that many calls share, whatever they send. The first call that needs it makes it, and the others wait
//! for that. It is made anew after it was lost, and after several calls in a row without an answer: a dead network path
//! looks like a slow server. Pauses between attempts grow.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::RedisResult;
use ringback_core::backoff::Backoff;
use ringback_core::store_types::StoreError;
use tokio::time::{Instant, timeout_at};

/// After this many calls in a row without an answer the connection is made anew.
const MAX_UNANSWERED: u8 = 3;
/// A connection that lasted this long is made anew without a pause.
const SETTLED: Duration = Duration::from_secs(5);
/// The first pause between two attempts to connect, before jitter.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(25);

type Connecting<C> = BoxFuture<'static, Result<C, StoreError>>;
/// Begins an attempt to connect. The argument is the place where the present connection is silent; `None` without one.
type Connect<C> = Box<dyn Fn(Option<usize>) -> Connecting<C> + Send + Sync>;

/// The connection, and how it is made.
///
/// Calls go to places, the servers behind the connection, counted from 0. Each place has its own count of calls without
/// an answer. A connection that is silent at one place is used for the others until a new one is made.
pub(super) struct SharedConnection<C> {
    state: RwLock<State<C>>,
    /// For each place, how many calls in a row were not answered.
    unanswered: Box<[AtomicU8]>,
    /// Whether the present connection has answered a call.
    has_answered: AtomicBool,
    connect: Connect<C>,
    call_timeout: Duration,
}

struct State<C> {
    current: Option<Current<C>>,
    attempt: Option<Attempt<C>>,
    /// How many attempts have begun.
    attempts: u64,
    backoff: Backoff,
    /// No attempt begins before this time.
    paused_until: Option<Instant>,
    /// Why the last connection or attempt ended; the answer to calls during a pause.
    error: StoreError,
}

/// The connection that is used.
struct Current<C> {
    connection: C,
    /// The number of the attempt that made it.
    number: u64,
    since: Instant,
}

/// The attempt that is under way. The calls that wait for it drive it; if all give up, the next call continues it.
struct Attempt<C> {
    number: u64,
    connecting: Shared<Connecting<C>>,
}

/// What a call does next to have a connection.
enum Step<C> {
    Use(C, u64),
    Wait(Shared<Connecting<C>>, u64),
}

impl<C: Clone + Send + Sync + 'static> SharedConnection<C> {
    /// Creates it without connecting; the first call does that. `backoff` gives the pauses between attempts.
    pub(super) fn new(
        places: usize,
        call_timeout: Duration,
        backoff: Backoff,
        connect: impl Fn(Option<usize>) -> Connecting<C> + Send + Sync + 'static,
    ) -> Self {
        let state = State {
            current: None,
            attempt: None,
            attempts: 0,
            backoff,
            paused_until: None,
            error: StoreError::Slow(call_timeout),
        };
        Self {
            state: RwLock::new(state),
            unanswered: (0..places).map(|_| AtomicU8::new(0)).collect(),
            has_answered: AtomicBool::new(false),
            connect: Box::new(connect),
            call_timeout,
        }
    }

    /// Connects if there is no usable connection, then runs `send`, all within the time limit of a call. Returns what
    /// `send` returned and the number of its connection, for [`Self::lost`]. Fails with `Slow` after the time limit, or
    /// at once with the last error during a pause between attempts.
    pub(super) async fn call<T>(
        &self,
        place: usize,
        send: impl AsyncFnOnce(C) -> RedisResult<T>,
    ) -> Result<(RedisResult<T>, u64), StoreError> {
        let slow = StoreError::Slow(self.call_timeout);
        let deadline = Instant::now() + self.call_timeout;
        let usable = self.usable(&self.read(), place);
        let has_waited = usable.is_none();
        let (connection, number) = match usable {
            Some(usable) => usable,
            None => match timeout_at(deadline, self.connected(place)).await {
                Ok(connected) => connected?,
                Err(_elapsed) => return Err(slow),
            },
        };
        match timeout_at(deadline, send(connection)).await {
            Ok(Err(error)) if error.is_timeout() => {}
            Ok(answer) => {
                if answer.is_ok() {
                    self.answered(place);
                }
                return Ok((answer, number));
            }
            Err(_elapsed) => {}
        }
        // A call that waited for its connection may have left the server too little time.
        if !has_waited {
            self.not_answered(place, number);
        }
        Err(slow)
    }

    /// Returns the present connection and its number; `None` if there is none.
    pub(super) fn current(&self) -> Option<(C, u64)> {
        self.read().current.as_ref().map(|current| (current.connection.clone(), current.number))
    }

    /// Returns the number of the present connection; `None` if there is none.
    pub(super) fn number(&self) -> Option<u64> {
        self.read().current.as_ref().map(|current| current.number)
    }

    /// Drops the connection of this number, which broke, if it is the present one. The next call makes another, without
    /// a pause if this one has answered a call.
    pub(super) fn lost(&self, number: u64, why: &StoreError) {
        self.replace(number, why, self.has_answered.load(Ordering::Relaxed));
    }

    /// Drops the connection of this number, whose server refuses calls, if it is the present one. The next call makes
    /// another, after a pause if this one lasted less than [`SETTLED`].
    pub(super) fn refused(&self, number: u64, why: &StoreError) {
        self.replace(number, why, false);
    }

    fn replace(&self, number: u64, why: &StoreError, at_once: bool) {
        let mut state = self.write();
        if state.current.as_ref().is_none_or(|current| current.number != number) {
            return;
        }
        if at_once {
            state.forget_pauses(why.clone());
        } else {
            state.give_up(why.clone());
        }
        state.current = None;
    }

    /// Returns the present connection and its number; `None` if there is none or it is silent at this place.
    fn usable(&self, state: &State<C>, place: usize) -> Option<(C, u64)> {
        let current = state.current.as_ref()?;
        let is_silent = self.unanswered[place].load(Ordering::Relaxed) >= MAX_UNANSWERED;
        (!is_silent).then(|| (current.connection.clone(), current.number))
    }

    /// Waits for a connection. Fails with the error of the attempt, and at once with the last error during a pause.
    async fn connected(&self, place: usize) -> Result<(C, u64), StoreError> {
        match self.next_step(place)? {
            Step::Use(connection, number) => Ok((connection, number)),
            Step::Wait(connecting, number) => {
                let made = connecting.await;
                self.ended(number, &made);
                Ok((made?, number))
            }
        }
    }

    fn next_step(&self, place: usize) -> Result<Step<C>, StoreError> {
        let mut state = self.write();
        // Another call may have connected by now.
        if let Some((connection, number)) = self.usable(&state, place) {
            return Ok(Step::Use(connection, number));
        }
        if state.attempt.is_none() {
            if state.paused_until.is_some_and(|until| Instant::now() < until) {
                return Err(state.error.clone());
            }
            state.attempts += 1;
            let silent = state.current.is_some().then_some(place);
            let connecting = (self.connect)(silent).shared();
            state.attempt = Some(Attempt { number: state.attempts, connecting });
        }
        let Attempt { number, connecting } =
            state.attempt.as_ref().expect("it was begun at the latest above");
        Ok(Step::Wait(connecting.clone(), *number))
    }

    /// Records the end of an attempt: the new connection, or a pause. Does nothing if another call has recorded it.
    fn ended(&self, number: u64, made: &Result<C, StoreError>) {
        let mut state = self.write();
        if state.attempt.take_if(|attempt| attempt.number == number).is_none() {
            return;
        }
        match made {
            Ok(connection) => {
                let (connection, since) = (connection.clone(), Instant::now());
                state.current = Some(Current { connection, number, since });
                self.unanswered.iter().for_each(|count| count.store(0, Ordering::Relaxed));
                self.has_answered.store(false, Ordering::Relaxed);
            }
            Err(error) => state.pause(error.clone()),
        }
    }

    fn answered(&self, place: usize) {
        let count = &self.unanswered[place];
        // Written only on a change, because every answered call comes here.
        if count.load(Ordering::Relaxed) != 0 {
            count.store(0, Ordering::Relaxed);
        }
        if !self.has_answered.load(Ordering::Relaxed) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
    }

    fn not_answered(&self, place: usize, number: u64) {
        let mut state = self.write();
        let Some(current) = state.current.as_ref().filter(|current| current.number == number) else { return };
        let count = self.unanswered[place].load(Ordering::Relaxed).saturating_add(1);
        if count > MAX_UNANSWERED {
            return;
        }
        self.unanswered[place].store(count, Ordering::Relaxed);
        if count == MAX_UNANSWERED {
            let had_settled = current.since.elapsed() >= SETTLED;
            state.give_up(StoreError::Slow(self.call_timeout));
            drop(state);
            log_silence(had_settled);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State<C>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<C>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    /// Allows an attempt at once if the present connection lasted for [`SETTLED`], else after a pause. Keeps the error.
    fn give_up(&mut self, why: StoreError) {
        if self.current.as_ref().is_some_and(|current| current.since.elapsed() >= SETTLED) {
            self.forget_pauses(why);
        } else {
            self.pause(why);
        }
    }

    fn forget_pauses(&mut self, why: StoreError) {
        self.backoff.reset();
        (self.paused_until, self.error) = (None, why);
    }

    fn pause(&mut self, why: StoreError) {
        self.paused_until = Some(Instant::now() + self.backoff.next());
        self.error = why;
    }
}

/// Logs that a connection gives no answers: a warning if it had lasted for [`SETTLED`], else at debug, so that a server
/// that accepts connections and stays silent does not fill the log.
fn log_silence(had_settled: bool) {
    let unanswered = MAX_UNANSWERED;
    if had_settled {
        tracing::warn!(unanswered, "the connection to the store gives no answers; connecting anew");
    } else {
        tracing::debug!(unanswered, "the connection to the store gives no answers; connecting anew");
    }
}

#[cfg(test)]
mod tests;
