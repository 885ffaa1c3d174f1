//! The wall clock of tests, and the wait until a condition holds.

use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout_at};

/// The pause between two checks.
const POLL: Duration = Duration::from_millis(10);

/// The current time, which the servers under test share because they run on the same machine.
#[expect(clippy::disallowed_methods, reason = "a receiver has no store whose clock it could ask")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Calls `check` every 10 ms until it returns `Ok`, and returns that value. Panics after `within` with `what` and the
/// last error.
pub async fn eventually<T, E: Display>(
    within: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + within;
    let mut last = "nothing was seen".to_owned();
    // A check that returns at once never meets the time-out, so the clock is checked too.
    while Instant::now() < deadline
        && let Ok(seen) = timeout_at(deadline, check()).await
    {
        match seen {
            Ok(value) => return value,
            Err(reason) => last = reason.to_string(),
        }
        sleep(POLL).await;
    }
    panic!("after {within:?} still waiting for this: {what}; last: {last}");
}
