//! Faults of the calls of one role to the store: calls take time, fail, lose their answers, arrive late, or do not
//! arrive at all. A seed decides which.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_store::{CallFault, CallFaults};

/// The quality of a role's connection to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Every call is answered at once.
    Good,
    /// Calls take up to some milliseconds.
    Slow,
    /// Of a hundred calls, this many fail, and as many lose their answers. The others are slow.
    Flaky(u32),
    /// Of a hundred calls, this many are given up by their callers and arrive up to 15 s later. The others are slow.
    Late(u32),
    /// No call arrives.
    Cut,
}

/// How late a call can arrive, in ms: after the end of a lease and of a lock.
const LATEST: u64 = 15_000;

/// Chooses the fault of each call of one role.
pub(crate) struct RoleCalls(Mutex<(Line, StdRng)>);

impl RoleCalls {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new((Line::Good, StdRng::seed_from_u64(seed))))
    }

    pub(crate) fn set(&self, line: Line) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = line;
    }
}

impl CallFaults for RoleCalls {
    fn next(&self) -> CallFault {
        let (line, rng) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut some_ms = || Duration::from_millis(rng.random_range(0..4));
        let slow = CallFault::Delayed { request: some_ms(), answer: some_ms() };
        match *line {
            Line::Good => CallFault::Delayed { request: Duration::ZERO, answer: Duration::ZERO },
            Line::Flaky(percent) => match rng.random_range(0..100) {
                n if n < percent => CallFault::Failed,
                n if n < 2 * percent => CallFault::AnswerLost,
                _ => slow,
            },
            Line::Late(percent) if rng.random_range(0..100) < percent => {
                CallFault::Late(Duration::from_millis(rng.random_range(0..LATEST)))
            }
            Line::Slow | Line::Late(_) => slow,
            Line::Cut => CallFault::Swallowed,
        }
    }
}
