//! Chooses the next pass over a shard, or how long to sleep: exactly until something is due, but at most 5 s, in case
//! a wake-up was lost. Defines the kinds of passes. Makes no calls and reads no clock.

use std::time::Duration;

use strum::VariantArray as _;

/// The longest sleep between two passes over a shard.
pub(crate) const MAX_SLEEP: Duration = Duration::from_secs(5);
/// The shortest sleep after a pass that moved jobs, unless more jobs are due at once. The next pass moves all jobs
/// that became due meanwhile.
pub(crate) const MIN_SLEEP: Duration = Duration::from_millis(1);

/// The kinds of passes over a shard, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
pub(crate) enum PassKind {
    /// Makes due jobs ready.
    Promote,
    /// Ends expired leases.
    Recover,
    /// Removes dead jobs after their retention.
    Evict,
}

impl PassKind {
    /// Returns the kind to try after a pass of this kind failed: the next in turn, so that none blocks the others.
    pub(crate) const fn after_failure(self) -> Self {
        match self {
            Self::Promote => Self::Recover,
            Self::Recover => Self::Evict,
            Self::Evict => Self::Promote,
        }
    }
}

/// For each [`PassKind`], the time until its next job, lease or dead job is due: zero for now, `None` for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NextDue(pub(crate) [Option<Duration>; 3]);

/// What to do next for a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Pass(PassKind),
    Sleep(Duration),
}

/// Returns the next step after a pass of the kind `last`: a pass of the most urgent kind that is due, but of `last`
/// only if no other kind is due, so that a backlog of one kind does not starve the others. If none is due, a sleep
/// until one is, at most [`MAX_SLEEP`].
pub(crate) fn next_step(next_due: NextDue, last: Option<PassKind>) -> Step {
    let is_due = |kind: &PassKind| next_due.0[*kind as usize] == Some(Duration::ZERO);
    let due = || PassKind::VARIANTS.iter().copied().filter(is_due);
    match due().find(|kind| Some(*kind) != last).or_else(|| due().next()) {
        Some(kind) => Step::Pass(kind),
        None => Step::Sleep(next_due.0.into_iter().flatten().min().unwrap_or(MAX_SLEEP).min(MAX_SLEEP)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Option<Duration> {
        Some(Duration::from_millis(n))
    }

    #[test]
    fn it_sleeps_exactly_until_something_is_due_and_no_longer_than_the_maximum() {
        assert_eq!(next_step(NextDue([ms(300), ms(200), None]), None), Step::Sleep(ms(200).unwrap()));
        assert_eq!(next_step(NextDue::default(), None), Step::Sleep(MAX_SLEEP));
        assert_eq!(next_step(NextDue([ms(90_000), None, None]), None), Step::Sleep(MAX_SLEEP));
    }

    #[test]
    fn what_is_due_is_done_at_once_and_a_backlog_of_one_kind_does_not_starve_the_others() {
        let all = NextDue([ms(0); 3]);
        assert_eq!(next_step(all, None), Step::Pass(PassKind::Promote));
        assert_eq!(next_step(all, Some(PassKind::Promote)), Step::Pass(PassKind::Recover));
        let only = NextDue([ms(0), ms(9), None]);
        assert_eq!(next_step(only, Some(PassKind::Promote)), Step::Pass(PassKind::Promote));
    }

    #[test]
    fn after_failures_each_kind_has_its_turn() {
        let turns = std::iter::successors(Some(PassKind::Promote), |kind| Some(kind.after_failure()));
        assert_eq!(turns.take(3).collect::<Vec<_>>(), PassKind::VARIANTS);
        assert_eq!(PassKind::Evict.after_failure(), PassKind::Promote);
    }
}
