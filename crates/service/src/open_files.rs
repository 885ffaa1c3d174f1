//! The limit of open files (sockets included): raising it, and checking or choosing numbers that fit it.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, warn};

/// Files kept free for the process itself: the store, the admin port and its clients, DNS lookups,
/// traces, the log.
pub const RESERVE: u64 = 64;

/// Returns the hard limit, or `u64::MAX` if the system does not report one.
#[must_use]
pub fn hard_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard)
}

/// Checks that `needed` files plus [`RESERVE`] fit `limit`.
///
/// # Errors
/// The largest number that fits.
pub const fn fits(needed: u64, limit: u64) -> Result<(), u64> {
    let left = limit.saturating_sub(RESERVE);
    if needed <= left { Ok(()) } else { Err(left) }
}

/// `wanted` connections, or half of `limit` if that is less.
#[must_use]
pub fn half_of(limit: u64, wanted: usize) -> usize {
    usize::try_from(limit / 2).map_or(wanted, |half| half.min(wanted))
}

/// Raises the soft limit, often 1024, to the hard limit. The low default exists for programs that
/// use `select`, which Ringback does not.
pub(crate) fn raise() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        }
        Ok((soft, hard))
    });
    match raised {
        Ok((soft, hard)) => debug!(soft, hard, "raised the limit of open files to the hard limit"),
        Err(error) => warn!(error = %error, "cannot raise the limit of open files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_left_free() {
        assert_eq!(fits(960, 1024), Ok(()));
        assert_eq!(fits(961, 1024), Err(960));
        assert_eq!(fits(1, 10), Err(0));
        assert_eq!(fits(65_536, u64::MAX), Ok(()));
    }

    #[test]
    fn connections_leave_half_of_the_files() {
        assert_eq!((half_of(1024, 10_000), half_of(u64::MAX, 10_000)), (512, 10_000));
    }

    #[test]
    fn raising_gets_the_hard_limit() {
        raise();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE), Ok((hard_limit(), hard_limit())));
    }
}
