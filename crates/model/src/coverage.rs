//! Which situations a search has met, so that a property is not held only because nothing happened.

use std::sync::atomic::{AtomicU32, Ordering};

/// A situation that the model is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Situation {
    /// An outcome counted.
    Settled,
    /// A settle was recognised as a repetition.
    SettleReplayed,
    /// A success counted after its lease.
    LateSuccess,
    /// A success did not count.
    StaleSuccess,
    /// A failure, or a release, did not count.
    StaleFailure,
    /// A cancel met a reserved job.
    CancelRequested,
    /// A call reached the store after its caller had given up.
    LateCall,
    /// A fail-over lost a job that was accepted.
    AcceptedLost,
    /// A fail-over lost a lease number.
    LeaseNumberLost,
    /// A fail-over lost an epoch.
    EpochLost,
    /// A job died because its leases ran out.
    DiedByLoss,
    /// A carrier was fenced.
    Fenced,
}

impl Situation {
    /// All situations.
    pub const ALL: [Self; 12] = [
        Self::Settled,
        Self::SettleReplayed,
        Self::LateSuccess,
        Self::StaleSuccess,
        Self::StaleFailure,
        Self::CancelRequested,
        Self::LateCall,
        Self::AcceptedLost,
        Self::LeaseNumberLost,
        Self::EpochLost,
        Self::DiedByLoss,
        Self::Fenced,
    ];
}

/// The situations that were met.
#[derive(Debug, Default)]
pub(crate) struct Coverage(AtomicU32);

impl Coverage {
    pub(crate) fn note(&self, situation: Situation) {
        let bit = 1 << situation as u32;
        // Most are noted already, and reading does not disturb other threads.
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The situations, in order.
    pub(crate) fn met(&self) -> Vec<Situation> {
        let bits = self.0.load(Ordering::Relaxed);
        Situation::ALL.into_iter().filter(|situation| bits & (1 << *situation as u32) != 0).collect()
    }
}
