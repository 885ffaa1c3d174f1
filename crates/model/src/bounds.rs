//! How large a model is: how many processes and jobs, how long, and how many faults of each kind.

use crate::planted::Planted;
use crate::sets::Time;

/// The most jobs that a model can have.
pub const MAX_JOBS: usize = 3;
/// The most carriers.
pub const MAX_CARRIERS: usize = 2;
/// The most notifiers.
pub const MAX_NOTIFIERS: usize = 2;

/// What may still happen on a path. Each kind has its own count, and all faults share `faults`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget {
    /// Faults of all kinds together.
    pub faults: u8,
    /// Replies that are lost after the store has acted.
    pub lost_replies: u8,
    /// Calls whose caller gives up before they reach the store.
    pub late_calls: u8,
    /// Processes that are killed and started again.
    pub crashes: u8,
    /// Fail-overs to a replica that did not receive the last scripts.
    pub fail_overs: u8,
    /// Times that the clock of the store steps back by a tick.
    pub steps_back: u8,
    /// Claims of the shard. These are not faults: carriers come and go.
    pub claims: u8,
    /// Jobs that are cancelled.
    pub cancels: u8,
    /// Renewed leases.
    pub renews: u8,
    /// Leases that a notifier releases before it makes an attempt.
    pub releases: u8,
    /// Attempts that the receiver refuses.
    pub refusals: u8,
}

/// The size of a model, and the constants of its product.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The name in reports.
    pub name: &'static str,
    /// At most [`MAX_JOBS`].
    pub jobs: usize,
    /// At most [`MAX_CARRIERS`].
    pub carriers: usize,
    /// At most [`MAX_NOTIFIERS`].
    pub notifiers: usize,
    /// The most leases of a notifier at a time.
    pub permits: usize,
    /// The time at which the clock stops.
    pub end: Time,
    /// From submit to due.
    pub delay: Time,
    /// How long a lease lasts.
    pub lease: Time,
    /// From a failure to the next attempt.
    pub retry: Time,
    /// The failures after which a job dies.
    pub max_failures: u8,
    /// The leases lost in a row after which a job dies.
    pub max_lost: u8,
    /// How many scripts a replica can be behind.
    pub max_behind: u8,
    /// By how much a fail-over takes longer than the clocks of the servers differ. The product relies on it being
    /// more than 0, and more than a clock steps back.
    pub fail_over: Time,
    /// What may happen.
    pub budget: Budget,
    /// A planted fault.
    pub planted: Option<Planted>,
}

impl Bounds {
    /// Two carriers, two notifiers and two jobs, without any fault. A base for others.
    pub const CALM: Self = Self {
        name: "calm",
        jobs: 2,
        carriers: 2,
        notifiers: 2,
        permits: 1,
        end: 5,
        delay: 1,
        lease: 1,
        retry: 1,
        max_failures: 2,
        max_lost: 2,
        max_behind: 3,
        fail_over: 1,
        budget: Budget {
            faults: 0,
            lost_replies: 0,
            late_calls: 0,
            crashes: 0,
            fail_overs: 0,
            steps_back: 0,
            claims: 2,
            cancels: 1,
            renews: 0,
            releases: 0,
            refusals: 1,
        },
        planted: None,
    };

    /// The same with a planted fault.
    #[must_use]
    pub const fn with(self, planted: Planted) -> Self {
        Self { planted: Some(planted), ..self }
    }

    pub(crate) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}
