//! What must hold in every state that is reached. `check` says how each is checked.

/// A property, named in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// A job that was accepted exists, as long as no fail-over has lost it.
    NothingLost,
    /// A job is in exactly one state, and where a script would look for it.
    OneState,
    /// States change by the documented edges only; done and cancelled jobs stay so.
    AllowedEdges,
    /// The counts of the shard equal its jobs.
    Ledger,
    /// Attempts, failures and leases lost in a row are those that took place.
    Counters,
    /// A carrier whose epoch is not the last one changes nothing.
    Fence,
    /// Epochs and lease numbers never repeat and never shrink.
    NumbersGrow,
    /// A job has at most one lease that has not run out.
    OneLiveLease,
    /// A reserve that is repeated grants nothing new.
    OneGrantPerCall,
    /// A lease that is no longer current changes nothing, but for a success that completes a job.
    StaleSettles,
    /// No attempt of a job begins after the answer that it is cancelled, unless that names one; a requested cancel is obeyed.
    Cancel,
    /// After a job is done an attempt begins only under a lease that was granted before.
    NoPostAfterDone,
    /// A job is done only if its receiver has accepted it.
    DoneMeansDelivered,
    /// Every death has an entry in the outbox or a notice.
    OutboxComplete,
    /// There is a notice only for a job that died.
    NoticesTrue,
    /// Once faults stop, every job ends and the outbox becomes empty.
    Drains,
}

impl Property {
    /// All properties.
    pub const ALL: [Self; 16] = [
        Self::NothingLost,
        Self::OneState,
        Self::AllowedEdges,
        Self::Ledger,
        Self::Counters,
        Self::Fence,
        Self::NumbersGrow,
        Self::OneLiveLease,
        Self::OneGrantPerCall,
        Self::StaleSettles,
        Self::Cancel,
        Self::NoPostAfterDone,
        Self::DoneMeansDelivered,
        Self::OutboxComplete,
        Self::NoticesTrue,
        Self::Drains,
    ];

    /// The text for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NothingLost => "nothing accepted is lost",
            Self::OneState => "a job is in exactly one state",
            Self::AllowedEdges => "only allowed edges",
            Self::Ledger => "the ledger equals the content",
            Self::Counters => "attempts, failures and lost leases are counted right",
            Self::Fence => "a stale epoch has no effect",
            Self::NumbersGrow => "epochs and lease numbers never repeat",
            Self::OneLiveLease => "one live lease per job",
            Self::OneGrantPerCall => "a repeated reserve grants nothing new",
            Self::StaleSettles => "a stale lease changes nothing",
            Self::Cancel => "a cancel holds",
            Self::NoPostAfterDone => "no new attempt after done",
            Self::DoneMeansDelivered => "done means delivered",
            Self::OutboxComplete => "the outbox loses no death",
            Self::NoticesTrue => "no notice is invented",
            Self::Drains => "everything drains once faults stop",
        }
    }
}

/// The properties that steps have violated on the way to a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Violations(u32);

impl Violations {
    /// Records a violation if a condition is not met.
    pub(crate) fn require(&mut self, property: Property, holds: bool) {
        if !holds {
            self.0 |= 1 << property as u32;
        }
    }

    pub(crate) fn has(self, property: Property) -> bool {
        self.0 & (1 << property as u32) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}
