//! Waiting for something that will be true soon, with the last reason why it was not in the message.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Calls `check` every 10 ms until it answers `Ok`, and gives back what it answered.
///
/// # Panics
/// When `within` has passed, with `what` and the last reason.
pub async fn eventually<T, E: Display>(
    within: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + within;
    let mut last = "nothing was seen".to_owned();
    // A look that is over at once never meets the time-out, so the clock is asked as well.
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
