//! The random operations of the side-by-side runs, and how often each is chosen.

use proptest::prelude::*;
use ringback_core::job::IfExists;
use ringback_core::store_types::Token;

use super::super::job_builders::{LONG, ms};
use super::pull_jobs::Ttr;
use super::{DESTINATIONS, TIMES, TOPICS, WINDOW};

/// Which lanes, which origins and which tenants may give jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) lanes: [bool; 4],
    pub(crate) origins: [bool; 2],
    pub(crate) tenants: [bool; 2],
}

fn open() -> impl Strategy<Value = Open> {
    let groups = || prop_oneof![3 => Just([true; 2]), 1 => any::<[bool; 2]>()];
    let all = (any::<[bool; 4]>(), groups(), groups());
    all.prop_map(|(lanes, origins, tenants)| Open { lanes, origins, tenants })
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    None,
    Moment,
    Long,
    /// On Redis it waits in a slot.
    Far,
}

/// When a job is rescheduled to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    In(Wait),
    /// One of a few times, so that a job comes back to one that it had.
    At(usize),
}

/// What is done with one job by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Cancel,
    Reschedule(When),
    Run,
    Revive,
    Purge,
}

/// What is done with a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnTopic {
    Pause,
    Resume,
    /// One of a few destinations, for its tenant or for all.
    PauseDestination(usize, bool),
    ResumeDestination(usize, bool),
    Look,
    /// One of a few policies.
    PutPolicy(u8),
    DeletePolicy,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RandomOutcome {
    Complete,
    Retry(Wait),
    Bury,
    Release(Wait),
    Return,
}

/// What a submitted job has behind it; with a past it is imported.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Past {
    None,
    Tried,
    Dead,
}

/// What a submit does to a job with its key. There are few tokens, so that some submits repeat another one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Refuse,
    Replace { token: u8 },
    Update { token: u8 },
    Postpone { token: u8, limit: Limit },
}

/// How long a job can be postponed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    /// Between the two longest delays.
    Far,
    Over,
}

impl Change {
    pub(crate) fn if_exists(self) -> IfExists {
        let token = |token| Token([token; 8]);
        match self {
            Self::Refuse => IfExists::Refuse,
            Self::Replace { token: n } => IfExists::Replace { token: token(n) },
            Self::Update { token: n } => IfExists::Update { token: token(n) },
            Self::Postpone { token: n, limit } => {
                let max_delay = match limit {
                    Limit::None => None,
                    Limit::Far => Some(6 * LONG),
                    Limit::Over => Some(ms(0)),
                };
                IfExists::Postpone { token: token(n), max_delay }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Times {
    Once,
    /// As after a lost answer.
    Twice,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Submit {
        names: Vec<usize>,
        content: u8,
        wait: Wait,
        brief: bool,
        past: Past,
        change: Change,
        times: Times,
    },
    Reserve {
        shard: usize,
        lanes: Open,
        brief: bool,
        times: Times,
    },
    /// Reserves of a few jobs each, until all that are ready are taken.
    ReserveInParts {
        shard: usize,
        lanes: Open,
        brief: bool,
        limit: usize,
        lane_limit: usize,
    },
    Settle {
        hands: Vec<(usize, RandomOutcome)>,
    },
    AddLateness {
        shard: usize,
        late: u8,
    },
    /// An exchange: outcomes of one shard, and a reserve of it.
    Exchange {
        hands: Vec<(usize, RandomOutcome)>,
        shard: usize,
        lanes: Open,
        brief: bool,
        times: Times,
    },
    Renew {
        hand: usize,
    },
    Topic {
        topic: usize,
        what: OnTopic,
        times: Times,
    },
    Pull {
        shard: usize,
        topic: usize,
        ttr: Ttr,
        times: Times,
    },
    SettleReceipts {
        hands: Vec<(usize, RandomOutcome)>,
    },
    /// A consumer's renewal.
    RenewReceipt {
        hand: usize,
    },
    Call {
        name: usize,
        call: Call,
        times: Times,
    },
    /// Attempts of some leases are recorded.
    LogAttempts {
        hands: Vec<usize>,
        times: Times,
    },
    Get {
        name: usize,
    },
    Promote {
        limit: u32,
    },
    Recover {
        limit: u32,
    },
    Evict,
    /// Outbox entries are acknowledged or postponed.
    Acknowledge,
    /// With all of a topic that are dead for a reason.
    Dead {
        topic: usize,
        exhausted: bool,
        purge: bool,
    },
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let outcome = prop_oneof![
        3 => Just(RandomOutcome::Complete),
        3 => wait().prop_map(RandomOutcome::Retry),
        1 => Just(RandomOutcome::Bury),
        3 => wait().prop_map(RandomOutcome::Release),
        2 => Just(RandomOutcome::Return),
    ];
    let reserve = (0..2_usize, open(), brief(), times())
        .prop_map(|(shard, lanes, brief, times)| Op::Reserve { shard, lanes, brief, times });
    let hands = || prop::collection::vec((any::<usize>(), outcome.clone()), 1..4);
    let when = prop_oneof![2 => wait().prop_map(When::In), 3 => (0..TIMES.len()).prop_map(When::At)];
    let call = prop_oneof![
        6 => Just(Call::Cancel),
        8 => when.prop_map(Call::Reschedule),
        3 => Just(Call::Run),
        3 => Just(Call::Revive),
        1 => Just(Call::Purge),
    ];
    let on_topic = prop_oneof![
        2 => Just(OnTopic::Pause),
        4 => Just(OnTopic::Resume),
        1 => (0..DESTINATIONS.len(), any::<bool>()).prop_map(|(n, own)| OnTopic::PauseDestination(n, own)),
        3 => (0..DESTINATIONS.len(), any::<bool>()).prop_map(|(n, own)| OnTopic::ResumeDestination(n, own)),
        4 => Just(OnTopic::Look),
        2 => (1..4_u8).prop_map(OnTopic::PutPolicy),
        1 => Just(OnTopic::DeletePolicy),
    ];
    let in_parts = (0..2_usize, open(), brief(), 1..6_usize, 1..4_usize).prop_map(
        |(shard, lanes, brief, limit, lane_limit)| Op::ReserveInParts {
            shard,
            lanes,
            brief,
            limit,
            lane_limit,
        },
    );
    let exchange = (hands(), 0..2_usize, open(), brief(), times())
        .prop_map(|(hands, shard, lanes, brief, times)| Op::Exchange { hands, shard, lanes, brief, times });
    let ttr = prop_oneof![3 => Just(Ttr::Long), 1 => Just(Ttr::Brief), 1 => Just(Ttr::Own)];
    let pull = (0..2_usize, 0..TOPICS.len(), ttr, times()).prop_map(|(shard, topic, ttr, times)| Op::Pull {
        shard,
        topic,
        ttr,
        times,
    });
    prop_oneof![
        30 => submit(),
        8 => reserve,
        8 => in_parts,
        14 => hands().prop_map(|hands| Op::Settle { hands }),
        18 => exchange,
        2 => (0..2_usize, 0..50_u8).prop_map(|(shard, late)| Op::AddLateness { shard, late }),
        3 => any::<usize>().prop_map(|hand| Op::Renew { hand }),
        12 => (0..TOPICS.len(), on_topic, times()).prop_map(|(topic, what, times)| Op::Topic { topic, what, times }),
        12 => pull,
        14 => hands().prop_map(|hands| Op::SettleReceipts { hands }),
        3 => any::<usize>().prop_map(|hand| Op::RenewReceipt { hand }),
        20 => (0..WINDOW, call, times()).prop_map(|(name, call, times)| Op::Call { name, call, times }),
        8 => (prop::collection::vec(any::<usize>(), 1..4), times())
            .prop_map(|(hands, times)| Op::LogAttempts { hands, times }),
        4 => (0..WINDOW).prop_map(|name| Op::Get { name }),
        6 => (2..40_u32).prop_map(|limit| Op::Promote { limit }),
        2 => (1..10_u32).prop_map(|limit| Op::Recover { limit }),
        1 => Just(Op::Evict),
        4 => Just(Op::Acknowledge),
        2 => (0..2_usize, any::<bool>(), prop::bool::weighted(0.3)).prop_map(|(topic, exhausted, purge)| {
            Op::Dead { topic, exhausted, purge }
        }),
    ]
}

fn wait() -> impl Strategy<Value = Wait> + Clone {
    prop_oneof![2 => Just(Wait::None), 1 => Just(Wait::Moment), 1 => Just(Wait::Long), 1 => Just(Wait::Far)]
}

fn brief() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.4)
}

fn times() -> impl Strategy<Value = Times> {
    prop_oneof![3 => Just(Times::Once), 1 => Just(Times::Twice)]
}

fn submit() -> impl Strategy<Value = Op> {
    let past = prop_oneof![6 => Just(Past::None), 2 => Just(Past::Tried), 1 => Just(Past::Dead)];
    let content = prop_oneof![9 => Just(1_u8), 1 => Just(2)];
    let limit = prop_oneof![2 => Just(Limit::None), 2 => Just(Limit::Far), 1 => Just(Limit::Over)];
    let change = prop_oneof![
        5 => Just(Change::Refuse),
        3 => (1..12_u8).prop_map(|token| Change::Replace { token }),
        2 => (1..12_u8).prop_map(|token| Change::Update { token }),
        3 => (1..12_u8, limit).prop_map(|(token, limit)| Change::Postpone { token, limit }),
    ];
    let names = prop::collection::vec(0..WINDOW, 1..4);
    (names, content, wait(), brief(), past, change, times()).prop_map(
        |(names, content, wait, brief, past, change, times)| Op::Submit {
            names,
            content,
            wait,
            brief,
            past,
            change,
            times,
        },
    )
}
