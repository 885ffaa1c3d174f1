//! How many files, sockets included, the process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, warn};

/// What a process opens beside what its work needs: the store, the admin port and those who
/// ask it, look-ups of names, traces, the log.
pub const RESERVE: u64 = 64;

/// The most that `raise` can get; unlimited where the system does not tell.
#[must_use]
pub fn most() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard)
}

/// Whether `needed` files beside [`RESERVE`] may be open at once, of `most` in all.
///
/// # Errors
/// How many may be instead.
pub const fn fits(needed: u64, most: u64) -> Result<(), u64> {
    let left = most.saturating_sub(RESERVE);
    if needed <= left { Ok(()) } else { Err(left) }
}

/// Raises the soft limit, often 1024, to the hard one. The soft one is that low for the sake
/// of programs that use `select`, and this is none.
pub(crate) fn raise() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        }
        Ok((soft, hard))
    });
    match raised {
        Ok((soft, hard)) => debug!(soft, hard, "the limit of open files is the hard one"),
        Err(error) => warn!(error = %error, "the limit of open files stays as it is"),
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
    fn raising_gets_the_hard_limit() {
        raise();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE), Ok((most(), most())));
    }
}
