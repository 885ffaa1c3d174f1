//! The states of a job. The transitions between them are in docs/concepts/life-of-a-job.md.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[schema(as = JobState)]
pub enum State {
    /// Waiting for its due time.
    Delayed,
    /// Due, waiting to be reserved.
    Ready,
    /// Under a lease, being delivered.
    Reserved,
    Done,
    /// Failed for good and kept, with a reason.
    Dead,
    Cancelled,
}

impl State {
    /// Whether the job has ended and only a tombstone is left. A dead job is kept and can still move.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn only_done_and_cancelled_are_terminal() {
        let terminal: Vec<_> = State::VARIANTS.iter().copied().filter(|s| s.is_terminal()).collect();
        assert_eq!(terminal, [State::Done, State::Cancelled]);
    }
}
