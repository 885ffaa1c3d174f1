//! Faults planted in the scripts and in the processes, each of which the search must find.

/// A mistake that a store or a process could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Carriers' scripts do not compare epochs.
    FenceUnchecked,
    /// An epoch is the counter and one, without the clock.
    EpochWithoutClock,
    /// An epoch is the clock, without the counter.
    EpochWithoutCounter,
    /// A lease number is the counter and one, without the clock.
    LeaseWithoutClock,
    /// A receipt is the number of the attempt.
    AttemptAsReceipt,
    /// Promote takes jobs from the schedule in one call and queues them in another.
    PromoteInTwoSteps,
    /// Recover takes back leases that have not run out.
    RecoverEarly,
    /// Recover leaves jobs alone whose cancel was requested.
    RecoverSkipsRequests,
    /// A push lease that ran out counts as a failure.
    RunOutIsFailure,
    /// Leases lost in a row are not counted.
    LossesUncounted,
    /// A repeated reserve is not recognised.
    ReserveForgetsCaller,
    /// Ready queues hold whole jobs, and reserve does not look at records.
    EntriesUnchecked,
    /// A settle does not compare receipts.
    SettleUnchecked,
    /// A failure under a lease that is no longer current counts.
    StaleFailureCounts,
    /// A failure of a later attempt hides from a cancel that a lease ran out before.
    LossForgotten,
    /// A settle ignores a cancel that was requested.
    RequestForgotten,
    /// A settle removes the batch of its lease although other jobs are in it.
    BatchDropped,
    /// A settle removes the batch of its lease when its caller knows of no other job in it.
    CallerTrusted,
    /// A renew does not compare receipts.
    RenewUnchecked,
    /// A cancel ends a job that is reserved.
    CancelIgnoresLease,
    /// A submit does not look at tombstones.
    TombstonesIgnored,
    /// The caller of a reserve counts its jobs in a call of its own.
    LedgerOutside,
    /// The caller of a bury writes the outbox in a call of its own.
    OutboxOutside,
    /// The relay acknowledges entries before their notices are stored.
    AcknowledgeFirst,
    /// The relay makes notices for all jobs that it knows.
    NoticesForAll,
}

impl Planted {
    /// All faults.
    pub const ALL: [Self; 25] = [
        Self::FenceUnchecked,
        Self::EpochWithoutClock,
        Self::EpochWithoutCounter,
        Self::LeaseWithoutClock,
        Self::AttemptAsReceipt,
        Self::PromoteInTwoSteps,
        Self::RecoverEarly,
        Self::RecoverSkipsRequests,
        Self::RunOutIsFailure,
        Self::LossesUncounted,
        Self::ReserveForgetsCaller,
        Self::EntriesUnchecked,
        Self::SettleUnchecked,
        Self::StaleFailureCounts,
        Self::LossForgotten,
        Self::RequestForgotten,
        Self::BatchDropped,
        Self::CallerTrusted,
        Self::RenewUnchecked,
        Self::CancelIgnoresLease,
        Self::TombstonesIgnored,
        Self::LedgerOutside,
        Self::OutboxOutside,
        Self::AcknowledgeFirst,
        Self::NoticesForAll,
    ];
}
