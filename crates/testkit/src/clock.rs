//! The wall clock as receivers see it; the servers under test run on the same machine and so share it.

use jiff::Timestamp;

/// The time now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a receiver has no store whose clock it could ask")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
