//! The models that are searched. The fewer kinds of faults one has, the deeper a search gets into what these lead to;
//! without any fault it gets to the end.

use crate::bounds::{Bounds, Budget};

/// One job, and processes that pause: what they know becomes old, and they go on with it.
pub const PAUSES: Bounds = Bounds { name: "pauses", jobs: 1, ..Bounds::CALM };

/// One job that two notifiers get in turn: lost replies, late calls, crashes, and leases that run out.
pub const LEASES: Bounds = Bounds {
    name: "leases",
    jobs: 1,
    carriers: 1,
    budget: Budget {
        faults: 2,
        lost_replies: 1,
        late_calls: 1,
        crashes: 1,
        claims: 2,
        renews: 1,
        releases: 1,
        refusals: 2,
        ..Bounds::CALM.budget
    },
    ..Bounds::CALM
};

/// Two jobs that one call reserves, in one batch.
pub const BATCHES: Bounds = Bounds {
    name: "batches",
    carriers: 1,
    permits: 2,
    end: 4,
    budget: Budget {
        faults: 1,
        lost_replies: 1,
        late_calls: 1,
        crashes: 1,
        claims: 1,
        renews: 1,
        ..Bounds::CALM.budget
    },
    ..Bounds::CALM
};

/// Two carriers of one job, and fail-overs that lose the last scripts.
pub const FAIL_OVER: Bounds = Bounds {
    name: "fail-over",
    jobs: 1,
    budget: Budget {
        faults: 2,
        fail_overs: 1,
        lost_replies: 1,
        crashes: 1,
        claims: 3,
        ..Bounds::CALM.budget
    },
    ..Bounds::CALM
};

/// Batches of two jobs, and a fail-over that loses the settle of one of them.
pub const LOST_SETTLE: Bounds = Bounds {
    name: "lost settle",
    permits: 2,
    end: 4,
    budget: Budget { faults: 1, fail_overs: 1, claims: 2, cancels: 0, renews: 0, ..Bounds::CALM.budget },
    ..Bounds::CALM
};

/// A clock that steps back.
pub const CLOCK: Bounds = Bounds {
    name: "clock",
    jobs: 1,
    budget: Budget { faults: 3, steps_back: 2, late_calls: 1, claims: 3, ..Bounds::CALM.budget },
    ..Bounds::CALM
};

/// A fail-over that takes no longer than the clocks differ: what the product does not promise to stand.
pub const SKEWED: Bounds = Bounds { name: "skewed clocks", fail_over: 0, ..FAIL_OVER };

/// Smaller ones of these kinds, which are searched to their end.
pub const SMALL: [Bounds; 3] = [
    Bounds {
        name: "small leases",
        end: 4,
        budget: Budget { faults: 1, renews: 0, releases: 0, refusals: 1, ..LEASES.budget },
        ..LEASES
    },
    Bounds {
        name: "small batches",
        end: 3,
        budget: Budget { cancels: 0, renews: 0, refusals: 0, ..BATCHES.budget },
        ..BATCHES
    },
    Bounds {
        name: "small fail-over",
        end: 4,
        budget: Budget { cancels: 0, claims: 2, ..FAIL_OVER.budget },
        ..FAIL_OVER
    },
];

/// Everything at once.
pub const EVERYTHING: Bounds = Bounds {
    name: "everything",
    permits: 2,
    end: 6,
    fail_over: 2,
    budget: Budget {
        faults: 3,
        lost_replies: 2,
        late_calls: 1,
        crashes: 2,
        fail_overs: 1,
        steps_back: 1,
        claims: 3,
        cancels: 2,
        renews: 1,
        releases: 1,
        refusals: 2,
    },
    ..Bounds::CALM
};

/// The same with three jobs, for searches of many millions of states.
pub const THREE_JOBS: Bounds = Bounds { name: "three jobs", jobs: 3, end: 7, ..EVERYTHING };
