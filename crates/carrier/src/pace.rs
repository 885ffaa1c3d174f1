//! How long a carrier may sleep over a shard: exactly until the next moment that matters,
//! and never longer than the floor, in case a wake-up was lost. Pure.

use std::time::Duration;

/// A carrier looks at a shard at least this often.
pub(crate) const FLOOR: Duration = Duration::from_secs(5);
/// Between a look that found something and the next one, at a shard that is not behind. What
/// becomes due within it is taken together.
pub(crate) const BREATH: Duration = Duration::from_millis(1);

/// When something of a shard will be due, from the last look on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// A job.
    pub(crate) due: Option<Duration>,
    /// A lease.
    pub(crate) lease: Option<Duration>,
    /// A dead job's removal.
    pub(crate) dead: Option<Duration>,
}

/// What to do next for a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Jobs are due.
    Promote,
    /// Leases have run out.
    Recover,
    /// Dead jobs have been kept long enough.
    Expire,
    /// Nothing, for so long.
    Sleep(Duration),
}

/// What comes first. Due jobs go before leases, leases before removals; each look is
/// bounded, and after a full one the others have their turn (`last` was just done).
pub(crate) fn next(waits: Waits, last: Option<Next>) -> Next {
    let now = |wait: Option<Duration>| wait == Some(Duration::ZERO);
    let order =
        [(now(waits.due), Next::Promote), (now(waits.lease), Next::Recover), (now(waits.dead), Next::Expire)];
    let due = || order.iter().filter(|(due, _)| *due).map(|(_, what)| *what);
    if let Some(what) = due().find(|what| Some(*what) != last).or_else(|| due().next()) {
        return what;
    }
    let first = [waits.due, waits.lease, waits.dead].into_iter().flatten().min();
    Next::Sleep(first.unwrap_or(FLOOR).min(FLOOR))
}

/// What to try after `failed` got no answer: each in turn, so that one edge that fails does
/// not keep the others from their work.
pub(crate) const fn after_failure(failed: Next) -> Next {
    match failed {
        Next::Promote | Next::Sleep(_) => Next::Recover,
        Next::Recover => Next::Expire,
        Next::Expire => Next::Promote,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Option<Duration> {
        Some(Duration::from_millis(n))
    }

    #[test]
    fn it_sleeps_exactly_until_the_next_moment_and_no_longer_than_the_floor() {
        let waits = Waits { due: ms(300), lease: ms(200), dead: None };
        assert_eq!(next(waits, None), Next::Sleep(Duration::from_millis(200)));
        assert_eq!(next(Waits::default(), None), Next::Sleep(FLOOR));
        assert_eq!(next(Waits { due: ms(90_000), ..Waits::default() }, None), Next::Sleep(FLOOR));
    }

    #[test]
    fn what_is_due_is_done_at_once_and_a_backlog_of_one_kind_does_not_starve_the_others() {
        let all = Waits { due: ms(0), lease: ms(0), dead: ms(0) };
        assert_eq!(next(all, None), Next::Promote);
        assert_eq!(next(all, Some(Next::Promote)), Next::Recover);
        let only = Waits { due: ms(0), lease: ms(9), dead: None };
        assert_eq!(next(only, Some(Next::Promote)), Next::Promote);
    }

    #[test]
    fn after_failures_each_has_its_turn() {
        let three: Vec<_> =
            std::iter::successors(Some(Next::Promote), |next| Some(after_failure(*next))).take(4).collect();
        assert_eq!(three, [Next::Promote, Next::Recover, Next::Expire, Next::Promote]);
    }
}
