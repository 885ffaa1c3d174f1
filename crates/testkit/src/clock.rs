//! The wall clock of the test, which the servers under test share because they run on the same machine.

use jiff::Timestamp;

/// The current time.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a receiver has no store whose clock it could ask")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
