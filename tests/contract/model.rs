//! The model for random operations: the expected state of each job by name, without queues and times.

use std::collections::{BTreeMap, BTreeSet};

use ringback_core::job::{IfExists, JobKey};
use ringback_core::lane::Lane;
use ringback_core::store_types::{Cancelled, SettleResult, SubmitResult, Token};
use ringback_core::topic_policy::Policy;
use strum::VariantArray as _;

use crate::prelude::*;

/// A job is dead when this many leases in a row have expired.
const MAX_LOST: u32 = 5;

/// Counts the leases given.
pub(crate) type LeaseNumber = u64;

/// The expected state of a job.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedJob {
    pub(crate) content: u8,
    pub(crate) state: State,
    /// Its topic and its origin.
    pub(crate) lane: String,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    /// It is due within a moment, while it is delayed.
    pub(crate) soon: bool,
    /// Its lease runs out within a moment.
    brief: bool,
    lost: u32,
    lease_lost: bool,
    dead_by_lost: bool,
    cancel_requested: bool,
    current: Option<LeaseNumber>,
    settled: Option<LeaseNumber>,
    /// The token of the last submit.
    submitted: Option<Token>,
    /// The attempts before this life, and the last lease before it.
    before: (u32, LeaseNumber),
}

/// A submitted job: if it is accepted it is ready, delayed for long, or delayed for a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) content: u8,
    pub(crate) state: State,
    pub(crate) origin: &'static str,
    pub(crate) soon: bool,
    pub(crate) if_exists: IfExists,
}

/// A pause of the destination of an origin: whose jobs it holds (nobody's name for those of all, else as limits name
/// tenants), the origin, and whether it is of its port alone.
pub(crate) type Hold = (String, String, bool);

/// All jobs.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) jobs: BTreeMap<String, ExpectedJob>,
    pub(crate) paused: BTreeSet<String>,
    /// The pauses of destinations: whose jobs they hold, of which origin, and whether they are of its port alone.
    pub(crate) held: BTreeSet<Hold>,
    pub(crate) policies: BTreeMap<String, Policy>,
    /// How many former lives were done, and cancelled.
    ended: [u64; 2],
}

pub(crate) fn lane(topic: &str, origin: &str) -> String {
    format!("{topic} {origin}")
}

impl Model {
    /// Applies a submit after `leases` leases in all. Returns the expected answer, with a wait of zero for a held lease.
    pub(crate) fn submit(&mut self, key: &JobKey, offered: Offered, leases: LeaseNumber) -> SubmitResult {
        let Offered { content, state, origin, soon, if_exists } = offered;
        let mut job = ExpectedJob {
            content,
            state,
            lane: lane(key.topic.as_str(), origin),
            attempts: 0,
            failures: 0,
            soon,
            brief: false,
            lost: 0,
            lease_lost: false,
            dead_by_lost: false,
            cancel_requested: false,
            current: None,
            settled: None,
            submitted: if_exists.token(),
            before: (0, 0),
        };
        let mut answer = SubmitResult::Created;
        if let Some(known) = self.jobs.get(key.id.as_str()) {
            let is_same = known.content == content;
            answer = match (if_exists, known.state) {
                (IfExists::Refuse | IfExists::Update { .. }, State::Cancelled) if is_same => {
                    return SubmitResult::Cancelled;
                }
                _ if if_exists.token() == known.submitted || if_exists == IfExists::Refuse => {
                    return if is_same { SubmitResult::Repeated } else { SubmitResult::Conflict };
                }
                (IfExists::Update { .. }, _) if is_same => return SubmitResult::Repeated,
                (IfExists::Update { .. }, State::Dead | State::Done | State::Cancelled) => {
                    return SubmitResult::Conflict;
                }
                (_, State::Reserved) => return SubmitResult::Reserved { retry_after: Duration::ZERO },
                (_, State::Done | State::Cancelled) => SubmitResult::Created,
                (IfExists::Postpone { .. }, _) => SubmitResult::Postponed,
                _ => SubmitResult::Replaced,
            };
            self.ended[0] += u64::from(known.state == State::Done);
            self.ended[1] += u64::from(known.state == State::Cancelled);
            job.attempts = known.attempts;
            let is_pending = matches!(known.state, State::Delayed | State::Ready);
            let goes_on = is_pending && known.attempts == known.before.0;
            job.before = if goes_on { known.before } else { (known.attempts, leases) };
        }
        self.jobs.insert(key.id.as_str().to_owned(), job);
        answer
    }

    /// The number of accepted jobs, former lives included.
    pub(crate) fn accepted(&self) -> u64 {
        self.jobs.len() as u64 + self.ended.iter().sum::<u64>()
    }

    /// Whether jobs of a lane can be reserved: neither the topic nor the destination is paused.
    pub(crate) fn is_open(&self, lane: &str) -> bool {
        let Some(Lane { topic, origin }) = Lane::parse(lane) else { return false };
        let tenant = Lane { topic, origin }.tenant();
        let holds = |(of, held, _): &Hold| held == origin && (of.is_empty() || of == tenant);
        !self.paused.contains(topic) && !self.held.iter().any(holds)
    }

    pub(crate) fn get(&self, key: &JobKey) -> Option<&ExpectedJob> {
        self.jobs.get(key.id.as_str())
    }

    fn job(&mut self, key: &JobKey) -> &mut ExpectedJob {
        self.jobs.get_mut(key.id.as_str()).expect("the job is known")
    }

    /// Applies a cancel, and returns the possible answers: whether a brief lease has expired yet depends on the moment.
    pub(crate) fn cancel(&mut self, key: &JobKey) -> Vec<Cancelled> {
        let Some(job) = self.jobs.get_mut(key.id.as_str()) else { return vec![Cancelled::Unknown] };
        let requested = |in_flight_unknown| Cancelled::Requested { in_flight_unknown };
        match job.state {
            State::Done => vec![Cancelled::TooLate],
            State::Reserved => {
                job.cancel_requested = true;
                if job.brief { vec![requested(false), requested(true)] } else { vec![requested(false)] }
            }
            State::Delayed | State::Ready | State::Dead | State::Cancelled => {
                job.state = State::Cancelled;
                vec![Cancelled::Cancelled { in_flight_unknown: job.lease_lost }]
            }
        }
    }

    pub(crate) fn promote(&mut self) {
        for job in self.jobs.values_mut().filter(|job| job.soon && job.state == State::Delayed) {
            job.state = State::Ready;
        }
    }

    /// Applies a reserve, and returns the job as it was before. The next recovery counts a brief lease as expired.
    pub(crate) fn reserve(&mut self, key: &JobKey, token: LeaseNumber, brief: bool) -> ExpectedJob {
        let job = self.job(key);
        let before = job.clone();
        job.brief = brief;
        job.attempts += 1;
        job.state = State::Reserved;
        job.current = Some(token);
        before
    }

    /// Applies a recovery, by which all brief leases have expired.
    pub(crate) fn recover(&mut self) {
        for job in self.jobs.values_mut().filter(|job| job.brief && job.state == State::Reserved) {
            (job.lost, job.lease_lost) = (job.lost + 1, true);
            job.dead_by_lost = job.lost >= MAX_LOST;
            job.state = match (job.cancel_requested, job.dead_by_lost) {
                (true, _) => State::Cancelled,
                (false, true) => State::Dead,
                (false, false) => State::Ready,
            };
        }
    }

    pub(crate) fn settle(&mut self, key: &JobKey, token: LeaseNumber, outcome: &Outcome) -> SettleResult {
        let job = self.job(key);
        let current = job.state == State::Reserved && job.current == Some(token);
        if !current && job.settled == Some(token) {
            return SettleResult::Replayed;
        }
        if !current {
            let over = job.state.is_terminal()
                || job.state == State::Dead && !job.dead_by_lost
                || token <= job.before.1;
            if over || *outcome != Outcome::Complete {
                return SettleResult::Stale;
            }
            (job.state, job.settled) = (State::Done, Some(token));
            return SettleResult::Late;
        }
        job.settled = Some(token);
        if *outcome == Outcome::Return {
            job.attempts -= 1;
        }
        job.state = match outcome {
            Outcome::Complete => State::Done,
            _ if job.cancel_requested => State::Cancelled,
            Outcome::Return => State::Ready,
            Outcome::Retry { after, .. } => {
                job.soon = after.is_zero();
                State::Delayed
            }
            Outcome::Bury { .. } => State::Dead,
            Outcome::Release { after } if after.is_zero() => State::Ready,
            Outcome::Release { .. } => {
                job.soon = false;
                State::Delayed
            }
        };
        if matches!(
            (outcome, job.state),
            (Outcome::Retry { .. } | Outcome::Bury { .. }, State::Delayed | State::Dead)
        ) {
            (job.failures, job.lost, job.dead_by_lost) = (job.failures + 1, 0, false);
        }
        SettleResult::Applied
    }

    /// The number of jobs in each state, former lives included.
    pub(crate) fn per_state(&self) -> [u64; 6] {
        std::array::from_fn(|n| {
            let state = State::VARIANTS[n];
            let former = match state {
                State::Done => self.ended[0],
                State::Cancelled => self.ended[1],
                State::Delayed | State::Ready | State::Reserved | State::Dead => 0,
            };
            former + self.jobs.values().filter(|job| job.state == state).count() as u64
        })
    }
}
