//! `Repeats`: decides whether a call that the receiver has not processed is sent again within the same attempt, after
//! which pause, and on which connection. Pure.

use std::time::Duration;

use super::attempted::Ending;
use crate::client::{ConnectionChoice, PostError};

/// The pauses before a call is sent again that was not processed, which a receiver says over HTTP/2. One that goes on
/// saying so has failed.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::ZERO, Duration::from_millis(100), Duration::from_millis(900)];

/// How a call is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) pause: Duration,
    pub(super) wanted: ConnectionChoice,
}

/// The calls of one attempt.
#[derive(Default)]
pub(super) struct Repeats {
    /// Calls that were not processed.
    unprocessed: usize,
    /// Whether a kept connection has ended under one.
    has_ended: bool,
}

impl Repeats {
    /// How to send the call again after it ended so; `None` if the attempt is over. A kept connection that broke is
    /// replaced once, and a call that was not processed is repeated four times.
    pub(super) fn after(&mut self, ending: &Ending) -> Option<Sending> {
        match ending {
            Ending::Answered(Err(PostError::Ended)) if !self.has_ended => {
                self.has_ended = true;
                Some(Sending { pause: Duration::ZERO, wanted: ConnectionChoice::New })
            }
            Ending::Answered(Err(PostError::Unprocessed)) => {
                let pause = *PAUSES.get(self.unprocessed)?;
                // The first new connection is for all that the last one has left over.
                let wanted =
                    if self.unprocessed == 0 { ConnectionChoice::Any } else { ConnectionChoice::New };
                self.unprocessed += 1;
                Some(Sending { pause, wanted })
            }
            Ending::Answered(_) | Ending::Expired | Ending::LeaseLost | Ending::CutOff => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_repeated_once_when_a_kept_connection_ends_and_a_few_times_when_it_was_not_processed() {
        let mut repeats = Repeats::default();
        let mut after = |error| repeats.after(&Ending::Answered(Err(error)));
        let at_once = Sending { pause: Duration::ZERO, wanted: ConnectionChoice::New };
        assert_eq!(after(PostError::Ended), Some(at_once));
        assert_eq!(after(PostError::Ended), None);
        assert_eq!(after(PostError::Unprocessed), Some(Sending::default()));
        assert_eq!(after(PostError::Unprocessed), Some(at_once));
        for pause in &PAUSES[2..] {
            assert_eq!(after(PostError::Unprocessed).map(|sending| sending.pause), Some(*pause));
        }
        assert_eq!(after(PostError::Unprocessed), None);
        for error in [PostError::Broken, PostError::Timeout, PostError::Reset, PostError::Refused] {
            assert_eq!(after(error), None, "{error:?}");
        }
    }
}
