//! The states a job can be in, and the edges between them. Which script carries out
//! which edge is told in docs/lifecycle.md.

use std::fmt;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for its due time.
    Delayed,
    /// Due, waiting to be handed over.
    Ready,
    /// Being handed over, under a lease.
    Reserved,
    /// Handed over.
    Done,
    /// Given up and kept, with a reason.
    Dead,
    /// Cancelled on request.
    Cancelled,
}

impl State {
    /// All states, in the order of a life.
    pub const ALL: [Self; 6] =
        [Self::Delayed, Self::Ready, Self::Reserved, Self::Done, Self::Dead, Self::Cancelled];

    /// The word used in the API, the metrics and the docs.
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

    /// Whether nothing but its memory is left. A dead job is kept and can still move.
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
