//! A history after it was read: settings, faults, exits, logs and samples of the run, and the submits, calls, deliveries,
//! leases, settles and states of its jobs, sorted by job and time.

use std::collections::{BTreeMap, HashMap};

use super::clock::Clocks;
use super::entry::{
    Alarm, Check, ClockReading, End, FaultClass, JobState, Ledger, LogLevel, Loss, Policy, Stall,
};
use super::names::Names;
use super::records::{
    CallRecord, Content, Delivery, FinalRecord, JobRecord, LeaseRecord, NONE, SettleRecord, StateRecord,
    SubmitRecord, TransitionRecord,
};

const SIGKILL: i32 = 9;

/// The bounds of the run; times in µs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) wall: u64,
    pub(crate) epsilon: u64,
    pub(crate) live: Option<u64>,
    pub(crate) timeout: u64,
    pub(crate) policy: u32,
    pub(crate) loss: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultRecord {
    pub(crate) line: u32,
    pub(crate) kind: String,
    pub(crate) class: FaultClass,
    pub(crate) pid: Option<u32>,
    pub(crate) begin: u64,
    /// When it ends; [`NEVER`](super::records::NEVER) if it does not.
    pub(crate) end: u64,
}

/// The end of a process.
#[derive(Clone, Debug)]
pub(crate) struct ExitRecord {
    pub(crate) line: u32,
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) status: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// A line of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogRecord {
    pub(crate) line: u32,
    pub(crate) level: LogLevel,
    pub(crate) is_known: bool,
    pub(crate) text: String,
}

/// A claim of a lock, or an effect under it.
#[derive(Clone, Debug)]
pub(crate) struct LockRecord {
    pub(crate) line: u32,
    pub(crate) lock: u32,
    pub(crate) asked: u64,
    pub(crate) known: u64,
    pub(crate) token: u64,
    pub(crate) pid: u32,
    pub(crate) is_claim: bool,
    pub(crate) is_fenced: bool,
}

/// The samples of one series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) most: u64,
    /// The lines of the first, the largest and the last value.
    pub(crate) lines: [u32; 3],
}

/// A bound of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitRecord {
    pub(crate) most: u64,
    pub(crate) leak: Option<u64>,
}

/// The lines about the run as a whole.
#[derive(Default)]
pub(crate) struct RunTables {
    pub(crate) policies: BTreeMap<u32, Policy>,
    pub(crate) tenants: BTreeMap<String, u64>,
    pub(crate) limits: BTreeMap<String, LimitRecord>,
    pub(crate) canaries: u32,
    /// The lines that have a canary, at most some of them, and how many there are.
    pub(crate) leaks: (Vec<u32>, u64),
    pub(crate) scans: Vec<(u32, u64)>,
    pub(crate) readings: Vec<ClockReading>,
    pub(crate) faults: Vec<FaultRecord>,
    /// In the order of time.
    pub(crate) losses: Vec<Loss>,
    pub(crate) starts: HashMap<u32, u32>,
    pub(crate) exits: Vec<ExitRecord>,
    pub(crate) logs: Vec<LogRecord>,
    /// The series of samples, by name and process.
    pub(crate) series: BTreeMap<(String, String), Series>,
    pub(crate) locks: Vec<LockRecord>,
    pub(crate) alarms: Vec<(u32, Alarm)>,
    /// In the order of time.
    pub(crate) stalls: Vec<Stall>,
    pub(crate) checks: Vec<(u32, Check)>,
    pub(crate) ledger: Option<(u32, Ledger)>,
    /// Sums over the processes, by name and label, with the line of the last value.
    pub(crate) metrics: BTreeMap<(String, String), (u64, u32)>,
    pub(crate) end: Option<End>,
}

/// A history.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) settings: Settings,
    pub(crate) run: RunTables,
    pub(crate) clocks: Clocks,
    /// `topic/id` of each job.
    pub(crate) jobs: Names,
    pub(crate) tokens: Names,
    /// Idempotency keys with their topics, reasons of dead jobs, and locks.
    pub(crate) texts: Names,
    pub(crate) token_jobs: Vec<u32>,
    /// Contents of submits whose id nobody has learnt, each with the keys of such submits.
    pub(crate) anonymous: HashMap<Content, Vec<u32>>,
    /// Answers to submits that were about another job: the line, the job that was submitted, and the other one.
    pub(crate) mistaken: Vec<(u32, u32, u32)>,
    pub(crate) submits: Vec<SubmitRecord>,
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) leases: Vec<LeaseRecord>,
    pub(crate) settles: Vec<SettleRecord>,
    pub(crate) states: Vec<StateRecord>,
    pub(crate) transitions: Vec<TransitionRecord>,
    pub(crate) finals: Vec<FinalRecord>,
    /// Reserves whose outcome is unknown.
    pub(crate) unknown_reserves: u64,
    pub(crate) lines: u32,
}

impl Tables {
    /// Sorts all records by job and time, and keeps one delivery where a call was [sent again](is_once_more).
    pub(crate) fn sort(&mut self) {
        fn by_place<R: JobRecord>(records: &mut [R]) {
            records.sort_unstable_by_key(R::place);
        }
        by_place(&mut self.submits);
        by_place(&mut self.calls);
        by_place(&mut self.deliveries);
        self.deliveries.dedup_by(|next, one| {
            let is_once_more = is_once_more(one, next);
            if is_once_more {
                std::mem::swap(one, next);
            }
            is_once_more
        });
        by_place(&mut self.leases);
        by_place(&mut self.settles);
        by_place(&mut self.states);
        by_place(&mut self.transitions);
        by_place(&mut self.finals);
    }

    /// The number of processes that were ended by SIGKILL.
    pub(crate) fn kills(&self) -> u64 {
        self.run.exits.iter().filter(|exit| exit.signal == Some(SIGKILL)).count() as u64
    }

    /// The number of final lines with a state.
    pub(crate) fn final_count(&self, state: JobState) -> u64 {
        self.finals.iter().filter(|last| last.state == state).count() as u64
    }
}

/// Whether `next` is the call `one` sent again as the same attempt, because the receiver had ended that without an
/// answer. The second call counts.
fn is_once_more(one: &Delivery, next: &Delivery) -> bool {
    let is_unanswered = one.end_line != NONE && one.status == 0 && one.end <= next.start;
    is_unanswered && one.job == next.job && one.attempt == next.attempt && one.webhook == next.webhook
}
