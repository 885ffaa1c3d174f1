//! The states of a job. The edges between them are in docs/lifecycle.md.

use std::fmt;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for its due time.
    Delayed,
    /// Due, waiting to be reserved.
    Ready,
    /// Under a lease, being delivered.
    Reserved,
    /// Delivered.
    Done,
    /// Failed for good and kept, with a reason.
    Dead,
    /// Cancelled on request.
    Cancelled,
}

impl State {
    /// All states, in the order of a life.
    pub const ALL: [Self; 6] =
        [Self::Delayed, Self::Ready, Self::Reserved, Self::Done, Self::Dead, Self::Cancelled];

    /// Its name in the API, the metrics and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Ready => "ready",
            Self::Reserved => "reserved",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the job has ended and only a tombstone is left. A dead job is kept and can still move.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_done_and_cancelled_are_terminal() {
        let terminal: Vec<_> = State::ALL.into_iter().filter(|s| s.is_terminal()).collect();
        assert_eq!(terminal, [State::Done, State::Cancelled]);
    }
}
