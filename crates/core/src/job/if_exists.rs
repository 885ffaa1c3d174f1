//! [`IfExists`]: what a submit does if a job with its topic and id exists already.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::token::Token;

/// What a submit does to a job that has its key already. The result for each state is in the table of
/// [`SubmitResult`](crate::store_types::SubmitResult).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Nothing.
    #[default]
    Refuse,
    /// The submit takes the job's place, with its content and its time.
    Replace {
        /// Identifies the submit.
        token: Token,
    },
    /// The submit takes the place of a job that is delayed or ready and has other content. No job is delivered again.
    Update {
        /// Identifies the submit.
        token: Token,
    },
    /// The submit takes the job's place, but the job is due no later than `max_delay` after its first submit. Each
    /// submit postpones the job, so that only the last one of a burst is delivered (debounce).
    Postpone {
        /// Identifies the submit.
        token: Token,
        /// The longest time from [`Job::created`](super::Job::created) to the due time; `None` for no
        /// limit. The limits of earlier submits do not count.
        max_delay: Option<Duration>,
    },
}

impl IfExists {
    /// The token of the submit; `None` for one that changes no job.
    pub const fn token(&self) -> Option<Token> {
        match self {
            Self::Refuse => None,
            Self::Replace { token } | Self::Update { token } | Self::Postpone { token, .. } => Some(*token),
        }
    }

    /// The latest due time of a job that was created at this time; `None` if there is no limit.
    pub fn latest(&self, created: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Refuse
            | Self::Replace { .. }
            | Self::Update { .. }
            | Self::Postpone { max_delay: None, .. } => None,
            Self::Postpone { max_delay: Some(max_delay), .. } => Some(created.plus(*max_delay)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_postponement_with_a_limit_has_a_latest_due_time() {
        let (token, created) = (Token([1; 8]), Timestamp::from_millis(1_000));
        let postpone = |max_delay| IfExists::Postpone { token, max_delay };
        let limited = postpone(Some(Duration::from_millis(7)));
        assert_eq!(limited.latest(created), Some(Timestamp::from_millis(1_007)));
        let others = [IfExists::Refuse, IfExists::Replace { token }, IfExists::Update { token }];
        for other in others.into_iter().chain([postpone(None)]) {
            assert_eq!(other.latest(created), None, "{other:?}");
        }
        assert_eq!((IfExists::default().token(), limited.token()), (None, Some(token)));
    }
}
