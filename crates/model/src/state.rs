//! A state of the whole: the store, its replica, the processes, the callers of the API, and what has happened so far.

use crate::bounds::{Bounds, Budget, MAX_CARRIERS, MAX_JOBS, MAX_NOTIFIERS};
use crate::property::Violations;
use crate::sets::{Job, JobSet, Number, Time, TimeSet};
use crate::store::{Outcome, Receipt, Store};

/// A call to the store: a script with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Call {
    /// Submits a job.
    Submit(Job),
    /// Cancels a job.
    Cancel(Job),
    /// Takes the shard.
    Claim,
    /// Makes due jobs ready, under an epoch.
    Promote(Number),
    /// Takes back leases that have run out, under an epoch.
    Recover(Number),
    /// Removes entries of the outbox, under an epoch.
    Acknowledge(Number, JobSet),
    /// Reserves these jobs, for a notifier and its sequence; none if that process was killed.
    Reserve(Option<(usize, u8)>, JobSet),
    /// Settles a lease. The last says that its batch has no other job left.
    Settle(Job, Receipt, Outcome, bool),
    /// Renews a lease.
    Renew(Job, Receipt),
}

/// A carrier, as far as it knows. Its heartbeats are not modelled: it may claim the shard at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Carrier {
    /// The epoch of its last claim.
    pub(crate) epoch: Option<Number>,
    /// The entries of the outbox that its relay has read.
    pub(crate) read: JobSet,
    /// Those of them whose notices are stored.
    pub(crate) published: JobSet,
    /// What a promote in two steps has taken from the schedule.
    pub(crate) popped: [TimeSet; MAX_JOBS],
}

/// How far a notifier is with a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Progress {
    /// No attempt was made yet.
    Granted,
    /// The attempt has this outcome, which is to be settled.
    Ended(Outcome),
}

/// A lease that a notifier holds, or believes it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Held {
    /// The job.
    pub(crate) job: Job,
    /// The proof.
    pub(crate) receipt: Receipt,
    /// The failures before this attempt.
    pub(crate) failures: u8,
    /// How far it is.
    pub(crate) progress: Progress,
}

/// A notifier, as far as it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Notifier {
    /// The leases, in order.
    pub(crate) held: Vec<Held>,
    /// The sequence of its next reserve.
    pub(crate) sequence: u8,
    /// Whether a reserve of this sequence was not answered.
    pub(crate) is_unanswered: bool,
}

/// What the caller of the API knows of one of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// Not made.
    #[default]
    Not,
    /// Not answered; it is repeated.
    Unanswered,
    /// Answered.
    Answered,
    /// Answered `cancelled`, with no word of an attempt in flight.
    Cancelled,
}

/// The caller that submits and cancels a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    /// The submit.
    pub(crate) submit: Request,
    /// The cancel.
    pub(crate) cancel: Request,
}

/// The last lease of a job that was not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LiveLease {
    /// Which grant.
    pub(crate) bits: u8,
    /// Until when.
    pub(crate) deadline: Time,
    /// Whether no carrier has taken it back.
    pub(crate) is_held: bool,
}

/// What the effects of the scripts were, noted independently of what they have stored. A fail-over takes these back
/// with the writes that it loses: exactly what is gone is forgiven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Facts {
    /// The jobs that were accepted.
    pub(crate) accepted: JobSet,
    /// The jobs that died.
    pub(crate) died: JobSet,
    /// How often each was reserved.
    pub(crate) attempts: [u8; MAX_JOBS],
    /// How many of its attempts have failed.
    pub(crate) failures: [u8; MAX_JOBS],
    /// How many of its leases ran out in a row.
    pub(crate) lost: [u8; MAX_JOBS],
    /// How many leases were granted in all when it was done.
    pub(crate) done: [Option<u8>; MAX_JOBS],
    /// Its lease.
    pub(crate) live: [Option<LiveLease>; MAX_JOBS],
    /// The last sequence of each notifier for which leases were granted.
    pub(crate) granted: [Option<u8>; MAX_NOTIFIERS],
    /// The last epoch.
    pub(crate) epoch: Number,
}

/// What has happened in the world, which no fail-over takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct World {
    /// The highest epoch ever.
    pub(crate) epoch: Number,
    /// The highest lease number ever.
    pub(crate) lease: Number,
    /// How many leases were ever granted.
    pub(crate) grants: u8,
    /// The jobs that ever died.
    pub(crate) died: JobSet,
    /// The jobs that their receiver has accepted.
    pub(crate) delivered: JobSet,
    /// The jobs that a fail-over has set back.
    pub(crate) set_back: JobSet,
}

/// A store and the effects of its scripts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Server {
    /// What is stored.
    pub(crate) store: Store,
    /// What took place.
    pub(crate) facts: Facts,
}

/// A replica that has stopped to follow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Replica {
    /// What it has.
    pub(crate) server: Server,
    /// How many scripts it is behind.
    pub(crate) behind: u8,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct State {
    /// The store.
    pub(crate) server: Server,
    /// A replica that did not receive the last scripts; none while it follows.
    pub(crate) replica: Option<Box<Replica>>,
    /// A call whose caller has given up and which has not reached the store.
    pub(crate) late: Option<Call>,
    /// The carriers.
    pub(crate) carriers: [Carrier; MAX_CARRIERS],
    /// The notifiers.
    pub(crate) notifiers: [Notifier; MAX_NOTIFIERS],
    /// The callers of the API, one for each job.
    pub(crate) clients: [Client; MAX_JOBS],
    /// The notices that are stored. They are jobs of another shard.
    pub(crate) notices: JobSet,
    /// What has happened.
    pub(crate) world: World,
    /// What was violated.
    pub(crate) violations: Violations,
    /// What may still happen.
    pub(crate) left: Budget,
}

impl State {
    /// Where all begins: an empty store, and processes that know nothing.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            server: Server { store: Store::new(), facts: Facts::default() },
            replica: None,
            late: None,
            carriers: Default::default(),
            notifiers: Default::default(),
            clients: Default::default(),
            notices: JobSet::default(),
            world: World::default(),
            violations: Violations::default(),
            left: bounds.budget,
        }
    }
}
