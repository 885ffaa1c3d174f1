//! Limits that several parts of the system must agree on: sizes of batches, lengths of leases and locks, lost leases,
//! counts of imported jobs, and lengths of reasons, errors and idempotency keys, with functions that apply them. A
//! limit of a single type is defined beside that type.

use std::time::Duration;

use crate::job::{DEFAULT_TIMEOUT, MAX_TTR};

/// The most jobs in one store call.
pub const MAX_BATCH: usize = 500;
/// The most bytes in one submit call.
pub const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// The longest push lease, without the margin. A longer attempt renews its lease.
pub const MAX_LEASE_STRETCH: Duration = Duration::from_secs(15);
/// The longest lease: that of a pull job, counted from when it is granted or renewed. A push lease is shorter, even
/// with the longest margin.
pub const MAX_LEASE: Duration = MAX_TTR;
/// The longest time for which a consumer may keep a pull job by renewals, counted from when it reserved the job.
pub const MAX_RENEWED: Duration = Duration::from_secs(24 * 3600);
/// The longest time for which a carrier may keep its shards, or a bulk operation, without a heartbeat.
pub const MAX_LOCK_TTL: Duration = Duration::from_secs(300);
/// The longest time for which a dead-letter notice that was not accepted waits.
pub const MAX_NOTICE_DELAY: Duration = Duration::from_secs(60);
/// After this many leases in a row that ran out without an outcome, a job is dead with reason `lost`.
pub const MAX_LOST: u32 = 5;
/// The longest reason of a dead job, in bytes.
pub const MAX_REASON: usize = 64;
/// The longest error of an attempt, in bytes.
pub const MAX_ERROR: usize = 128;
/// The most attempts and the most failures that an imported job may have: half of what can be counted.
pub const MAX_IMPORTED_COUNT: u32 = u32::MAX / 2;

/// The longest idempotency key, in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// Whether a text can be an idempotency key: 1 to 255 visible ASCII characters.
pub fn is_idempotency_key(text: &str) -> bool {
    (1..=MAX_IDEMPOTENCY_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The first lease of a push job, without the margin: its timeout or the default one, up to [`MAX_LEASE_STRETCH`].
pub fn lease_stretch(timeout: Option<Duration>) -> Duration {
    timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_LEASE_STRETCH)
}

/// The first 64 bytes or less of a name that a caller has sent, for an error that repeats it.
pub fn name_start(name: &str) -> String {
    truncated(name, 64).to_owned()
}

/// The start of a text: at most `max` bytes, cut between two characters.
pub fn truncated(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}
